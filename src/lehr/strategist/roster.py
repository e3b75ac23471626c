"""Members of the policies in force, read from the store. Blocks while it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.enforce.governance import Governance
from lehr.model.addons import LABELS, TURNDOWN, Labels
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.content_key import NOT_CONTENT, content_key
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.operation import Result
from lehr.model.reason import Reason
from lehr.model.types import Registry, addon_names
from lehr.rollouts.course import Rollout
from lehr.rollouts.members import Member
from lehr.rollouts.policy import Policy
from lehr.sdk.store import PrunedError, Store

_BAD = frozenset(
    {Reason.DIFF_STALLED, Reason.PUSH_FAILED, Reason.PUSH_STALLED, Reason.PUSHED_STILL_DIFFERENT}
)
"""Reasons for which content is not good. For all others, whether it is good is not known."""

_HOLDING = {ControlKind.PAUSE: "paused", ControlKind.FREEZE: "frozen", ControlKind.PIN: "pinned"}

_NOT_CONTENT = tuple(f"/addons/{name}/" for name in sorted(NOT_CONTENT))


class Contents:
    """Content keys of assets at incarnations, by the assets as they are stored."""

    def __init__(self, store: Store, registry: Registry, partition: Partition) -> None:
        self._store = store
        self._registry = registry
        self.partition = partition

    def asset(self, id: AssetId, sequence: int) -> Asset | None:
        """An asset of an incarnation; None if it is not there, or the incarnation is pruned."""
        try:
            return self._store.intent.asset(AssetKey(self.partition, id), sequence)
        except PrunedError:
            return None

    def reads(self, asset: Asset) -> tuple[AssetId, ...]:
        """The assets that are part of its content: those that it refers to, except to be ordered by them."""
        mentions = self._registry.mentions(asset)
        targets = {item.target for item in mentions if not item.path.startswith(_NOT_CONTENT)}
        return tuple(sorted(targets - {asset.id}))

    def key(self, asset: Asset, sequence: int) -> Digest:
        """The key of an asset's content as an incarnation has it."""
        return content_key(asset, [(id, self.asset(id, sequence)) for id in self.reads(asset)])

    def key_at(self, id: AssetId, sequence: int) -> Digest | None:
        """The same by its id; None if the incarnation does not have it."""
        asset = self.asset(id, sequence) if sequence else None
        return None if asset is None else self.key(asset, sequence)


class _Place(msgspec.Struct, frozen=True):
    """A member as intent has it."""

    policy: AssetId
    unit: str
    labels: dict[str, str]
    reads: tuple[AssetId, ...]
    key: Digest


class Roster:
    """The members of all policies in force.

    Their content in the newest incarnation is kept, and only changes are read again.
    """

    def __init__(self, store: Store, registry: Registry, partition: Partition) -> None:
        self._store = store
        self._registry = registry
        self._partition = partition
        self.contents = Contents(store, registry, partition)
        self._sequence = 0
        self._governance = Digest("")
        self._places: dict[AssetId, _Place] = {}
        self._readers: dict[AssetId, set[AssetId]] = {}
        self._idle: dict[AssetId, Member] = {}

    def members(
        self,
        policy: Policy,
        rollout: Rollout | None,
        governance: Governance,
        now: float,
        *,
        resting: bool = False,
    ) -> list[Member]:
        """All assets that a policy governs, by id.

        Args:
            rollout: the one of this policy under way, if one is.
            governance: of the newest incarnation, with the releases and controls as they are.
            now: wall-clock seconds.
            resting: look up how those are whose content neither changes nor has changed.
        """
        self._follow(governance)
        updated = {} if rollout is None else rollout.updated
        found = []
        for id, place in self._places.items():
            if place.policy != policy.id or governance.releases.frees(id):
                continue
            member = self._member(id, place, governance)
            if resting or not member.known or member.wants_newest or place.unit in updated:
                member = self._in_play(member, rollout, governance, now)
            found.append(member)
        return found

    # --- intent -----------------------------------------------------------------------------

    def _follow(self, governance: Governance) -> None:
        sequence = governance.sequence
        if governance.digest != self._governance or not self._sequence:
            self._places.clear()
            self._readers.clear()
            assets = self._store.intent.assets(self._partition, sequence) if governance.policies else ()
            for asset in assets:
                self._place(asset, sequence, governance)
            self._idle.clear()
        elif sequence != self._sequence:
            for id in sorted(self._changed(self._sequence, sequence)):
                self._displace(id)
                found = self.contents.asset(id, sequence)
                if found is not None:
                    self._place(found, sequence, governance)
            self._places = dict(sorted(self._places.items()))
        self._sequence, self._governance = sequence, governance.digest

    def _changed(self, before: int, after: int) -> set[AssetId]:
        changed = {item.id for item in self._store.intent.changes(self._partition, before, after)}
        return changed.union(*(self._readers.get(id, ()) for id in changed))

    def _place(self, asset: Asset, sequence: int, governance: Governance) -> None:
        policy = governance.policies.of(asset)
        if policy is None:
            return
        labels = _labels(asset)
        unit = labels.get(policy.payload.unit, asset.id) if policy.payload.unit else asset.id
        reads = self.contents.reads(asset)
        self._places[asset.id] = _Place(policy.id, unit, labels, reads, self.contents.key(asset, sequence))
        for id in reads:
            self._readers.setdefault(id, set()).add(asset.id)

    def _displace(self, id: AssetId) -> None:
        self._idle.pop(id, None)
        place = self._places.pop(id, None)
        for other in () if place is None else place.reads:
            self._readers[other].discard(id)

    # --- how they are -----------------------------------------------------------------------

    def _member(self, id: AssetId, place: _Place, governance: Governance) -> Member:
        """A member as intent and its releases have it."""
        released = governance.releases.of(id)
        release = None if released is None else released.release
        member = self._idle.get(id)
        key = None if release is None else release.content_key
        id_of = "" if release is None else release.id
        if member is None or member.release != id_of or member.known is (released is None):
            member = Member(
                id=id,
                unit=place.unit,
                labels=place.labels,
                newest=place.key,
                released=key,
                released_at=0 if release is None else release.target or 0,
                release=id_of,
                known=governance.releases.knows(id),
            )
            self._idle[id] = member
        return member

    def _in_play(self, member: Member, rollout: Rollout | None, governance: Governance, now: float) -> Member:
        """The same, with everything that matters while its content is about to change, or has changed."""
        key = AssetKey(self._partition, member.id)
        entry, standing = self._store.records.ledger(key), self._store.records.standing(key)
        applied_at = 0 if entry is None or entry.goal is not Goal.PRESENT else entry.content
        applied = self.contents.key_at(member.id, applied_at)
        good, why, busy = None, "", False
        if standing is not None:
            condition = standing.condition
            good = _is_good(condition.status, condition.reason)
            busy = condition.status in (Status.PUSHING, Status.UNKNOWN)
            why = "" if good else f"{condition.status} {condition.reason}: {condition.message}"
            if condition.status is Status.TURNED_DOWN and self._leaves(member.id, member.released_at):
                applied = member.released
        if not busy and applied != member.released and (failed := self._failed(member)):
            good, why = False, failed
        target, before, leaves = None, None, False
        if rollout is not None:
            leaves = self._leaves(member.id, rollout.target)
            target = self.contents.key_at(member.id, rollout.target)
            before = self.contents.key_at(member.id, rollout.before.get(member.id, 0))
        return replace(
            member,
            target=target,
            before=before,
            leaves=leaves,
            applied=applied,
            applied_at=applied_at if applied is not None else 0,
            applied_since=entry.at if entry is not None and applied is not None else None,
            good=good,
            why=why,
            busy=busy,
            held=self._held(member.id, governance, now),
        )

    def _leaves(self, id: AssetId, sequence: int) -> bool:
        """Whether an incarnation asks for the turndown of an asset."""
        asset = self.contents.asset(id, sequence) if sequence else None
        return asset is not None and TURNDOWN in addon_names(asset)

    def _failed(self, member: Member) -> str:
        """Why the last push of the content that a member is released to failed; empty if none has.

        Whatever it waits for since then, such as a rate limit.
        """
        for push in self._store.records.operations(self._partition, member.id, 1):
            same = self.contents.key_at(member.id, push.content) == member.released
            if same and push.result in (Result.FAILED, Result.STALLED):
                return f"its push failed: {push.message}"
        return ""

    def _held(self, id: AssetId, governance: Governance, now: float) -> str:
        asset = self.contents.asset(id, governance.sequence)
        if asset is None:
            return ""
        if (observed := governance.observe(asset)) is not None:
            return f"only observed: {observed}"
        return next(_reasons(governance.controls_over(id, now), asset), "")


def _reasons(controls: Iterable[Control], asset: Asset) -> Iterator[str]:
    for control in controls:
        word = _HOLDING.get(control.kind)
        if word is not None and control.selector.matches(asset):
            yield f"{word} by {control.actor}: {control.reason}"


def _is_good(status: Status, reason: str) -> bool | None:
    if status in (Status.CONVERGED, Status.TURNED_DOWN):
        return True
    return False if reason in _BAD else None


def _labels(asset: Asset) -> dict[str, str]:
    raw = addon_names(asset).get(LABELS)
    return {} if raw is None else msgspec.json.decode(raw, type=Labels).labels
