"""Members of the policies in force, read from the store. Blocks while it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.enforce.governance import Governance
from lehr.model.addons import LABELS, Labels
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry, Result
from lehr.model.reason import Reason
from lehr.model.release import NO_RELEASES, ReleaseKind, Releases
from lehr.model.types import Registry, addon_names
from lehr.rollouts.course import Rollout
from lehr.rollouts.members import Member
from lehr.rollouts.policy import Policy
from lehr.sdk.calendars import Calendars, PushTimes, no_calendars
from lehr.sdk.store import PrunedError, Store
from lehr.strategist.closed_times import Closed, ClosedTimes
from lehr.strategist.contents import Content, Contents
from lehr.strategist.group import Group

_BAD = frozenset(
    {Reason.DIFF_STALLED, Reason.PUSH_FAILED, Reason.PUSH_STALLED, Reason.PUSHED_STILL_DIFFERENT}
)
"""Reasons for which content is not good. For all others, whether it is good is not known."""

_WAITING = frozenset({Reason.FROZEN, Reason.MONITOR_HOLDS, Reason.MONITOR_UNKNOWN, Reason.OUTSIDE_WINDOW})
"""Reasons for which a push waits that have nothing to do with its content."""

_HOLDING = {ControlKind.PAUSE: "paused", ControlKind.FREEZE: "frozen", ControlKind.PIN: "pinned"}

_BUSY = (Status.PUSHING, Status.UNKNOWN)


class _Place(msgspec.Struct, frozen=True):
    """A member as intent has it.

    Attributes:
        since: the incarnation that it was read in. The newest has the same content; others need not.
    """

    policy: AssetId
    unit: str
    labels: dict[str, str]
    content: Content
    since: int


class _Moment(NamedTuple):
    """A step.

    Attributes:
        target: the incarnation that the rollout brings; 0 if none is under way, or it is pruned.
        now: wall-clock seconds.
        closed: the calendars and freezes that are closed now.
    """

    rollout: Rollout | None
    target: int
    governance: Governance
    now: float
    closed: ClosedTimes


class Roster:
    """The members of all policies in force.

    Their content in the newest incarnation and their releases are kept, and only changes are read again. So a
    step takes as long as what changes, however many assets are governed.
    """

    def __init__(
        self, store: Store, registry: Registry, partition: Partition, calendars: Calendars = no_calendars
    ) -> None:
        """Read from `store`.

        Args:
            calendars: reads when pushes may not start.
        """
        self._store = store
        self._registry = registry
        self._partition = partition
        self._calendars = calendars
        self._times: Sequence[PushTimes] = ()
        self.contents = Contents(store, registry, partition)
        self._sequence = 0
        self._governance = Digest("")
        self._releases = NO_RELEASES
        self._places: dict[AssetId, _Place] = {}
        self._readers: dict[AssetId, set[AssetId]] = {}
        self._groups: dict[AssetId, Group] = {}

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
        members, moment = self._group(policy.id).members, self._moment(rollout, governance, now)
        current = self._in_play if resting else self._current
        return [current(members[id], moment) for id in sorted(members)]

    def taking_part(
        self, policy: Policy, rollout: Rollout | None, governance: Governance, now: float
    ) -> list[Member]:
        """Those of them that a step is about, by id: all of each unit in which something has to change.

        While there are some that have content and were never released, it is about a share of these alone.
        """
        self._follow(governance)
        group = self._group(policy.id)
        found = group.share(self._applied)
        if not found:
            moment = self._moment(rollout, governance, now)
            found = [self._current(group.members[id], moment) for id in group.ids_in_play(rollout)]
        self.contents.forget(group.left(found))
        return found

    def content(self, id: AssetId, sequence: int) -> Content | None:
        """The content of an asset in an incarnation; None if that does not have it."""
        place = self._places.get(id)
        if place is not None and sequence in (place.since, self._sequence):
            return place.content
        return self.contents.at(id, sequence)

    def _group(self, policy: AssetId) -> Group:
        return self._groups.setdefault(policy, Group())

    # --- intent and releases ----------------------------------------------------------------

    def _follow(self, governance: Governance) -> None:
        sequence, releases = governance.sequence, governance.releases
        another = governance.digest != self._governance or releases.version < self._releases.version
        if another or sequence < self._sequence or not self._sequence:
            self._begin(governance)
            moved = set(self._places)
        else:
            moved = self._move(governance) if sequence != self._sequence else set()
            moved.update(releases.changed_from(self._releases))
        for id in moved:
            self._enter(id, releases)
        self._sequence, self._governance, self._releases = sequence, governance.digest, releases

    def _begin(self, governance: Governance) -> None:
        """Read the members of the newest incarnation, and forget all others."""
        self._sequence = 0  # until everything is read
        self._places.clear()
        self._readers.clear()
        self._groups.clear()
        self._times = self._calendars(self._registry, governance.assets)
        self.contents.forget_all()
        if governance.policies:
            for asset in self._store.intent.assets(self._partition, governance.sequence):
                self._put(asset.id, self._place(asset, governance))

    def _move(self, governance: Governance) -> set[AssetId]:
        """Read what has changed up to the newest incarnation. Returns the ids of members and former ones.

        Nothing moves before everything is read. A read that fails halfway would otherwise lose readers of
        what has changed: they are found by what they have read so far.
        """
        changes = self._store.intent.changes(self._partition, self._sequence, governance.sequence)
        changed = {item.id: item.after for item in changes}
        for id in set().union(*(self._readers.get(id, ()) for id in changed)).difference(changed):
            changed[id] = self.contents.asset(id, governance.sequence)
        places = {
            id: None if asset is None else self._place(asset, governance) for id, asset in changed.items()
        }
        for id, place in places.items():
            self._displace(id)
            self._put(id, place)
        return set(places)

    def _place(self, asset: Asset, governance: Governance) -> _Place | None:
        """Where intent has an asset; None if no policy governs it."""
        policy = governance.policies.of(asset)
        if policy is None:
            return None
        labels = _labels(asset)
        unit = labels.get(policy.payload.unit, asset.id) if policy.payload.unit else asset.id
        content = self.contents.content(asset, governance.sequence)
        return _Place(policy.id, unit, labels, content, governance.sequence)

    def _put(self, id: AssetId, place: _Place | None) -> None:
        if place is None:
            return
        self._places[id] = place
        for other in place.content.reads:
            self._readers.setdefault(other, set()).add(id)

    def _displace(self, id: AssetId) -> None:
        place = self._places.pop(id, None)
        if place is not None:
            self._group(place.policy).remove(id)
            for other in place.content.reads:
                self._readers[other].discard(id)

    def _enter(self, id: AssetId, releases: Releases) -> None:
        """Note a member as intent and its releases have it."""
        place = self._places.get(id)
        if place is None:
            return
        if releases.frees(id):
            self._group(place.policy).remove(id)
            return
        released = releases.of(id)
        release = None if released is None else released.release
        member = Member(
            id=id,
            unit=place.unit,
            labels=place.labels,
            newest=place.content.key,
            released=None if release is None else release.content_key,
            released_at=0 if release is None else release.target or 0,
            release="" if release is None else release.id,
            taken_back=release is not None and release.kind is ReleaseKind.ROLLBACK,
            known=releases.knows(id),
        )
        self._group(place.policy).put(member)

    # --- how they are -----------------------------------------------------------------------

    def _moment(self, rollout: Rollout | None, governance: Governance, now: float) -> _Moment:
        target = 0 if rollout is None else rollout.target
        try:
            self._store.intent.require_kept(self._partition, target)
        except PrunedError:
            target = 0
        return _Moment(rollout, target, governance, now, ClosedTimes(self._times, now))

    def _current(self, member: Member, moment: _Moment) -> Member:
        """A member as a step needs it."""
        updated = moment.rollout is not None and member.unit in moment.rollout.updated
        if not member.known or member.wants_newest or updated:
            return self._in_play(member, moment)
        return member

    def _applied(self, member: Member) -> Member:
        """A member with what was applied last, and whether a push of it may be under way."""
        key = AssetKey(self._partition, member.id)
        entry = self._store.records.ledger(key)
        at = 0 if entry is None or entry.goal is not Goal.PRESENT else entry.content
        applied = self._key(member.id, at)
        if applied is None:
            return member
        standing = self._store.records.standing(key)
        busy = standing is not None and standing.condition.status in _BUSY
        return replace(member, applied=applied, applied_at=at, busy=busy)

    def _in_play(self, member: Member, moment: _Moment) -> Member:
        """The same, with everything that matters while its content is about to change, or has changed."""
        key = AssetKey(self._partition, member.id)
        entry, standing = self._store.records.ledger(key), self._store.records.standing(key)
        applied_at = 0 if entry is None or entry.goal is not Goal.PRESENT else entry.content
        released = member.released is not None and member.released_at == applied_at
        applied = member.released if released else self._key(member.id, applied_at)
        good, why, busy, waits = None, "", False, False
        awaits: tuple[AssetId, ...] = ()
        if standing is not None:
            condition = standing.condition
            good = _is_good(condition.status, condition.reason)
            busy = condition.status in _BUSY
            waits = condition.status is Status.WAITING and condition.reason in _WAITING
            if condition.status is Status.WAITING and not waits:
                awaits = self._awaits(member.id)
            why = "" if good else f"{condition.status} {condition.reason}: {condition.message}"
            if good is False and not self._is_under_release(member):
                good, why = None, f"not looked at under its release yet; before that, {why}"
            if condition.status is Status.TURNED_DOWN and self._leaves(member.id, member.released_at):
                applied = member.released
            if condition.status is Status.CONVERGED and applied != member.released:
                applied = self._compared(member) or applied
        if not busy and applied != member.released and (failed := self._failed(member)):
            good, why = False, failed
        closed = self._closed(member.id, moment)
        had = {} if moment.rollout is None else moment.rollout.before
        return replace(
            member,
            target=self._key(member.id, moment.target),
            before=self._key(member.id, had.get(member.id, 0)),
            leaves=self._leaves(member.id, moment.target),
            applied=applied,
            applied_at=applied_at if applied is not None else 0,
            applied_since=entry.at if entry is not None and applied is not None else None,
            good=good,
            why=why,
            adopted=entry is not None and self._is_adopted(member, entry),
            busy=busy,
            waits=waits,
            awaits=awaits,
            held=self._held(member.id, moment),
            closed="" if closed is None else closed.why,
            closed_until=None if closed is None else closed.until,
        )

    def _leaves(self, id: AssetId, sequence: int) -> bool:
        """Whether an incarnation asks for the turndown of an asset."""
        found = self.content(id, sequence)
        return found is not None and found.leaves

    def _key(self, id: AssetId, sequence: int) -> Digest | None:
        found = self.content(id, sequence)
        return None if found is None else found.key

    def _compared(self, member: Member) -> Digest | None:
        """The released content if production was last found to be as it asks for; None if it was not.

        The ledger may have an earlier incarnation: what a push read of other assets may have been newer.
        """
        for _, decision in self._store.records.decisions(self._partition, member.id, 1):
            if self._key(member.id, decision.content) == member.released:
                return member.released
        return None

    def _awaits(self, id: AssetId) -> tuple[AssetId, ...]:
        """The assets that the push of an asset waits for: for their outputs, or by the order of pushes."""
        for _, decision in self._store.records.decisions(self._partition, id, 1):
            named = (
                other for verdict in decision.verdicts if not verdict.allow for other in verdict.wait_for
            )
            return tuple(dict.fromkeys((*decision.awaits, *named)))
        return ()

    def _is_under_release(self, member: Member) -> bool:
        """Whether the last decision about a member was made under its release: earlier ones prove nothing."""
        decisions = self._store.records.decisions(self._partition, member.id, 1)
        return any(decision.evidence.get("release") == member.release for _, decision in decisions)

    def _is_adopted(self, member: Member, entry: LedgerEntry) -> bool:
        """Whether production had what the member is released to without any push of it.

        If the incarnation of its last push is pruned, that may have been of this content.
        """
        if entry.operation is not None or self._key(member.id, entry.content) != member.released:
            return False
        pushes = self._store.records.operations(self._partition, member.id, 1)
        return all(self._key(member.id, push.content) not in (None, member.released) for push in pushes)

    def _failed(self, member: Member) -> str:
        """Why the last push under a member's release failed; empty if none has.

        Whatever it waits for since then, such as a rate limit. A push of the same content under an earlier
        release proves nothing: its cause may be gone, which is why a person tries again.
        """
        for push in self._store.records.operations(self._partition, member.id, 1):
            same = push.release == member.release and self._key(member.id, push.content) == member.released
            if same and push.result in (Result.FAILED, Result.STALLED):
                return f"its push failed: {push.message}"
        return ""

    def _held(self, id: AssetId, moment: _Moment) -> str:
        governance = moment.governance
        controls = governance.controls_over(id, moment.now)
        if not controls and not governance.observed:
            return ""
        asset = self.contents.asset(id, governance.sequence)
        if asset is None:
            return ""
        if (observed := governance.observe(asset)) is not None:
            return f"only observed: {observed}"
        return next(_reasons(controls, asset), "")

    def _closed(self, id: AssetId, moment: _Moment) -> Closed | None:
        """The calendar or freeze that keeps an asset from being pushed now; None for none."""
        asset = self.contents.asset(id, moment.governance.sequence) if moment.closed else None
        return None if asset is None else moment.closed.holding(asset, moment.governance)


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
