"""Whether a `lehr run` is active on a state, and when it last looked at the source and at production."""

from __future__ import annotations

import msgspec

from lehr.base.moments import Moment


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The history that an active `lehr run` keeps when it prunes automatically, besides what is needed.

    Attributes:
        seconds: anything younger is kept.
        incarnations: the newest so many are kept.
        pruned_at: when it last removed something; None if it has removed nothing since it started.
    """

    seconds: float
    incarnations: int
    pruned_at: Moment | None = None


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """The `lehr run` of a state, as it is at one moment.

    Attributes:
        active: it runs and answers.
        now: wall-clock seconds of this answer, by the clock of that machine.
        process: its process id; with `active` False, a process that starts or ends and does not
            answer yet.
        partition: the one that it keeps as intended.
        seen_at: wall-clock seconds of the last sign of life; None if there never was one.
        source_looked_at: when its last completed look at the source began.
        production_looked_at: when it last compared an asset with production.
        history: the history it keeps; None where it prunes nothing automatically, or is not active.
    """

    active: bool
    now: Moment
    process: int | None = None
    partition: str | None = None
    seen_at: Moment | None = None
    source_looked_at: Moment | None = None
    production_looked_at: Moment | None = None
    history: History | None = None


def idle(now: float) -> RunState:
    """No `lehr run`, and none that was ever seen."""
    return RunState(active=False, now=now)
