"""A push whose outcome is not known: nothing else is done before it is."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.base.backoff import delay as backoff
from lehr.base.digest import digest_all
from lehr.enforce.conclude import conclude
from lehr.enforce.state import Again, Commit, Phase, RunDiff, State, StatusReported
from lehr.enforce.step.parts import (
    LOOK_AGAIN,
    LOOK_AT_LEAST,
    StepResult,
    failed_again,
    ledger_entry,
    operation_of,
    target_of,
    turn_of,
)
from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Status
from lehr.model.diff import Diff, Goal
from lehr.model.operation import Operation, Outcome, Progress, Result
from lehr.model.reason import Reason
from lehr.model.writes import Finish


def status_reported(state: State, event: StatusReported) -> StepResult:
    """The plugin has answered whether the push still runs."""
    operation = operation_of(state)
    if event.progress is Progress.ENDED:
        target = replace(target_of(state, operation), lost=operation.id)
        return replace(state, phase=Phase.RESOLVING), (RunDiff(target),)
    running = event.progress is Progress.RUNNING
    if running and _is_fenced(state, operation):
        message = "it was still running when another process took over, and is not waited for"
        outcome = Outcome(Result.FAILED, f"{message}: its provider refuses late writes")
        return _resolved(state, Finish(operation.partition, operation.id, outcome, turn_of(state).view.now))
    answer = "it is still running" if running else event.message
    message = f"{operation.message}; {answer}" if operation.message else answer
    return still_unknown(state, message, delay=LOOK_AGAIN if running else None)


def _is_fenced(state: State, operation: Operation) -> bool:
    """Whether a push that still runs can do no lasting harm. Invariant: I5, I12.

    It was started under an earlier lease: the provider cannot distinguish two pushes of the same epoch. It
    changes an asset that is there and stays: until a newer push is made, nothing refuses the late one, so an
    asset that was found to be absent could appear after its last look.
    """
    view = turn_of(state).view
    stays = state.ledger is not None and view.goal is operation.goal is Goal.PRESENT
    return view.fenced and operation.epoch < view.epoch and stays


def still_unknown(
    state: State,
    message: str,
    *,
    delay: float | None = None,
    writes: tuple[Finish, ...] = (),
    wait_for: tuple[AssetId, ...] = (),
) -> StepResult:
    """The turn ends, and the plugin is asked again after `delay` seconds."""
    operation = operation_of(state)
    if delay is None:
        # A plugin that cannot answer now may never be able to: look less and less often.
        delay = backoff(state.turns + 3, turn_of(state).view.jitter, longest=LOOK_AT_LEAST)
    condition = Condition(
        Status.UNKNOWN,
        Reason.OUTCOME_UNKNOWN,
        f"the outcome of push {operation.id} is not known: {message}",
        "wait until it is known; Lehr keeps asking, and changes nothing before",
    )
    return conclude(state, condition, delay=delay, writes=writes, operation=operation.id, wait_for=wait_for)


def resolve(state: State, diff: Diff) -> StepResult:
    """The plugin reports that the push has ended; production shows the result."""
    if not diff.empty:
        return resolve_failed(state, f"differs in {diff.summary()}", "found not applied")
    operation, view = operation_of(state), turn_of(state).view
    outcome = Outcome(Result.DONE, "found applied after its outcome was unknown")
    entry = ledger_entry(operation, view.now)
    state = replace(state, ledger=entry)
    return _resolved(state, Finish(operation.partition, operation.id, outcome, view.now, entry))


def resolve_failed(state: State, seen: str, found: str) -> StepResult:
    """The push has ended, and production does not show its result."""
    operation, view = operation_of(state), turn_of(state).view
    outcome = Outcome(Result.FAILED, f"{found} after its outcome was unknown")
    failure = (Reason.PUSH_FAILED, f"{seen}; push {operation.id}: {outcome.message}", "time")
    trouble = failed_again(state, digest_all((operation.content_digest, operation.goal)), view, failure)
    return _resolved(
        replace(state, trouble=trouble), Finish(operation.partition, operation.id, outcome, view.now)
    )


def _resolved(state: State, finish: Finish) -> StepResult:
    state = replace(state, phase=Phase.IDLE, operation=None, turn=None)
    return state, (Commit((finish,)), Again(f"outcome of {finish.operation} is known"))
