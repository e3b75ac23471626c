"""The beginning of a turn: it ends here, or production is compared."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.enforce.conclude import conclude
from lehr.enforce.contest import NO_CONTEST
from lehr.enforce.state import NO_TROUBLE, AskStatus, Begin, Phase, RunDiff, State, Turn
from lehr.enforce.step.parts import StepResult
from lehr.model.decision import Condition, Status
from lehr.model.reason import Reason

RETRY = "retry"
"""Cause of a turn that an operator requested: earlier failures are forgotten."""


def begin(state: State, event: Begin) -> StepResult:
    """A turn begins."""
    view = event.view
    turn = Turn(view)
    if view.cause == RETRY:
        state = replace(state, trouble=NO_TROUBLE, contest=NO_CONTEST)
    if state.operation is not None:
        # Unknown outcomes are resolved before anything else is done.
        return replace(state, turn=turn, phase=Phase.ASKING_STATUS), (AskStatus(state.operation),)
    state = replace(state, turn=turn, phase=Phase.DIFFING)
    if view.pinning.pause is not None:
        pause = view.pinning.pause
        message = f"paused by {pause.actor}: {pause.reason}"
        condition = Condition(Status.HELD, Reason.PAUSED, message, "run `lehr resume`")
        return conclude(state, condition, looks=False)
    if view.orphaned:
        message = "intent let it go; it stays in production as it is"
        return conclude(state, Condition(Status.ORPHANED, Reason.LET_GO, message), settled=True)
    if view.asset is None and view.pinning.awaits_release:
        message = "releases govern it, and none allows it any content"
        condition = Condition(Status.HELD, Reason.AWAITING_RELEASE, message, "wait until it is released")
        return conclude(state, condition, looks=False)
    if view.asset is None:
        message = f"it is pinned to incarnation {view.pinning.content}, which does not have it"
        unblock = "run `lehr unpin`, or pin it to another incarnation"
        condition = Condition(Status.HELD, Reason.PINNED_TO_NOTHING, message, unblock)
        return conclude(state, condition, looks=False)
    if not view.served:
        message = f"no plugin serves type {view.asset.type}"
        condition = Condition(Status.STALLED, Reason.NO_PLUGIN, message, "install a plugin for this type")
        return conclude(state, condition, looks=False)
    return state, (RunDiff(state.identified(view.target)),)
