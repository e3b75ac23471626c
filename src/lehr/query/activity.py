"""The work on a partition: pushes of the last minutes, and what fails, waits and restarts most. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from lehr.base.moments import Moment
from lehr.model.asset import AssetId
from lehr.model.operation import Operation, Result
from lehr.model.outputs import Outputs
from lehr.query.asset_rows import Row, rows
from lehr.query.partition_view import Reading

MOST = 10
"""Pushes, groups and assets of each kind that are named."""

_MINUTE = 60.0
_WINDOW = 600.0
_PUSHES = 2000


class RunningPush(msgspec.Struct, frozen=True):
    """A push under way.

    Attributes:
        seconds: how long it has taken.
        unknown: its outcome is unknown, and it may have ended.
    """

    asset: AssetId
    type: str
    operation: str
    purpose: str
    started_at: Moment
    seconds: float
    unknown: bool


class Blocked(msgspec.Struct, frozen=True):
    """Assets of one type that are not settled for one reason.

    Attributes:
        count: how many there are.
        asset: the one that has been so for the longest time.
        since: that time; None before its first turn.
    """

    status: str
    reason: str
    type: str
    count: int
    asset: AssetId
    since: Moment | None


class Failing(msgspec.Struct, frozen=True):
    """An asset whose pushes have failed.

    Attributes:
        failures: within ten minutes.
        message: of the newest one.
    """

    asset: AssetId
    type: str
    failures: int
    message: str


class Restarting(msgspec.Struct, frozen=True):
    """An asset whose program was restarted because it had ended.

    Attributes:
        restarts: how often since its last push.
        looping: True if a replica is in a crash loop.
    """

    asset: AssetId
    restarts: int
    looping: bool


class Activity(msgspec.Struct, frozen=True):
    """The work on a partition at one moment. Of lists, the first `MOST`.

    Attributes:
        counts: number of assets by status.
        pushes_per_second, failures_per_second: those that began, and those that failed, in the last minute.
        open_pushes: number of pushes under way.
        running: these, longest first.
        blocked: largest group first.
        failing: most failures first.
        restarting: crash loops first, then most restarts first.
    """

    counts: dict[str, int]
    pushes_per_second: float
    failures_per_second: float
    open_pushes: int
    running: tuple[RunningPush, ...]
    blocked: tuple[Blocked, ...]
    failing: tuple[Failing, ...]
    restarting: tuple[Restarting, ...]


def read_activity(reading: Reading) -> Activity:
    """The work now."""
    records, partition = reading.records, reading.partition
    newest = records.operations(partition, None, _PUSHES)
    pushes = {item.id: item for item in newest}
    pushes |= {item.id: item for item in records.open_operations(partition)}
    newest_first = sorted(pushes.values(), key=lambda item: item.id, reverse=True)
    known = reading.now - newest[-1].started_at if len(newest) == _PUSHES else _WINDOW
    return activity(newest_first, rows(reading), records.outputs(partition), reading.now, known)


def activity(
    pushes: Sequence[Operation],
    found: Sequence[Row],
    outputs: Iterable[Outputs],
    now: float,
    known: float = _WINDOW,
) -> Activity:
    """The work at `now` (wall-clock seconds).

    Args:
        pushes: every one under way, and the newest others, newest first.
        found: the rows of all assets.
        outputs: those of all assets.
        known: seconds for which all pushes are among `pushes`.
    """
    under_way = [push for push in pushes if push.open]
    recent = [push for push in pushes if now - (push.ended_at or push.started_at) < _WINDOW]
    failed = [push for push in recent if push.result in (Result.FAILED, Result.STALLED)]
    return Activity(
        counts=dict(sorted(Counter(row.status for row in found).items())),
        pushes_per_second=_rate([push.started_at for push in recent], now, known),
        failures_per_second=_rate([push.ended_at or push.started_at for push in failed], now, known),
        open_pushes=len(under_way),
        running=tuple(_running(push, now) for push in sorted(under_way, key=lambda it: it.started_at)[:MOST]),
        blocked=_blocked(found),
        failing=_failing(failed),
        restarting=_restarting(outputs),
    )


def _rate(moments: Sequence[float], now: float, known: float) -> float:
    seconds = min(_MINUTE, max(known, 1.0))
    return sum(0 <= now - at < seconds for at in moments) / seconds


def _running(push: Operation, now: float) -> RunningPush:
    # A clock that was set back makes no push shorter than nothing.
    seconds = max(0.0, now - push.started_at)
    unknown = push.result is Result.UNKNOWN
    return RunningPush(push.asset, push.type, push.id, push.purpose, push.started_at, seconds, unknown)


def _blocked(found: Iterable[Row]) -> tuple[Blocked, ...]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in found:
        if not row.settled:
            groups.setdefault((row.status, row.reason, row.type), []).append(row)
    first = {key: min(members, key=_waiting_since) for key, members in groups.items()}
    blocked = [Blocked(*key, len(groups[key]), row.id, row.since) for key, row in first.items()]
    return tuple(sorted(blocked, key=lambda it: (-it.count, it.status, it.reason, it.type))[:MOST])


def _waiting_since(row: Row) -> tuple[float, str]:
    return row.since or 0.0, row.id


def _failing(failed: Iterable[Operation]) -> tuple[Failing, ...]:
    """Of several failures of an asset, the first is the newest."""
    newest: dict[AssetId, Operation] = {}
    counts: Counter[AssetId] = Counter()
    for push in failed:
        newest.setdefault(push.asset, push)
        counts[push.asset] += 1
    often = sorted(newest.values(), key=lambda push: (-counts[push.asset], push.asset))[:MOST]
    return tuple(Failing(push.asset, push.type, counts[push.asset], push.message) for push in often)


def _restarting(outputs: Iterable[Outputs]) -> tuple[Restarting, ...]:
    """Types of plugins that run programs have these outputs."""
    found = []
    for item in outputs:
        restarts = item.values.get("restarts")
        if isinstance(restarts, int) and restarts > 0:
            found.append(Restarting(item.asset, restarts, bool(item.values.get("crash_loops"))))
    return tuple(sorted(found, key=lambda it: (not it.looping, -it.restarts, it.asset))[:MOST])
