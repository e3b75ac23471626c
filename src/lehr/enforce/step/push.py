"""A push has ended: it is verified, tried again, or needs a person."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.enforce.conclude import conclude
from lehr.enforce.state import Again, Commit, Ended, Phase, RunDiff, State
from lehr.enforce.step.kept import keep_handle
from lehr.enforce.step.parts import (
    StepResult,
    committed,
    content_key,
    diff_of,
    failed_again,
    ledger_entry,
    operation_of,
    target_of,
    turn_of,
)
from lehr.enforce.step.unknown_outcome import still_unknown
from lehr.model.decision import Condition, Status
from lehr.model.operation import Outcome, Result
from lehr.model.reason import Reason
from lehr.model.writes import Finish

_FIRST_LOOK = 0.5


def ended(state: State, event: Ended) -> StepResult:
    """The push has ended."""
    turn = turn_of(state)
    state = replace(
        state, turn=replace(turn, view=replace(turn.view, now=event.now, monotonic=event.monotonic))
    )
    # First: a crash between the two leaves an unknown outcome, with the handle that shows it.
    state, kept = keep_handle(state, event.outcome.handle)
    state, effects = _ended_with(state, event)
    return state, (*committed(kept), *effects)


def _ended_with(state: State, event: Ended) -> StepResult:
    operation, outcome = operation_of(state), event.outcome
    if outcome.result is Result.UNKNOWN:
        finish = Finish(operation.partition, operation.id, outcome, event.now)
        state = replace(state, operation=replace(operation, result=Result.UNKNOWN, message=outcome.message))
        return still_unknown(state, outcome.message, delay=_FIRST_LOOK, writes=(finish,))
    state = replace(state, operation=None)
    if outcome.result is Result.DONE:
        entry = ledger_entry(operation, event.now)
        finish = Finish(operation.partition, operation.id, outcome, event.now, entry)
        turn = replace(turn_of(state), diff=None, pushed=operation.diff_digest)
        state = replace(state, phase=Phase.VERIFYING, ledger=entry, turn=turn)
        return state, (Commit((finish,)), RunDiff(target_of(state, operation)))
    finish = Finish(operation.partition, operation.id, outcome, event.now)
    if event.superseded:
        state = replace(state, phase=Phase.IDLE, turn=None)
        return state, (Commit((finish,)), Again("newer content overtook the push"))
    return _push_failed(state, outcome, finish)


def _push_failed(state: State, outcome: Outcome, finish: Finish) -> StepResult:
    turn = turn_of(state)
    view = turn.view
    stalled = outcome.result is Result.STALLED
    count = _times(state.trouble.failures + 1)
    failure = (
        (
            Reason.PUSH_STALLED,
            outcome.message,
            f"fix the cause, then run `lehr retry {view.key.id}`; or change the intent",
        )
        if stalled
        else (
            Reason.PUSH_FAILED,
            f"push failed {count}: {outcome.message}",
            "wait; Lehr retries automatically",
        )
    )
    trouble = failed_again(state, content_key(turn), view, failure)
    if stalled:
        trouble = replace(trouble, stalled=True, diff_digest=diff_of(turn).digest(), not_before=0.0)
    elif outcome.retry_at is not None:
        delay = max(trouble.not_before - view.monotonic, outcome.retry_at - view.now)
        trouble = replace(trouble, not_before=view.monotonic + delay)
    return conclude(
        replace(state, trouble=trouble),
        Condition(Status.STALLED if stalled else Status.RETRYING, *failure),
        delay=None if stalled else trouble.not_before - view.monotonic,
        writes=(finish,),
        operation=finish.operation,
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
