"""Whether a `lehr run` is active on a state, and when it last looked at the source and at production."""

from __future__ import annotations

import msgspec

from lehr.base.moments import Moment


class RunState(msgspec.Struct, frozen=True, kw_only=True):
    """The `lehr run` of a state, as it is at one moment.

    Attributes:
        active: it runs and answers.
        now: wall-clock seconds of this answer, by the clock of that machine.
        process: its process id; with `active` False, a process that starts or ends and does not answer yet.
        partition: what it keeps as intended.
        seen_at: wall-clock seconds of the last sign of life; None if there never was one.
        source_looked_at: when its last completed look at the source began.
        production_looked_at: when it last compared an asset with production.
    """

    active: bool
    now: Moment
    process: int | None = None
    partition: str | None = None
    seen_at: Moment | None = None
    source_looked_at: Moment | None = None
    production_looked_at: Moment | None = None


def idle(now: float) -> RunState:
    """No `lehr run`, and none that was ever seen."""
    return RunState(active=False, now=now)
