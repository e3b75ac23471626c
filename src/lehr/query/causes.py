"""Root causes: what assets that are not converged wait for in the end, through chains of assets. Pure.

An asset waits until every check allows its push, so assets that wait for each other in a cycle never go
ahead, whatever else happens: each strongly connected part of the graph of waits is one cause. Any other asset
counts under the first thing that it waits for. If that is an asset which is not converged either, it counts
under that asset's cause. So each asset counts once (docs/adr/0065-root-causes.md).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from lehr.base.cycles import components, shortest_cycle
from lehr.base.digest import digest_all
from lehr.base.moments import Moment
from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Verdict
from lehr.model.reason import Reason
from lehr.query.asset_rows import NO_TURN
from lehr.sdk.store import Unsettled

_NAMED = 10
"""Assets of a cycle that its message names."""

_ID_LENGTH = 16

_SHARED: frozenset[str] = frozenset(
    (
        Reason.CONCURRENCY_LIMIT,
        Reason.LEASE_LOST,
        Reason.LIMIT_REACHED,
        Reason.NO_PLUGIN,
        Reason.OBSERVE_ONLY,
        Reason.PAUSED,
        Reason.RETRY_BUDGET,
        Reason.STOPPING,
        Reason.STORE_UNAVAILABLE,
        NO_TURN,
    )
)
"""Reasons outside of the asset: all assets with the same one and the same message wait for one thing."""


class CauseKind(enum.StrEnum):
    """Kind of a root cause.

    ASSET: an asset that waits for no other one. CYCLE: assets that wait for each other. CHECK: a check, or
    what configures it: a freeze, a calendar, a rate limit. ROLLOUT: a rollout policy that has not released
    content yet. CONDITION: something else that assets may share, such as a pause or a missing plugin.
    """

    ASSET = "asset"
    CYCLE = "cycle"
    CHECK = "check"
    ROLLOUT = "rollout"
    CONDITION = "condition"


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Something that assets wait for, directly or through other assets.

    Attributes:
        id: stays the same for the same cause.
        root: the asset, the check with what configures it (`calendar/office-hours`), the rollout policy, or
            the first asset of the cycle; empty for a condition, which its message describes.
        status: of the root asset, or of the assets that wait directly; empty if it is not one of theirs.
        since: the earliest time since when an asset has waited directly.
        next_at: the earliest time at which time alone may change it; None if not known.
        count: number of assets; a root asset and the assets of a cycle are included.
        examples: some of them, those that wait directly first, then those that have waited longest.
        cycle: assets that wait for each other in this order, the first also last.
    """

    id: str
    kind: CauseKind
    root: str
    status: str = ""
    reason: str = ""
    message: str = ""
    unblock: str = ""
    since: Moment | None = None
    next_at: Moment | None = None
    count: int = 0
    examples: tuple[AssetId, ...] = ()
    cycle: tuple[AssetId, ...] = ()


class RootCauses(msgspec.Struct, frozen=True):
    """The root causes of all assets that are not converged.

    Attributes:
        count: how many assets that is.
        causes: each asset counts under one of them; the one with most assets first.
    """

    count: int
    causes: tuple[Cause, ...]


class Circumstances(msgspec.Struct, frozen=True):
    """Facts about assets that do not wait.

    Attributes:
        settled: condition of an asset that is settled; None for one that intent does not have.
        policy: the rollout policy that governs an asset which waits for a release; None for none.
    """

    settled: Callable[[AssetId], Condition | None]
    policy: Callable[[AssetId], AssetId | None]


class _Group:
    """A cause and its assets."""

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        self.direct: list[Unsettled] = []
        self.indirect: list[Unsettled] = []

    def finished(self, among: Collection[AssetId] | None, most: int) -> Cause | None:
        """The cause with what its assets have in common; None if none of them counts."""
        counted = [
            item
            for of in (self.direct, self.indirect)
            for item in sorted(of, key=_by_age)
            if among is None or item.standing.asset in among
        ]
        if not counted:
            return None
        first = min(self.direct, key=_by_age, default=None)
        times = [at for at in map(_next_at, self.direct) if at is not None]
        return msgspec.structs.replace(
            self.cause,
            since=None if first is None else first.standing.since,
            next_at=min(times, default=None),
            count=len(counted),
            examples=tuple(item.standing.asset for item in counted[:most]),
        )


def root_causes_of(
    unsettled: Mapping[AssetId, Unsettled],
    circumstances: Circumstances,
    *,
    most: int = 5,
    among: Collection[AssetId] | None = None,
) -> tuple[Cause, ...]:
    """The root causes of all `unsettled` assets. Takes time in proportion to these and their waits.

    Args:
        most: assets of a cause that are named.
        among: count and name only these; None for all.
    """
    waits = {id: tuple(_unmet(item, unsettled)) for id, item in unsettled.items()}
    groups: dict[str, _Group] = {}
    group_of: dict[AssetId, _Group] = {}
    for part in components(waits, waits.__getitem__):
        if len(part) > 1:
            cause = _cycle(part, waits)
            group = groups[cause.id] = _Group(cause)
            for id in part:
                group_of[id] = group
                group.direct.append(unsettled[id])
            continue
        [id] = part
        item = unsettled[id]
        found = _first_unmet(item, unsettled, circumstances)
        if isinstance(found, Cause):
            group = groups.setdefault(found.id, _Group(found))
            group.direct.append(item)
        else:
            group = group_of[found]
            group.indirect.append(item)
        group_of[id] = group
    finished = (group.finished(among, most) for group in groups.values())
    return tuple(sorted((cause for cause in finished if cause is not None), key=cause_order))


def cause_order(cause: Cause) -> tuple[int, str]:
    """The one with most assets first. No two causes are equal in it."""
    return -cause.count, cause.id


def _unmet(item: Unsettled, unsettled: Mapping[AssetId, Unsettled]) -> Iterator[AssetId]:
    """The assets that are not settled and that this one waits for, in order."""
    own = item.standing.asset
    named = (id for verdict in item.verdicts for id in verdict.wait_for)
    return (id for id in dict.fromkeys((*item.awaits, *named)) if id in unsettled and id != own)


def _first_unmet(
    item: Unsettled, unsettled: Mapping[AssetId, Unsettled], circumstances: Circumstances
) -> AssetId | Cause:
    """The asset that it waits for, if this is unsettled; else the cause."""
    own, condition = item.standing.asset, item.standing.condition
    if condition.reason == Reason.AWAITING_RELEASE:
        return _of_rollout(circumstances.policy(own), condition)
    verdict = next(iter(item.verdicts), None)
    ids = item.awaits or (() if verdict is None else verdict.wait_for)
    others = [id for id in ids if id != own]
    if others:
        first = next((id for id in others if id in unsettled), None)
        return _of_settled(others[0], verdict, condition, circumstances) if first is None else first
    return _of_condition(own, condition) if verdict is None else _of_check(verdict)


def _of_check(verdict: Verdict) -> Cause:
    return _cause(
        CauseKind.CHECK,
        verdict.check,
        reason=verdict.reason,
        message=verdict.message,
        unblock=verdict.unblock or f"wait until {verdict.check} allows it",
    )


def _of_rollout(policy: AssetId | None, condition: Condition) -> Cause:
    if policy is None:
        return _cause(
            CauseKind.ROLLOUT,
            "",
            reason=condition.reason,
            message="no rollout policy governs them any more, so nothing newer is released to them",
            unblock="`lehr rollout release ASSET --reason TEXT` lets an asset follow intent again",
        )
    return _cause(
        CauseKind.ROLLOUT,
        policy,
        reason=condition.reason,
        message="newer content is not released to them yet",
        unblock=f"see `lehr rollout show {policy}`",
    )


def _of_settled(
    id: AssetId, verdict: Verdict | None, condition: Condition, circumstances: Circumstances
) -> Cause:
    """An awaited asset on which nothing is left to do: it is pinned, or not in intent."""
    settled = circumstances.settled(id)
    if settled is not None and settled.reason == Reason.PINNED:
        return _cause(
            CauseKind.ASSET,
            id,
            status=settled.status,
            reason=settled.reason,
            message=settled.message,
            unblock=Reason.PINNED.unblock,
        )
    said = condition if verdict is None else verdict
    return _cause(
        CauseKind.ASSET,
        id,
        status="" if settled is None else settled.status,
        reason=said.reason,
        message=said.message,
        unblock=said.unblock,
    )


def _of_condition(id: AssetId, condition: Condition) -> Cause:
    shared = condition.reason in _SHARED
    message = condition.message
    if condition.reason == Reason.OBSERVE_ONLY:
        message = Reason.OBSERVE_ONLY.meaning  # its own names what differs
    no_turn = condition.reason == NO_TURN
    return _cause(
        CauseKind.CONDITION if shared else CauseKind.ASSET,
        "" if shared else id,
        status=NO_TURN if no_turn else condition.status,
        reason="" if no_turn else condition.reason,
        message=message,
        unblock=condition.unblock,
    )


def _cycle(part: list[AssetId], waits: Mapping[AssetId, tuple[AssetId, ...]]) -> Cause:
    within, first = set(part), min(part)
    cycle = shortest_cycle(first, lambda id: (other for other in waits[id] if other in within))
    named = " waits for ".join(cycle if len(cycle) <= _NAMED else (*cycle[: _NAMED - 1], "...", first))
    return _cause(
        CauseKind.CYCLE,
        first,
        reason=Reason.MUTUAL_BLOCK,
        message=f"{named}: none of them can go first",
        unblock=Reason.MUTUAL_BLOCK.unblock,
        cycle=cycle,
    )


def _cause(
    kind: CauseKind,
    root: str,
    *,
    reason: str,
    message: str,
    unblock: str,
    status: str = "",
    cycle: tuple[AssetId, ...] = (),
) -> Cause:
    known_by = (message, unblock) if kind is CauseKind.CONDITION else ()
    return Cause(
        id=digest_all((kind, root, reason, *known_by))[:_ID_LENGTH],
        kind=kind,
        root=root,
        status=status,
        reason=reason,
        message=message,
        unblock=unblock,
        cycle=cycle,
    )


def _next_at(item: Unsettled) -> float | None:
    """When time alone may change what the asset waits for."""
    untils = [verdict.until for verdict in item.verdicts[:1] if verdict.until is not None]
    return untils[0] if untils else item.standing.condition.next_at


def _by_age(item: Unsettled) -> tuple[float, AssetId]:
    return item.standing.since, item.standing.asset
