"""Whether a `lehr run` is active on a state, and when it last checked the source and production."""

from __future__ import annotations

import msgspec

from lehr.base.moments import Moment


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The history that an active `lehr run` keeps when it prunes, in addition to what it needs.

    Attributes:
        seconds: everything younger is kept.
        incarnations: number of newest incarnations that are kept.
        pruned_at: when it last removed something; None if it has removed nothing since it started.
    """

    seconds: float
    incarnations: int
    pruned_at: Moment | None = None


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """The work of an active `lehr run`.

    Attributes:
        turns: how many it has run since it started.
        queued: turns that wait to begin, by plugin.
    """

    turns: int
    queued: dict[str, int]


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """The `lehr run` of a state at one moment.

    Attributes:
        active: it is running and answers.
        now: wall-clock seconds of this answer, by the clock of its machine.
        process: its process id; if not `active`, a process that is starting or ending and does not
            answer.
        partition: the one that it enforces.
        seen_at: wall-clock seconds of the last sign of life; None if there never was one.
        source_looked_at: start of its last completed check of the source.
        production_looked_at: when it last compared an asset with production.
        standby: why it does nothing, if another process enforces the partition; otherwise empty.
        load: its work; None if it is not active.
        history: the history it keeps; None if it does not prune automatically, or is not active.
        progress: what each push under way last reported, by the id of its operation.
    """

    active: bool
    now: Moment
    process: int | None = None
    partition: str | None = None
    seen_at: Moment | None = None
    source_looked_at: Moment | None = None
    production_looked_at: Moment | None = None
    standby: str = ""
    load: Load | None = None
    history: History | None = None
    progress: dict[str, str] = {}


def turns_per_second(before: RunState, now: RunState) -> float | None:
    """The rate between two moments; None if it was not one process in between."""
    seconds = now.now - before.now
    if before.load is None or now.load is None or before.process != now.process or seconds <= 0:
        return None
    return max(0.0, (now.load.turns - before.load.turns) / seconds)


def idle(now: float) -> RunState:
    """No `lehr run`, now or in the past."""
    return RunState(active=False, now=now)
