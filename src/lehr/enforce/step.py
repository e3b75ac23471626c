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

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from lehr.base.backoff import delay as backoff
from lehr.base.clock import iso
from lehr.base.digest import Digest, canonical, digest_all, short
from lehr.enforce.conclude import broken, conclude, decision_of, pushing_condition
from lehr.enforce.contest import NO_CONTEST
from lehr.enforce.state import (
    NO_TROUBLE,
    Admitted,
    Again,
    AskAdmission,
    AskStatus,
    Begin,
    Broke,
    Checked,
    Commit,
    Deferred,
    Diffed,
    DiffFailed,
    Effect,
    Ended,
    Event,
    NotAdmitted,
    Phase,
    Rest,
    RunChecks,
    RunDiff,
    StartPush,
    State,
    StatusReported,
    Trouble,
    Turn,
    View,
)
from lehr.model.asset import Asset, AssetId
from lehr.model.decision import Condition, Reservation, Status
from lehr.model.diff import Diff, Goal, Target
from lehr.model.handle import Handle
from lehr.model.operation import LedgerEntry, Operation, Outcome, Progress, Purpose, Result, purpose_of
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.writes import (
    Admit,
    Adopt,
    Basis,
    Finish,
    KeepHandle,
    KeepOutputs,
    LiftControl,
    Refused,
    Write,
)

StepResult = tuple[State, tuple[Effect, ...]]

RETRY = "retry"
"""Cause of a turn that an operator requested: earlier failures are forgotten."""

INEFFECTIVE_PUSHES = 3
"""Pushes in a row that may succeed and leave the same diff before an operator is needed."""

_AS_INTENDED = Condition(Status.CONVERGED, Reason.AS_INTENDED, "production is as intended")

_FIRST_LOOK = 0.5
_LOOK_AGAIN = 5.0
_LOOK_AT_LEAST = 60.0
_ASK_AGAIN = 0.2
_REFUSALS = 4
"""Admissions in a row that may find a turn out of date before that is reported."""

_MUST_NOT_CHANGE: dict[str, str] = {
    Reason.CLAIMED_ELSEWHERE: "turn the other asset down or let it go in its partition,"
    " or claim something else (see `lehr claims`)",
    Reason.CLAIMED_HERE: "wait until the other asset is removed or gives up the claim,"
    " or claim something else (see `lehr claims`)",
    Reason.PROTECTED_PATH: "choose a path outside it, or remove the symbolic link that leads there",
}
"""How to unblock an asset that claims what it must not change, by the reason of the refusal."""


def step(state: State, event: Event) -> StepResult:
    """The next effects of the loop.

    Args:
        state: what `step` returned last for this asset, or a new `State`.
        event: the latest one; of the kind that the last effect asked for.
    """
    return STEPS[type(event)](state, event)


# --- pin ---------------------------------------------------------------------


def _begin(state: State, event: Begin) -> StepResult:
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


# --- look --------------------------------------------------------------------


def _status_reported(state: State, event: StatusReported) -> StepResult:
    operation = _operation(state)
    if event.progress is Progress.ENDED:
        target = replace(_target_of(state, operation), lost=operation.id)
        return replace(state, phase=Phase.RESOLVING), (RunDiff(target),)
    running = event.progress is Progress.RUNNING
    if running and _is_fenced(state, operation):
        message = "it was still running when another process took over, and is not waited for"
        outcome = Outcome(Result.FAILED, f"{message}: its provider refuses late writes")
        return _resolved(state, Finish(operation.partition, operation.id, outcome, _turn(state).view.now))
    answer = "it is still running" if running else event.message
    message = f"{operation.message}; {answer}" if operation.message else answer
    return _still_unknown(state, message, delay=_LOOK_AGAIN if running else None)


def _is_fenced(state: State, operation: Operation) -> bool:
    """Whether a push that still runs can do no lasting harm. Invariant: I5, I12.

    It was started under an earlier lease: the provider cannot distinguish two pushes of the same epoch. It
    changes an asset that is there and stays: until a newer push is made, nothing refuses the late one, so an
    asset that was found to be absent could appear after its last look.
    """
    view = _turn(state).view
    stays = state.ledger is not None and view.goal is operation.goal is Goal.PRESENT
    return view.fenced and operation.epoch < view.epoch and stays


def _still_unknown(
    state: State,
    message: str,
    *,
    delay: float | None = None,
    writes: tuple[Finish, ...] = (),
    wait_for: tuple[AssetId, ...] = (),
) -> StepResult:
    operation = _operation(state)
    if delay is None:
        # A plugin that cannot answer now may never be able to: look less and less often.
        delay = backoff(state.turns + 3, _turn(state).view.jitter, longest=_LOOK_AT_LEAST)
    condition = Condition(
        Status.UNKNOWN,
        Reason.OUTCOME_UNKNOWN,
        f"the outcome of push {operation.id} is not known: {message}",
        "wait until it is known; Lehr keeps asking, and changes nothing before",
    )
    return conclude(state, condition, delay=delay, writes=writes, operation=operation.id, wait_for=wait_for)


def _resolve(state: State, diff: Diff) -> StepResult:
    """The plugin reports that the push has ended; production shows the result."""
    if not diff.empty:
        return _resolve_failed(state, f"differs in {diff.summary()}", "found not applied")
    operation, view = _operation(state), _turn(state).view
    outcome = Outcome(Result.DONE, "found applied after its outcome was unknown")
    entry = _entry(operation, view.now)
    state = replace(state, ledger=entry)
    return _resolved(state, Finish(operation.partition, operation.id, outcome, view.now, entry))


def _resolve_failed(state: State, seen: str, found: str) -> StepResult:
    operation, view = _operation(state), _turn(state).view
    outcome = Outcome(Result.FAILED, f"{found} after its outcome was unknown")
    failure = (Reason.PUSH_FAILED, f"{seen}; push {operation.id}: {outcome.message}", "time")
    trouble = _failed_again(state, digest_all((operation.content_digest, operation.goal)), view, failure)
    return _resolved(
        replace(state, trouble=trouble), Finish(operation.partition, operation.id, outcome, view.now)
    )


def _resolved(state: State, finish: Finish) -> StepResult:
    state = replace(state, phase=Phase.IDLE, operation=None, turn=None)
    return state, (Commit((finish,)), Again(f"outcome of {finish.operation} is known"))


# --- diff --------------------------------------------------------------------


def _diffed(state: State, event: Diffed) -> StepResult:
    diff = event.diff
    state, handle = _keep_handle(state, diff.handle)
    is_gone = diff.empty and _goal(state) is Goal.ABSENT
    state, outputs = _keep_outputs(state, {} if is_gone else diff.outputs)
    if diff.handle is not UNSET or diff.outputs is not UNSET:
        event = replace(event, diff=replace(diff, handle=UNSET, outputs=UNSET))
    state, effects = _compared(state, event)
    return state, (*_committed((*handle, *outputs)), *effects)


def _compared(state: State, event: Diffed) -> StepResult:
    if state.phase is Phase.RESOLVING:
        return _resolve(state, event.diff)
    turn = replace(
        _turn(state), diff=event.diff, content_digest=event.content_digest, elsewhere=event.elsewhere
    )
    verifying, trouble = state.phase is Phase.VERIFYING, state.trouble
    if trouble.content_digest is not None and trouble.content_digest != _content_key(turn):
        trouble = NO_TROUBLE
    elif trouble.failed_diffs:
        trouble = replace(trouble, failed_diffs=0)
    if verifying and event.diff.empty:
        state = _repaired(state, _content_key(turn))
    state = replace(state, turn=turn, trouble=trouble)
    if event.diff.empty:
        return _converged(state)
    if event.diff.look_again is not None:
        soon = min(_LOOK_AT_LEAST, max(_ASK_AGAIN, event.diff.look_again))
        return conclude(state, _recovering(event.diff), delay=soon)
    if verifying:
        return _pushed_and_still_different(state)
    blocked = _obstacle(state)
    if blocked is not None:
        condition, delay = blocked
        return conclude(state, condition, delay=delay)
    return replace(state, phase=Phase.CHECKING), (RunChecks(turn.view, event.diff, _purpose(state)),)


def _recovering(diff: Diff) -> Condition:
    """Production fixes the difference: a push would do it twice, and use up a share of the limits."""
    message = f"production is recovering without a push: {diff.summary()} differs"
    message = "; ".join((message, *diff.notes))
    unblock = "wait until it has recovered; Lehr keeps checking"
    return Condition(Status.WAITING, Reason.RECOVERING, message, unblock)


def _obstacle(state: State) -> tuple[Condition, float | None] | None:
    """The condition that prevents a push before any check is asked, and its delay; None if nothing does."""
    turn, trouble = _turn(state), state.trouble
    view, diff = turn.view, _diff(turn)
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
    contested = state.contest.wait(_content_key(turn), view.monotonic)
    if contested:
        return _contested(view, diff), contested
    if _needs_approval(view, diff) and diff.digest() not in view.pinning.approved:
        # The message has the digest: an approval is for the diff that was recorded last.
        what = f"{diff.summary()} (diff {short(diff.digest())})"
        message = f"{what}: this push destroys data that cannot be restored"
        unblock = f"run `lehr approve {view.key.id} --reason TEXT`"
        return Condition(Status.WAITING, Reason.APPROVAL_NEEDED, message, unblock), None
    return None


def _repaired(state: State, content: Digest) -> State:
    """Remember a verified push: if it is undone again and again, there is another writer."""
    turn = _turn(state)
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


def _needs_approval(view: View, diff: Diff) -> bool:
    """A turndown was asked for explicitly; destruction inside a payload never was."""
    return diff.effects.destructive and view.goal is Goal.PRESENT


def _diff_failed(state: State, event: DiffFailed) -> StepResult:
    if state.phase is Phase.RESOLVING:
        if event.stalled or event.cycle:
            # It has ended, and this content cannot be compared, or not before what waits for this very asset:
            # newer content must get its turn. Whatever the push has made is looked for from then on.
            known = state.handle
            text = known.text if known is not None and known.type == _type(state) else ""
            state, kept = _with_handle(state, text, _operation(state).id)
            state, effects = _resolve_failed(state, event.message, "not comparable")
            return state, (*_committed(kept), *effects)
        return _still_unknown(state, event.message, wait_for=event.awaits or event.refers_to)
    if event.awaits:
        return _awaits_outputs(state, event)
    view = _turn(state).view
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
    turn = replace(_turn(state), awaits=event.awaits)
    trouble = replace(state.trouble, failed_diffs=0) if state.trouble.failed_diffs else state.trouble
    state = replace(state, turn=turn, trouble=trouble)
    if event.cycle:
        return conclude(state, _mutual_block(event.cycle), wait_for=event.awaits)
    condition = Condition(Status.WAITING, Reason.OUTPUT_UNKNOWN, event.message, event.fix)
    return conclude(state, condition, wait_for=event.awaits)


def _converged(state: State) -> StepResult:
    turn = _turn(state)
    view, digest = turn.view, turn.content_digest
    assert digest is not None
    if state.trouble is not NO_TROUBLE:
        state = replace(state, trouble=NO_TROUBLE)
    writes: tuple[Write, ...] = ()
    if view.goal is Goal.ABSENT and state.phase is Phase.VERIFYING:
        # Without a push of its own, nothing may just not be visible yet: its handle leads there later.
        state, writes = _keep_handle(state, "")
    entry = state.ledger
    if entry is None or entry.content_digest != digest or entry.goal is not view.goal:
        # What is fenced already is not fenced again: no push was necessary.
        fenced = entry is not None and entry.goal is view.goal is Goal.FENCED
        at = entry.at if entry is not None and fenced else view.now
        entry = LedgerEntry(
            view.key.partition, view.key.id, digest, view.pinning.content, view.goal, None, at
        )
        state = replace(state, ledger=entry)
        writes = (*writes, Adopt(entry))
    if view.goal in (Goal.DRAINED, Goal.FENCED) and view.stage.until is None:
        state = replace(state, phase=Phase.IDLE, turn=None)
        return state, (*_committed(writes), Again(f"turndown has reached {view.goal}"))
    condition, delay = _reached(view)
    writes += tuple(LiftControl(view.key.partition, item.id, view.now) for item in view.pinning.restarts)
    if notes := _diff(turn).notes:
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
    turn = _turn(state)
    view, diff = turn.view, _diff(turn)
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
        content_digest=_content_key(turn),
        ineffective=ineffective,
        same_diff_count=count,
        diff_digest=diff.digest(),
        not_before=view.monotonic + delay,
        last_failure=failure,
        stalled=stalled,
    )
    condition = Condition(Status.STALLED if stalled else Status.RETRYING, *failure)
    return conclude(replace(state, trouble=trouble), condition, delay=None if stalled else delay)


# --- check and admit ---------------------------------------------------------


def _checked(state: State, event: Checked) -> StepResult:
    turn = replace(_turn(state), verdicts=event.verdicts)
    state = replace(state, turn=turn)
    view = turn.view
    waiting = [verdict for verdict in event.verdicts if not verdict.allow]
    if not waiting:
        ahead = view.pinning.released_at
        if ahead > view.governing:
            # Invariant: I10. The content that this turn has read is older than the released one, and not it.
            message = f"it is released to incarnation {ahead}, which is newer than {view.governing}"
            return _not_admitted(state, NotAdmitted(Refused(Reason.OVERTAKEN, message)))
        return replace(state, phase=Phase.ADMITTING), (_ask_admission(state, event),)
    names = tuple(dict.fromkeys(id for verdict in waiting for id in verdict.wait_for))
    if event.cycle:
        return conclude(state, _mutual_block(event.cycle), wait_for=names)
    times = [verdict.until for verdict in waiting if verdict.until is not None]
    delay = max(0.0, min(times) - view.now) if times else None
    unblock = (verdict.unblock or f"wait until {verdict.check} allows it" for verdict in waiting)
    condition = Condition(
        Status.WAITING,
        waiting[0].reason,
        "; ".join(f"{verdict.check}: {verdict.message}" for verdict in waiting),
        "; ".join(dict.fromkeys(unblock)),
    )
    return conclude(state, condition, delay=delay, wait_for=names)


def _mutual_block(cycle: tuple[AssetId, ...]) -> Condition:
    chain = " waits for ".join((*cycle, cycle[0]))
    return Condition(
        Status.WAITING,
        Reason.MUTUAL_BLOCK,
        f"{chain}: none of them can go first",
        "change one of these dependencies, or what one of these changes does",
    )


def _ask_admission(state: State, event: Checked) -> AskAdmission:
    """Invariant: I3. No push without every verdict's consent, and without admission."""
    turn = _turn(state)
    view, diff = turn.view, _diff(turn)
    assert view.asset is not None
    assert turn.content_digest is not None
    operation = Operation(
        event.operation_id,
        view.key.partition,
        view.key.id,
        view.asset.type,
        view.goal,
        view.pinning.content,
        view.governing,
        turn.content_digest,
        diff.digest(),
        view.epoch,
        view.now,
        purpose=_purpose(state),
        release=view.pinning.release,
    )
    reservations: list[Reservation] = [r for verdict in event.verdicts for r in verdict.reservations]
    if view.goal is Goal.ABSENT:
        reservations += view.removals
    admit = Admit(
        operation,
        Basis(
            view.newest_digest,
            view.governance,
            view.controls,
            event.looked_at,
            _versions(view),
            event.others,
            view.releases,
        ),
        tuple(reservations),
        _needs_approval(view, diff),
        decision_of(state, pushing_condition(operation), operation=operation.id),
    )
    return AskAdmission(admit, retry=state.trouble.failures + state.trouble.ineffective > 0)


def _versions(view: View) -> tuple[Asset, ...]:
    return tuple(asset for asset in (view.newest, view.asset) if asset is not None)


def _purpose(state: State) -> Purpose:
    turn = _turn(state)
    assert turn.content_digest is not None
    view = turn.view
    pinning = view.pinning
    purpose = purpose_of(
        state.ledger, view.goal, pinning.content, turn.content_digest, taken_back=pinning.taken_back
    )
    return Purpose.RESTART if purpose is Purpose.REPAIR and view.restart(view.goal) else purpose


def _admitted(state: State, event: Admitted) -> StepResult:
    operation = event.operation
    state = replace(
        state,
        phase=Phase.PUSHING,
        operation=operation,
        condition_key=pushing_condition(operation).key(),
        turns=0,
        next_at=None,
        left=False,
        refused=0,
    )
    return state, (StartPush(operation, _target_of(state, operation)),)


def _not_admitted(state: State, event: NotAdmitted) -> StepResult:
    refused, view = event.refused, _turn(state).view
    if refused.reason == Reason.LEASE_LOST:
        return conclude(
            state,
            Condition(
                Status.STALLED, Reason.LEASE_LOST, refused.message, "stop one of the two control planes"
            ),
        )
    if refused.reason == Reason.STORE_UNAVAILABLE:
        condition = Condition(Status.RETRYING, refused.reason, refused.message, "fix the store")
        return conclude(state, condition, delay=backoff(3, view.jitter))
    if refused.reason == Reason.DAMAGED:
        unblock = "repair the damage; `lehr store check` lists all of it"
        return conclude(state, Condition(Status.STALLED, Reason.DAMAGED, refused.message, unblock))
    if refused.reason in (Reason.LIMIT_REACHED, Reason.APPROVAL_MISSING):
        # Shares that are held until a push ends come free without a notification.
        room = view.now + _LOOK_AGAIN if refused.reason == Reason.LIMIT_REACHED else None
        until = refused.until or room
        delay = None if until is None else max(0.0, until - view.now)
        unblock = "wait until the limit has room, or raise it"
        if refused.reason == Reason.APPROVAL_MISSING:
            unblock = f"run `lehr approve {view.key.id} --reason TEXT`"
        condition = Condition(Status.WAITING, refused.reason, refused.message, unblock)
        return conclude(state, condition, delay=delay)
    if refused.reason in _MUST_NOT_CHANGE:
        unblock = _MUST_NOT_CHANGE[refused.reason]
        condition = Condition(Status.WAITING, refused.reason, refused.message, unblock)
        return conclude(state, condition, delay=_LOOK_AT_LEAST, wait_for=event.wait_for)
    # The basis of the verdicts has changed: nothing is wrong, the turn is just out of date.
    count = state.refused + 1
    delay = backoff(count, 1.0, first=_ASK_AGAIN, longest=_LOOK_AGAIN)
    if count <= _REFUSALS:
        return replace(state, phase=Phase.IDLE, turn=None, refused=count), (Rest(delay=delay),)
    unblock = "wait; Lehr checks again automatically"
    condition = Condition(Status.WAITING, refused.reason, refused.message, unblock)
    state, effects = conclude(state, condition, delay=delay)
    return replace(state, refused=count), effects


def _deferred(state: State, event: Deferred) -> StepResult:
    condition = Condition(Status.WAITING, event.reason, event.message, "wait until a running push ends")
    return conclude(state, condition, delay=event.delay)


# --- push and verify ---------------------------------------------------------


def _ended(state: State, event: Ended) -> StepResult:
    turn = _turn(state)
    state = replace(
        state, turn=replace(turn, view=replace(turn.view, now=event.now, monotonic=event.monotonic))
    )
    # First: a crash between the two leaves an unknown outcome, with the handle that shows it.
    state, kept = _keep_handle(state, event.outcome.handle)
    state, effects = _ended_with(state, event)
    return state, (*_committed(kept), *effects)


def _ended_with(state: State, event: Ended) -> StepResult:
    operation, outcome = _operation(state), event.outcome
    if outcome.result is Result.UNKNOWN:
        finish = Finish(operation.partition, operation.id, outcome, event.now)
        state = replace(state, operation=replace(operation, result=Result.UNKNOWN, message=outcome.message))
        return _still_unknown(state, outcome.message, delay=_FIRST_LOOK, writes=(finish,))
    state = replace(state, operation=None)
    if outcome.result is Result.DONE:
        entry = _entry(operation, event.now)
        finish = Finish(operation.partition, operation.id, outcome, event.now, entry)
        turn = replace(_turn(state), diff=None, pushed=operation.diff_digest)
        state = replace(state, phase=Phase.VERIFYING, ledger=entry, turn=turn)
        return state, (Commit((finish,)), RunDiff(_target_of(state, operation)))
    finish = Finish(operation.partition, operation.id, outcome, event.now)
    if event.superseded:
        state = replace(state, phase=Phase.IDLE, turn=None)
        return state, (Commit((finish,)), Again("newer content overtook the push"))
    return _push_failed(state, outcome, finish)


def _push_failed(state: State, outcome: Outcome, finish: Finish) -> StepResult:
    turn = _turn(state)
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
    trouble = _failed_again(state, _content_key(turn), view, failure)
    if stalled:
        trouble = replace(trouble, stalled=True, diff_digest=_diff(turn).digest(), not_before=0.0)
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


def _failed_again(state: State, key: Digest, view: View, failure: tuple[str, str, str]) -> Trouble:
    failures = state.trouble.failures + 1
    not_before = view.monotonic + backoff(failures, view.jitter)
    return Trouble(key, failures, not_before=not_before, last_failure=failure)


# --- helpers ---------------------------------------------------------------


def _turn(state: State) -> Turn:
    assert state.turn is not None
    return state.turn


def _diff(turn: Turn) -> Diff:
    assert turn.diff is not None
    return turn.diff


def _operation(state: State) -> Operation:
    assert state.operation is not None
    return state.operation


def _target_of(state: State, operation: Operation) -> Target:
    partition, asset, type = operation.partition, operation.asset, operation.type
    content, goal = operation.content, operation.goal
    restart = _turn(state).view.restart(goal)
    return state.identified(Target(partition, asset, type, content, goal, restart=restart))


def _keep_handle(state: State, text: str | UnsetType) -> tuple[State, tuple[KeepHandle, ...]]:
    """The state with the handle that the plugin returned, if it did, and the write that keeps it."""
    known = state.handle
    if text is UNSET:
        if known is None or not known.lost or known.type != _type(state):
            return state, ()
        text = known.text  # what was lost has been looked for
    return _with_handle(state, text)


def _with_handle(state: State, text: str, lost: str = "") -> tuple[State, tuple[KeepHandle, ...]]:
    view, known = _turn(state).view, state.handle
    handle = Handle(view.key.partition, view.key.id, _type(state), text, view.now, lost)
    if known is not None and (known.type, known.text) == (handle.type, text):
        handle = replace(handle, at=known.at)
    if handle == known or (known is None and not handle):
        return state, ()
    return replace(state, handle=handle if handle else None), (KeepHandle(handle),)


def _keep_outputs(state: State, values: dict[str, Any] | UnsetType) -> tuple[State, tuple[KeepOutputs, ...]]:
    """The state with the outputs that the plugin returned, if it did, and the write that keeps them."""
    known = state.outputs
    if values is UNSET or (known is None and not values):
        return state, ()
    view, type = _turn(state).view, _type(state)
    if known is not None and known.type == type and canonical(known.values) == canonical(values):
        return state, ()
    outputs = Outputs(view.key.partition, view.key.id, type, values, view.now)
    return replace(state, outputs=outputs if values else None), (KeepOutputs(outputs),)


def _type(state: State) -> str:
    """Of the asset that the plugin was asked about."""
    asset = _turn(state).view.asset
    return asset.type if state.operation is None and asset is not None else _operation(state).type


def _goal(state: State) -> Goal:
    """The goal that production was compared with."""
    return _turn(state).view.goal if state.operation is None else state.operation.goal


def _committed(writes: tuple[Write, ...]) -> tuple[Commit, ...]:
    return (Commit(writes),) if writes else ()


def _entry(operation: Operation, at: float) -> LedgerEntry:
    return LedgerEntry(
        operation.partition,
        operation.asset,
        operation.content_digest,
        operation.content,
        operation.goal,
        operation.id,
        at,
    )


def _content_key(turn: Turn) -> Digest:
    assert turn.content_digest is not None
    return digest_all((turn.content_digest, turn.view.goal))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


STEPS: dict[type, Callable[[State, Any], StepResult]] = {
    Begin: _begin,
    StatusReported: _status_reported,
    Diffed: _diffed,
    DiffFailed: _diff_failed,
    Checked: _checked,
    Admitted: _admitted,
    NotAdmitted: _not_admitted,
    Deferred: _deferred,
    Ended: _ended,
    Broke: broken,
}
"""The steps of a turn, in their order, by the event that enters them."""
