"""The loop of one asset, as a pure function: (state, event) to (state, effects).

A turn goes through `STEPS`, each entered by its event. Every effect but the last needs no
answer; the last one either asks for the event that comes next, or ends the turn (`Rest`,
`Again`, `StartPush`). So every crash point lies between two calls of `step`, and every decision
can be replayed from the events.

Architecture invariant: no I/O, clock, randomness or asyncio; all of it comes in by events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lehr.enforce.conclude import broken
from lehr.enforce.state import (
    Admitted,
    Begin,
    Broke,
    Checked,
    Deferred,
    Diffed,
    DiffFailed,
    Ended,
    Event,
    NotAdmitted,
    State,
    StatusReported,
)
from lehr.enforce.step.admission import admitted, checked, deferred, not_admitted
from lehr.enforce.step.begin import RETRY, begin
from lehr.enforce.step.comparison import INEFFECTIVE_PUSHES, diff_failed, diffed
from lehr.enforce.step.parts import StepResult
from lehr.enforce.step.push import ended
from lehr.enforce.step.unknown_outcome import status_reported

__all__ = ["INEFFECTIVE_PUSHES", "RETRY", "STEPS", "StepResult", "step"]


STEPS: dict[type, Callable[[State, Any], StepResult]] = {
    Begin: begin,
    StatusReported: status_reported,
    Diffed: diffed,
    DiffFailed: diff_failed,
    Checked: checked,
    Admitted: admitted,
    NotAdmitted: not_admitted,
    Deferred: deferred,
    Ended: ended,
    Broke: broken,
}
"""The steps of a turn, in their order, by the event that enters them."""


def step(state: State, event: Event) -> StepResult:
    """The next effects of the loop.

    Args:
        state: what `step` returned last for this asset, or a new `State`.
        event: the latest one; of the kind that the last effect asked for.
    """
    return STEPS[type(event)](state, event)
