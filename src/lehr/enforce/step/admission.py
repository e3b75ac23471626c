"""Checks have answered: the asset waits, or its push asks for admission."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.base.backoff import delay as backoff
from lehr.enforce.conclude import conclude, decision_of, pushing_condition
from lehr.enforce.state import (
    Admitted,
    AskAdmission,
    Checked,
    Deferred,
    NotAdmitted,
    Phase,
    Rest,
    StartPush,
    State,
    View,
)
from lehr.enforce.step.comparison import needs_approval, purpose
from lehr.enforce.step.parts import (
    ASK_AGAIN,
    LOOK_AGAIN,
    LOOK_AT_LEAST,
    StepResult,
    diff_of,
    mutual_block,
    target_of,
    turn_of,
)
from lehr.model.asset import Asset
from lehr.model.decision import Condition, Reservation, Status
from lehr.model.diff import Goal
from lehr.model.operation import Operation
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Basis, Refused

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


def checked(state: State, event: Checked) -> StepResult:
    """All checks have answered."""
    turn = replace(turn_of(state), verdicts=event.verdicts)
    state = replace(state, turn=turn)
    view = turn.view
    waiting = [verdict for verdict in event.verdicts if not verdict.allow]
    if not waiting:
        ahead = view.pinning.released_at
        if ahead > view.governing:
            # Invariant: I10. The content that this turn has read is older than the released one, and not it.
            message = f"it is released to incarnation {ahead}, which is newer than {view.governing}"
            return not_admitted(state, NotAdmitted(Refused(Reason.OVERTAKEN, message)))
        return replace(state, phase=Phase.ADMITTING), (_ask_admission(state, event),)
    names = tuple(dict.fromkeys(id for verdict in waiting for id in verdict.wait_for))
    if event.cycle:
        return conclude(state, mutual_block(event.cycle), wait_for=names)
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


def _ask_admission(state: State, event: Checked) -> AskAdmission:
    """Invariant: I3. No push without every verdict's consent, and without admission."""
    turn = turn_of(state)
    view, diff = turn.view, diff_of(turn)
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
        purpose=purpose(state),
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
        needs_approval(view, diff),
        decision_of(state, pushing_condition(operation), operation=operation.id),
    )
    return AskAdmission(admit, retry=state.trouble.failures + state.trouble.ineffective > 0)


def _versions(view: View) -> tuple[Asset, ...]:
    return tuple(asset for asset in (view.newest, view.asset) if asset is not None)


def admitted(state: State, event: Admitted) -> StepResult:
    """The store has admitted the push, which starts now."""
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
    return state, (StartPush(operation, target_of(state, operation)),)


def not_admitted(state: State, event: NotAdmitted) -> StepResult:
    """The store has refused the push."""
    refused, view = event.refused, turn_of(state).view
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
        room = view.now + LOOK_AGAIN if refused.reason == Reason.LIMIT_REACHED else None
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
        return conclude(state, condition, delay=LOOK_AT_LEAST, wait_for=event.wait_for)
    # The basis of the verdicts has changed: nothing is wrong, the turn is just out of date.
    count = state.refused + 1
    delay = backoff(count, 1.0, first=ASK_AGAIN, longest=LOOK_AGAIN)
    if count <= _REFUSALS:
        return replace(state, phase=Phase.IDLE, turn=None, refused=count), (Rest(delay=delay),)
    unblock = "wait; Lehr checks again automatically"
    condition = Condition(Status.WAITING, refused.reason, refused.message, unblock)
    state, effects = conclude(state, condition, delay=delay)
    return replace(state, refused=count), effects


def deferred(state: State, event: Deferred) -> StepResult:
    """The push has no place among those of its plugin."""
    condition = Condition(Status.WAITING, event.reason, event.message, "wait until a running push ends")
    return conclude(state, condition, delay=event.delay)
