"""Production has been compared: there is nothing to do, something is in the way, or checks are asked."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from lehr.base.backoff import delay as backoff
from lehr.base.clock import iso
from lehr.base.digest import Digest, short
from lehr.enforce.conclude import conclude
from lehr.enforce.state import NO_TROUBLE, Again, Diffed, DiffFailed, Phase, RunChecks, State, Trouble, View
from lehr.enforce.step.kept import keep_handle, keep_outputs, with_handle
from lehr.enforce.step.parts import (
    ASK_AGAIN,
    LOOK_AT_LEAST,
    StepResult,
    committed,
    content_key,
    diff_of,
    goal_of,
    mutual_block,
    operation_of,
    turn_of,
    type_of,
)
from lehr.enforce.step.unknown_outcome import resolve, resolve_failed, still_unknown
from lehr.model.decision import Condition, Status
from lehr.model.diff import Diff, Goal
from lehr.model.operation import LedgerEntry, Purpose, purpose_of
from lehr.model.reason import Reason
from lehr.model.writes import Adopt, LiftControl, Write

INEFFECTIVE_PUSHES = 3
"""Pushes in a row that may succeed and leave the same diff before an operator is needed."""

_PASSED = (Goal.DRAINED, Goal.FENCED)
"""Goals that a turndown passes on its way."""

_AS_INTENDED = Condition(Status.CONVERGED, Reason.AS_INTENDED, "production is as intended")


def diffed(state: State, event: Diffed) -> StepResult:
    """The plugin has compared production."""
    diff = event.diff
    is_gone = goal_of(state) is Goal.ABSENT and diff.empty
    if state.handle is None and diff.handle is UNSET and diff.outputs is UNSET and not is_gone:
        return _compared(state, event)
    state, handle = keep_handle(state, diff.handle)
    state, outputs = keep_outputs(state, {} if is_gone else diff.outputs)
    event = replace(event, diff=replace(diff, handle=UNSET, outputs=UNSET))
    state, effects = _compared(state, event)
    return state, (*committed((*handle, *outputs)), *effects)


def _compared(state: State, event: Diffed) -> StepResult:
    if state.phase is Phase.RESOLVING:
        return resolve(state, event.diff)
    turn = replace(
        turn_of(state), diff=event.diff, content_digest=event.content_digest, elsewhere=event.elsewhere
    )
    verifying, trouble = state.phase is Phase.VERIFYING, state.trouble
    if trouble.content_digest is not None and trouble.content_digest != content_key(turn):
        trouble = NO_TROUBLE
    elif trouble.failed_diffs:
        trouble = replace(trouble, failed_diffs=0)
    if verifying and event.diff.empty:
        state = _repaired(state, content_key(turn))
    state = replace(state, turn=turn, trouble=trouble)
    if event.diff.empty:
        return _converged(state)
    if event.diff.look_again is not None:
        soon = min(LOOK_AT_LEAST, max(ASK_AGAIN, event.diff.look_again))
        return conclude(state, _recovering(event.diff), delay=soon)
    if verifying:
        return _pushed_and_still_different(state)
    blocked = _obstacle(state)
    if blocked is not None:
        condition, delay = blocked
        return conclude(state, condition, delay=delay)
    return replace(state, phase=Phase.CHECKING), (RunChecks(turn.view, event.diff, purpose(state)),)


def _recovering(diff: Diff) -> Condition:
    """Production fixes the difference: a push would do it twice, and use up a share of the limits."""
    message = f"production is recovering without a push: {diff.summary()} differs"
    message = "; ".join((message, *diff.notes))
    unblock = "wait until it has recovered; Lehr keeps checking"
    return Condition(Status.WAITING, Reason.RECOVERING, message, unblock)


def _obstacle(state: State) -> tuple[Condition, float | None] | None:
    """The condition that prevents a push before any check is asked, and its delay; None if nothing does."""
    turn, trouble = turn_of(state), state.trouble
    view, diff = turn.view, diff_of(turn)
    if view.observe is not None:
        message = f"differs in {diff.summary()}; observed only: {view.observe}"
        return Condition(Status.HELD, Reason.OBSERVE_ONLY, message, "remove the lehr.ObserveOnly asset"), None
    if view.stage.held and view.stage.until is not None:
        message = f"differs in {diff.summary()}; its turndown was requested again and waits for its full time"
        condition = Condition(Status.WAITING, Reason.TURNDOWN_STANDS, message, "wait until it is over")
        return condition, view.stage.until - view.now
    if trouble.stalled and trouble.diff_digest in (None, diff.digest()):
        return Condition(Status.STALLED, *trouble.last_failure), None
    if view.monotonic < trouble.not_before:
        return Condition(Status.RETRYING, *trouble.last_failure), trouble.not_before - view.monotonic
    contested = state.contest.wait(content_key(turn), view.monotonic)
    if contested:
        return _contested(view, diff), contested
    if needs_approval(view, diff) and diff.digest() not in view.pinning.approved:
        # The message has the digest: an approval is for the diff that was recorded last.
        what = f"{diff.summary()} (diff {short(diff.digest())})"
        message = f"{what}: this push destroys data that cannot be restored"
        unblock = f"run `lehr approve {view.key.id} --reason TEXT`"
        return Condition(Status.WAITING, Reason.APPROVAL_NEEDED, message, unblock), None
    return None


def _repaired(state: State, content: Digest) -> State:
    """Remember a verified push: if it is undone again and again, there is another writer."""
    turn = turn_of(state)
    view = turn.view
    assert turn.pushed is not None
    contest = state.contest.verified(content, turn.pushed, view.monotonic, view.jitter)
    return replace(state, contest=contest)


def _contested(view: View, diff: Diff) -> Condition:
    return Condition(
        Status.RETRYING,
        Reason.CONTESTED,
        f"differs again in {diff.summary()}: something else undoes each push after its verification",
        f"stop the other writer, or run `lehr retry {view.key.id}`; Lehr pushes less and less often",
    )


def needs_approval(view: View, diff: Diff) -> bool:
    """A turndown was asked for explicitly; destruction inside a payload never was."""
    return diff.effects.destructive and view.goal is Goal.PRESENT


def purpose(state: State) -> Purpose:
    """The purpose that a push would have."""
    turn = turn_of(state)
    assert turn.content_digest is not None
    view = turn.view
    pinning = view.pinning
    purpose = purpose_of(
        state.ledger, view.goal, pinning.content, turn.content_digest, taken_back=pinning.taken_back
    )
    return Purpose.RESTART if purpose is Purpose.REPAIR and view.restart(view.goal) else purpose


def diff_failed(state: State, event: DiffFailed) -> StepResult:
    """The plugin could not compare production."""
    if state.phase is Phase.RESOLVING:
        if event.stalled or event.cycle:
            # It has ended, and this content cannot be compared, or not before what waits for this very asset:
            # newer content must get its turn. Whatever the push has made is looked for from then on.
            known = state.handle
            text = known.text if known is not None and known.type == type_of(state) else ""
            state, kept = with_handle(state, text, operation_of(state).id)
            state, effects = resolve_failed(state, event.message, "not comparable")
            return state, (*committed(kept), *effects)
        return still_unknown(state, event.message, wait_for=event.awaits or event.refers_to)
    if event.awaits:
        return _awaits_outputs(state, event)
    view = turn_of(state).view
    trouble = replace(state.trouble, failed_diffs=state.trouble.failed_diffs + 1)
    state = replace(state, trouble=trouble)
    if event.stalled:
        condition = Condition(
            Status.STALLED, Reason.DIFF_STALLED, event.message, event.fix or "fix the cause"
        )
        return conclude(state, condition, wait_for=event.refers_to)
    delay = backoff(trouble.failed_diffs, view.jitter)
    if event.until is not None:
        delay = max(delay, event.until - view.now)
    unblock = event.fix or "wait; Lehr retries automatically"
    condition = Condition(Status.RETRYING, Reason.DIFF_FAILED, event.message, unblock)
    return conclude(state, condition, delay=delay, wait_for=event.refers_to)


def _awaits_outputs(state: State, event: DiffFailed) -> StepResult:
    """Nothing is wrong: another asset has to be there first."""
    turn = replace(turn_of(state), awaits=event.awaits)
    trouble = replace(state.trouble, failed_diffs=0) if state.trouble.failed_diffs else state.trouble
    state = replace(state, turn=turn, trouble=trouble)
    if event.cycle:
        return conclude(state, mutual_block(event.cycle), wait_for=event.awaits)
    condition = Condition(Status.WAITING, Reason.OUTPUT_UNKNOWN, event.message, event.fix)
    return conclude(state, condition, wait_for=event.awaits)


def _converged(state: State) -> StepResult:
    turn = turn_of(state)
    view, digest = turn.view, turn.content_digest
    goal = view.goal
    assert digest is not None
    if state.trouble is not NO_TROUBLE:
        state = replace(state, trouble=NO_TROUBLE)
    writes: tuple[Write, ...] = ()
    if goal is Goal.ABSENT and state.phase is Phase.VERIFYING:
        # Without a push of its own, nothing may just not be visible yet: its handle leads there later.
        state, writes = keep_handle(state, "")
    entry = state.ledger
    if entry is None or entry.content_digest != digest or entry.goal is not goal:
        # What is fenced already is not fenced again: no push was necessary.
        fenced = entry is not None and entry.goal is goal is Goal.FENCED
        at = entry.at if entry is not None and fenced else view.now
        entry = LedgerEntry(view.key.partition, view.key.id, digest, view.pinning.content, goal, None, at)
        state = replace(state, ledger=entry)
        writes = (*writes, Adopt(entry))
    if view.stage.until is None and goal in _PASSED:
        state = replace(state, phase=Phase.IDLE, turn=None)
        return state, (*committed(writes), Again(f"turndown has reached {goal}"))
    condition, delay = _reached(view)
    if view.pinning.restarts:
        writes += tuple(LiftControl(view.key.partition, item.id, view.now) for item in view.pinning.restarts)
    if notes := diff_of(turn).notes:
        condition = replace(condition, message="; ".join((condition.message, *notes)))
    return conclude(
        state,
        condition,
        delay=delay,
        wait_for=view.stage.wait_for,
        writes=writes,
        settled=condition.status.settled,
    )


def _reached(view: View) -> tuple[Condition, float | None]:
    """The condition of an asset whose production matches this turn's goal."""
    stage = view.stage
    delay = None if stage.until is None else stage.until - view.now
    if stage.goal is Goal.ABSENT:
        return Condition(Status.TURNED_DOWN, Reason.REMOVED, "removed from production"), None
    if stage.obstacle is not None:
        reason, message, unblock = stage.obstacle
        return Condition(Status.WAITING, reason, f"turndown waits: {message}", unblock), None
    if stage.until is not None:
        what = "fenced" if stage.goal is Goal.FENCED else "requested"
        message = f"turndown is {what}; it continues at {iso(stage.until)}"
        return Condition(Status.WAITING, Reason.TURNDOWN_STANDS, message, "wait until then"), delay
    if view.pinning.awaits_release:
        message = f"as in incarnation {view.pinning.content}; newer content is not released to it yet"
        return Condition(Status.CONVERGED, Reason.AWAITING_RELEASE, message), None
    pinned = view.pinning.pin
    if pinned is not None:
        message = f"as in incarnation {view.pinning.content}; pinned by {pinned.actor}: {pinned.reason}"
        return Condition(Status.CONVERGED, Reason.PINNED, message), None
    return _AS_INTENDED, None


def _pushed_and_still_different(state: State) -> StepResult:
    """Never an endless loop: look again, push again after growing delays, then stall."""
    turn = turn_of(state)
    view, diff = turn.view, diff_of(turn)
    same = state.trouble.diff_digest == diff.digest()
    count = state.trouble.same_diff_count + 1 if same else 1
    ineffective = state.trouble.ineffective + 1
    delay = backoff(ineffective, view.jitter)
    message = f"the push succeeded, but production still differs in {diff.summary()}"
    again = f"run `lehr retry {view.key.id}`" if count >= INEFFECTIVE_PUSHES else "wait for the next try"
    unblock = f"{again}, or change the intent"
    failure = (Reason.PUSHED_STILL_DIFFERENT, message, unblock)
    stalled = count >= INEFFECTIVE_PUSHES
    trouble = Trouble(
        content_digest=content_key(turn),
        ineffective=ineffective,
        same_diff_count=count,
        diff_digest=diff.digest(),
        not_before=view.monotonic + delay,
        last_failure=failure,
        stalled=stalled,
    )
    condition = Condition(Status.STALLED if stalled else Status.RETRYING, *failure)
    return conclude(replace(state, trouble=trouble), condition, delay=None if stalled else delay)
