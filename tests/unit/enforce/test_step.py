"""The per-asset loop, event by event."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.digest import digest
from lehr.enforce.state import (
    NO_TROUBLE,
    Admitted,
    Again,
    AskAdmission,
    AskStatus,
    Begin,
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
)
from lehr.enforce.step import INEFFECTIVE_PUSHES, RETRY
from lehr.enforce.turndown import TurndownStage
from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Condition, Reservation, Status, Verdict
from lehr.model.diff import NO_DIFF, Diff, Goal
from lehr.model.operation import DONE, LedgerEntry, Outcome, Progress, Purpose, Result
from lehr.model.pinning import Pinning
from lehr.model.reason import Reason
from lehr.model.release import Release, ReleaseBasis, Released, ReleaseKind
from lehr.model.writes import Adopt, Finish, LiftControl, RecordDecision, Refused, Reschedule
from lehr.testing.virtual import EPOCH
from tests.unit.enforce.turns import (
    ASSET,
    CONTENT,
    DESTRUCTIVE,
    DIFF,
    KEY,
    OTHER_DIFF,
    after,
    checking,
    control,
    diffed,
    entry,
    operation,
    view,
)

UNKNOWN = Outcome(Result.UNKNOWN, "it hung")
FAILED = Outcome(Result.FAILED, "no")
STALLED = Outcome(Result.STALLED, "no such port")
ALLOWED = Checked((Verdict("free", True),), "o1")
PIN = control(ControlKind.PIN, incarnation=2)


def written(effects: list[Effect], kind: type) -> list[Any]:
    return [
        item
        for effect in effects
        if isinstance(effect, Commit)
        for item in effect.writes
        if isinstance(item, kind)
    ]


def condition(effects: list[Effect]) -> Condition:
    """That of the one decision which was recorded."""
    [record] = written(effects, RecordDecision)
    found: Condition = record.decision.condition
    return found


def said(effects: list[Effect]) -> tuple[Status, str]:
    found = condition(effects)
    return found.status, found.reason


def rest(effects: list[Effect]) -> Rest:
    assert isinstance(effects[-1], Rest)
    return effects[-1]


def pushing(state: State | None = None, **fields: Any) -> State:
    """A push is under way."""
    before = checking(state, **fields)
    asking, [ask] = after(before, ALLOWED)
    assert isinstance(ask, AskAdmission)
    return after(asking, Admitted(ask.admit.operation))[0]


def ended(outcome: Outcome, seconds: float = 5.0, *, superseded: bool = False) -> Ended:
    return Ended(outcome, EPOCH + seconds, 1000.0 + seconds, superseded)


# --- pin ---------------------------------------------------------------------


def test_a_turn_begins_by_comparing_at_the_content_incarnation() -> None:
    state, effects = after(State(), Begin(view(pinning=Pinning(1, PIN), governing=2)))
    [effect] = effects
    assert isinstance(effect, RunDiff)
    assert effect.target.incarnation == 1
    assert state.phase is Phase.DIFFING


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"pinning": Pinning(2, pause=control(ControlKind.PAUSE))}, Status.HELD, Reason.PAUSED),
        ({"orphaned": True}, Status.ORPHANED, Reason.LET_GO),
        ({"asset": None, "pinning": Pinning(1, PIN)}, Status.HELD, Reason.PINNED_TO_NOTHING),
        ({"served": False}, Status.STALLED, Reason.NO_PLUGIN),
    ],
)
def test_what_forbids_a_turn_ends_it_before_production_is_looked_at(
    fields: dict[str, Any], status: Status, reason: str
) -> None:
    state, effects = after(State(), Begin(view(**fields)))
    assert said(effects) == (status, reason)
    assert not any(isinstance(effect, RunDiff) for effect in effects)
    assert rest(effects).settled is status.settled
    assert state.phase is Phase.IDLE
    assert state.turn is None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pinning": Pinning(2, pause=control(ControlKind.PAUSE))},
        {"orphaned": True},
        {"asset": None},
        {"served": False},
        {"cause": RETRY},
    ],
)
def test_an_unknown_outcome_is_looked_at_before_anything_else(fields: dict[str, Any]) -> None:
    state, effects = after(State(operation=operation()), Begin(view(**fields)))
    assert effects == [AskStatus(operation())]
    assert state.phase is Phase.ASKING_STATUS


# --- look --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "known", "waits"),
    [
        ({"fenced": True, "epoch": 2}, entry(), False),
        ({"fenced": True, "epoch": 1}, entry(), True),
        ({"fenced": False, "epoch": 2}, entry(), True),
        ({"fenced": True, "epoch": 2}, None, True),
        ({"fenced": True, "epoch": 2, "goal": Goal.ABSENT}, entry(), True),
    ],
    ids=["late", "own", "nothing-refuses-it", "may-be-made-twice", "may-come-back"],
)
def test_a_push_that_runs_on_after_a_takeover_is_waited_for_unless_late_writes_are_refused(
    seen: dict[str, Any], known: LedgerEntry | None, waits: bool
) -> None:
    began = Begin(view(**seen))
    before = State(operation=operation(), ledger=known)
    state, effects = after(before, began, StatusReported(Progress.RUNNING))
    if waits:
        assert condition(effects).reason == Reason.OUTCOME_UNKNOWN
        return
    assert state.operation is None
    commit, again = effects
    assert isinstance(commit, Commit)
    [finish] = commit.writes
    assert isinstance(finish, Finish)
    assert finish.outcome.result is Result.FAILED
    assert "another process took over" in finish.outcome.message
    assert isinstance(again, Again)
    assert state.trouble == State().trouble, "the next push is not delayed"


@pytest.mark.parametrize("progress", [Progress.RUNNING, None])
def test_while_a_push_may_go_on_nothing_is_touched(progress: Progress | None) -> None:
    state, effects = after(
        State(operation=operation()), Begin(view()), StatusReported(progress, "no answer within 30 s")
    )
    assert said(effects) == (Status.UNKNOWN, Reason.OUTCOME_UNKNOWN)
    assert state.operation == operation()
    assert 0 < (rest(effects).delay or 0) < 60


def test_a_plugin_that_cannot_say_is_asked_less_and_less_often_and_the_first_cause_is_kept() -> None:
    failed = operation(message="plugin x failed: ValueError: oops", result=Result.UNKNOWN)
    state, delays = State(operation=failed), []
    for _ in range(9):
        state, effects = after(
            state, Begin(view(jitter=1.0)), StatusReported(None, "plugin x answered a str")
        )
        delays.append(rest(effects).delay)
    assert delays == [4.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    _, effects = after(
        State(operation=failed), Begin(view()), StatusReported(None, "plugin x answered a str")
    )
    assert "plugin x failed: ValueError: oops; plugin x answered a str" in str(effects)


def test_an_ended_push_is_resolved_by_production_itself() -> None:
    state, effects = after(State(operation=operation()), Begin(view()), StatusReported(Progress.ENDED))
    [effect] = effects
    assert isinstance(effect, RunDiff)
    assert effect.target.incarnation == operation().content
    assert state.phase is Phase.RESOLVING


def resolved(diff: Diff) -> tuple[State, list[Effect]]:
    return after(State(operation=operation()), Begin(view()), StatusReported(Progress.ENDED), diffed(diff))


def test_found_applied_it_is_done_and_in_the_ledger() -> None:
    state, effects = resolved(NO_DIFF)
    [finish] = written(effects, Finish)
    assert finish.outcome.result is Result.DONE
    assert finish.ledger == entry(by="o1")
    assert state.operation is None
    assert state.ledger == finish.ledger
    assert isinstance(effects[-1], Again)


def test_found_not_applied_it_has_failed_and_is_not_tried_again_at_once() -> None:
    state, effects = resolved(DIFF)
    [finish] = written(effects, Finish)
    assert finish.outcome.result is Result.FAILED
    assert finish.ledger is None
    assert state.operation is None
    assert isinstance(effects[-1], Again)
    _, effects = after(state, Begin(view()), diffed())
    assert said(effects) == (Status.RETRYING, Reason.PUSH_FAILED)


def test_production_that_cannot_be_seen_leaves_it_unknown() -> None:
    state, effects = after(
        State(operation=operation()), Begin(view()), StatusReported(Progress.ENDED), DiffFailed("no line")
    )
    assert said(effects) == (Status.UNKNOWN, Reason.OUTCOME_UNKNOWN)
    assert state.operation is not None


# --- diff --------------------------------------------------------------------


def test_what_matches_without_a_push_is_adopted_once() -> None:
    state, effects = after(State(), Begin(view()), diffed(NO_DIFF))
    assert written(effects, Adopt) == [Adopt(entry())]
    assert said(effects) == (Status.CONVERGED, Reason.AS_INTENDED)
    assert rest(effects) == Rest(settled=True)
    _, effects = after(state, Begin(view(after=60)), diffed(NO_DIFF))
    assert effects == [Rest(settled=True)], "a turn that ends like the last writes nothing"


def test_new_content_that_matches_is_adopted_anew() -> None:
    state = State(ledger=entry(content_digest=digest("before"), by="o0"))
    _, effects = after(state, Begin(view()), diffed(NO_DIFF))
    assert written(effects, Adopt) == [Adopt(entry())]


def test_what_was_pushed_is_not_adopted() -> None:
    _, effects = after(State(ledger=entry(by="o0")), Begin(view()), diffed(NO_DIFF))
    assert not written(effects, Adopt)


def test_a_difference_is_checked() -> None:
    state, effects = after(State(), Begin(view()), diffed())
    [effect] = effects
    assert isinstance(effect, RunChecks)
    assert effect.diff == DIFF
    assert state.phase is Phase.CHECKING


@pytest.mark.parametrize(
    ("ledger", "goal", "content", "purpose"),
    [
        (None, Goal.PRESENT, 2, Purpose.FORWARD),
        (entry(), Goal.PRESENT, 2, Purpose.REPAIR),
        (entry(content_digest=digest("before")), Goal.PRESENT, 3, Purpose.FORWARD),
        (entry(content_digest=digest("later")), Goal.PRESENT, 1, Purpose.ROLLBACK),
        (entry(content_digest=digest("read another")), Goal.PRESENT, 2, Purpose.FORWARD),
        (entry(), Goal.PRESENT, 1, Purpose.REPAIR),
        (entry(), Goal.FENCED, 2, Purpose.FORWARD),
        (entry(goal=Goal.FENCED), Goal.FENCED, 2, Purpose.REPAIR),
        (entry(goal=Goal.FENCED, content_digest=digest("later")), Goal.PRESENT, 1, Purpose.FORWARD),
    ],
)
def test_checks_and_admission_know_why_an_asset_is_pushed(
    ledger: LedgerEntry | None, goal: Goal, content: int, purpose: Purpose
) -> None:
    seen = view(pinning=Pinning(content), stage=TurndownStage(goal))
    state, [asked] = after(State(ledger=ledger), Begin(seen), diffed())
    assert isinstance(asked, RunChecks)
    assert asked.purpose is purpose
    _, [admission] = after(state, Checked((), "o1"))
    assert isinstance(admission, AskAdmission)
    assert admission.admit.operation.purpose is purpose


def released(target: int, kind: ReleaseKind) -> Released:
    release = Release(
        id="r1",
        partition=KEY.partition,
        asset=KEY.id,
        target=target,
        kind=kind,
        basis=ReleaseBasis(digest("governance")),
        at=EPOCH,
    )
    return Released(KEY.id, release)


@pytest.mark.parametrize(
    ("ledger", "content", "purpose"),
    [
        (None, 1, Purpose.FORWARD),
        (entry(), 2, Purpose.ROLLBACK),  # pushes of newer content have failed, perhaps half-way
        (entry(content_digest=digest("later")), 1, Purpose.ROLLBACK),
        (entry(goal=Goal.FENCED, content_digest=digest("later")), 1, Purpose.ROLLBACK),
        (entry(content_digest=digest("before")), 3, Purpose.FORWARD),
    ],
)
def test_what_a_rollout_takes_back_is_a_rollback(
    ledger: LedgerEntry | None, content: int, purpose: Purpose
) -> None:
    seen = view(pinning=Pinning(content, released=released(content, ReleaseKind.ROLLBACK)))
    _, [asked] = after(State(ledger=ledger), Begin(seen), diffed())
    assert isinstance(asked, RunChecks)
    assert asked.purpose is purpose


@pytest.mark.parametrize(("target", "pushes"), [(1, True), (2, True), (3, False)])
def test_nothing_is_pushed_that_is_older_than_the_release_and_not_it(target: int, pushes: bool) -> None:
    """Reads of a replica may be behind releases: 2 is the newest, and the content of 3 is released."""
    pinning = Pinning(min(target, 2), released=released(target, ReleaseKind.FORWARD))
    _, effects = after(checking(pinning=pinning), ALLOWED)
    assert isinstance(effects[0], AskAdmission) is pushes
    assert pushes or isinstance(effects[-1], Again | Rest)


@pytest.mark.parametrize("pushed", [False, True], ids=["found", "after a push"])
def test_what_recovers_without_a_push_is_looked_at_again_and_not_pushed(pushed: bool) -> None:
    recovering = replace(DIFF, look_again=0.5, notes=("it was killed",))
    state = after(pushing(), ended(DONE))[0] if pushed else after(State(), Begin(view()))[0]
    state, effects = after(state, Diffed(recovering, CONTENT))
    assert said(effects) == (Status.WAITING, Reason.RECOVERING)
    assert "it was killed" in condition(effects).message
    assert rest(effects).delay == 0.5
    assert state.trouble == NO_TROUBLE


@pytest.mark.parametrize(("asked", "delay"), [(-1.0, 0.2), (float("nan"), 0.2), (1e9, 60.0)])
def test_a_plugin_cannot_have_a_recovery_looked_at_without_rest_or_never(asked: float, delay: float) -> None:
    state, _ = after(State(), Begin(view()))
    _, effects = after(state, Diffed(replace(DIFF, look_again=asked), CONTENT))
    assert rest(effects).delay == delay


def test_what_people_should_know_is_recorded_although_nothing_differs() -> None:
    told = Diff(notes=("it was killed",))
    state, _ = after(State(), Begin(view()), diffed(NO_DIFF))
    state, effects = after(state, Begin(view()), diffed(told))
    assert condition(effects).message.endswith("; it was killed")
    assert rest(effects).settled
    state, effects = after(state, Begin(view()), diffed(told))
    assert written(effects, RecordDecision) == [], "said once"
    _, effects = after(state, Begin(view()), diffed(NO_DIFF))
    assert said(effects) == (Status.CONVERGED, Reason.AS_INTENDED)


def test_what_a_diff_tells_beside_its_changes_is_not_what_is_approved() -> None:
    assert replace(DIFF, notes=("it was killed",), look_again=1.0).digest() == DIFF.digest()


def test_an_observed_asset_is_compared_and_not_checked() -> None:
    _, effects = after(State(), Begin(view(observe="adoption")), diffed())
    assert said(effects) == (Status.HELD, Reason.OBSERVE_ONLY)
    _, effects = after(State(), Begin(view(observe="adoption")), diffed(NO_DIFF))
    assert said(effects) == (Status.CONVERGED, Reason.AS_INTENDED)


def test_a_converged_asset_says_that_it_is_pinned() -> None:
    _, effects = after(State(), Begin(view(pinning=Pinning(1, PIN))), diffed(NO_DIFF))
    assert said(effects) == (Status.CONVERGED, Reason.PINNED)


def test_destruction_needs_approval_of_exactly_this_diff() -> None:
    _, effects = after(State(), Begin(view()), diffed(DESTRUCTIVE))
    assert said(effects) == (Status.WAITING, Reason.APPROVAL_NEEDED)
    approved = Pinning(2, approved=frozenset({OTHER_DIFF.digest()}))
    _, effects = after(State(), Begin(view(pinning=approved)), diffed(DESTRUCTIVE))
    assert said(effects) == (Status.WAITING, Reason.APPROVAL_NEEDED)
    approved = Pinning(2, approved=frozenset({DESTRUCTIVE.digest()}))
    _, effects = after(State(), Begin(view(pinning=approved)), diffed(DESTRUCTIVE), ALLOWED)
    [ask] = effects
    assert isinstance(ask, AskAdmission)
    assert ask.admit.approval, "admission makes sure of it again"


def test_a_turndown_was_asked_for_and_needs_no_further_approval() -> None:
    _, effects = after(State(), Begin(view(goal=Goal.ABSENT)), diffed(DESTRUCTIVE), ALLOWED)
    [ask] = effects
    assert isinstance(ask, AskAdmission)
    assert not ask.admit.approval


def test_a_diff_that_fails_is_tried_again_after_growing_delays() -> None:
    state = State()
    delays = []
    for _ in range(5):
        state, effects = after(state, Begin(view()), DiffFailed("no line", "mend it"))
        delays.append(rest(effects).delay)
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert state.condition_key == Condition(Status.RETRYING, Reason.DIFF_FAILED, "no line", "mend it").key()


def test_a_diff_that_says_until_when_is_not_tried_before() -> None:
    _, effects = after(State(), Begin(view()), DiffFailed("later", until=EPOCH + 100))
    assert rest(effects).delay == 100


@pytest.mark.parametrize("stalled", [False, True])
def test_what_blocks_comes_with_what_unblocks_even_if_the_plugin_knows_nothing(stalled: bool) -> None:
    _, effects = after(State(), Begin(view()), DiffFailed("no", stalled=stalled))
    assert condition(effects).unblock
    _, effects = after(checking(), Checked((Verdict("odd", False),), "o1"))
    assert condition(effects).unblock


def test_a_diff_that_needs_a_person_stalls() -> None:
    _, effects = after(State(), Begin(view()), DiffFailed("no such port", "name one", stalled=True))
    assert said(effects) == (Status.STALLED, Reason.DIFF_STALLED)
    assert rest(effects) == Rest(), "the resync looks again"


# --- check -------------------------------------------------------------------


def test_one_check_that_waits_is_enough() -> None:
    waits = Verdict("b", False, "Full", "no room", "room", EPOCH + 30, (AssetId("x"),))
    later = Verdict("c", False, Reason.FROZEN, "frozen", "thaw", EPOCH + 90, (AssetId("y"), AssetId("x")))
    _, effects = after(checking(), Checked((Verdict("a", True), waits, later), "o1"))
    found = condition(effects)
    assert (found.status, found.reason) == (Status.WAITING, "Full")
    assert found.message == "b: no room; c: frozen"
    assert found.unblock == "room; thaw"
    assert rest(effects) == Rest(30.0, (AssetId("x"), AssetId("y")))
    [record] = written(effects, RecordDecision)
    assert record.decision.verdicts == (Verdict("a", True), waits, later), "all are recorded"


def test_admission_is_asked_with_all_that_the_verdicts_rest_on() -> None:
    taken = Reservation("rate", 2, 60.0)
    quiet = ((AssetId("db"), digest("db")),)
    checked = Checked((Verdict("a", True, reservations=(taken,)), Verdict("b", True)), "o1", quiet)
    state, effects = after(checking(), checked)
    [ask] = effects
    assert isinstance(ask, AskAdmission)
    admit = ask.admit
    assert admit.operation == operation()
    assert (admit.basis.newest_digest, admit.basis.governance) == (ASSET.digest, digest("governance"))
    assert (admit.basis.controls, admit.basis.looked_at) == (3, quiet)
    assert admit.reservations == (taken,)
    assert admit.decision is not None
    assert admit.decision.condition.status is Status.PUSHING
    assert not ask.retry
    assert state.phase is Phase.ADMITTING


@pytest.mark.parametrize(("goal", "reserved"), [(Goal.ABSENT, 2), (Goal.FENCED, 0), (Goal.PRESENT, 0)])
def test_only_a_removal_takes_from_every_deletion_budget(goal: Goal, reserved: int) -> None:
    budgets = (Reservation("removals/test", 2, 10.0), Reservation("removals/test", 20, 3600.0))
    _, [ask] = after(checking(goal=goal, removals=budgets), ALLOWED)
    assert isinstance(ask, AskAdmission)
    assert ask.admit.reservations == budgets[:reserved]


def test_a_push_after_one_that_failed_counts_as_a_retry() -> None:
    state, _ = after(pushing(), ended(FAILED))
    _, [ask] = after(checking(state, after=600), ALLOWED)
    assert isinstance(ask, AskAdmission)
    assert ask.retry


# --- admit -------------------------------------------------------------------


def test_an_admitted_push_starts_and_its_decision_is_not_recorded_twice() -> None:
    asking, [ask] = after(checking(), ALLOWED)
    assert isinstance(ask, AskAdmission)
    state, effects = after(asking, Admitted(ask.admit.operation))
    [start] = effects
    assert isinstance(start, StartPush)
    assert start.operation == operation()
    assert start.target.incarnation == 2
    assert ask.admit.decision is not None
    assert state.condition_key == ask.admit.decision.condition.key()
    assert state.operation == operation()


@pytest.mark.parametrize(
    ("refused", "status", "reason", "delay"),
    [
        (Refused(Reason.LEASE_LOST, "m"), Status.STALLED, Reason.LEASE_LOST, None),
        (Refused(Reason.STORE_UNAVAILABLE, "m"), Status.RETRYING, Reason.STORE_UNAVAILABLE, 4.0),
        (Refused(Reason.LIMIT_REACHED, "m", EPOCH + 30), Status.WAITING, Reason.LIMIT_REACHED, 30.0),
        (Refused(Reason.APPROVAL_MISSING, "m"), Status.WAITING, Reason.APPROVAL_MISSING, None),
    ],
)
def test_a_refusal_names_what_blocks(
    refused: Refused, status: Status, reason: str, delay: float | None
) -> None:
    asking, _ = after(checking(), ALLOWED)
    state, effects = after(asking, NotAdmitted(refused))
    assert said(effects) == (status, reason)
    assert rest(effects).delay == delay
    assert state.operation is None


def test_a_push_that_would_rest_on_damage_stalls_and_names_it() -> None:
    asking, _ = after(checking(), ALLOWED)
    _, effects = after(asking, NotAdmitted(Refused(Reason.DAMAGED, "operation o1 of asset a is damaged")))
    assert said(effects) == (Status.STALLED, Reason.DAMAGED)
    assert condition(effects).message == "operation o1 of asset a is damaged"
    assert "lehr store check" in condition(effects).unblock
    assert rest(effects).delay is None


def test_a_missing_approval_is_what_unblocks() -> None:
    asking, _ = after(checking(), ALLOWED)
    _, effects = after(asking, NotAdmitted(Refused(Reason.APPROVAL_MISSING, "m")))
    assert condition(effects).unblock == "run `lehr approve a --reason TEXT`"


@pytest.mark.parametrize(
    "reason",
    [
        Reason.OVERTAKEN,
        Reason.GOVERNANCE_CHANGED,
        Reason.CONTROLS_CHANGED,
        Reason.DEPENDENCY_CHANGED,
        Reason.DEPENDENCY_BUSY,
    ],
)
def test_an_outdated_turn_is_begun_again_without_a_word(reason: str) -> None:
    asking, _ = after(checking(), ALLOWED)
    state, effects = after(asking, NotAdmitted(Refused(reason, "m")))
    [only] = effects
    assert isinstance(only, Rest)
    assert only.delay is not None
    assert only.delay < 1.0
    assert state.phase is Phase.IDLE
    assert not only.settled


@pytest.mark.parametrize("delay", [None, 3.0])
def test_a_push_without_a_place_waits(delay: float | None) -> None:
    asking, _ = after(checking(), ALLOWED)
    _, effects = after(asking, Deferred(Reason.CONCURRENCY_LIMIT, "8 are under way", delay))
    assert said(effects) == (Status.WAITING, Reason.CONCURRENCY_LIMIT)
    assert rest(effects).delay == delay


# --- push and verify ---------------------------------------------------------


def test_after_a_push_production_is_looked_at_again() -> None:
    state, effects = after(pushing(), ended(DONE))
    assert written(effects, Finish) == [
        Finish(KEY.partition, "o1", DONE, EPOCH + 5, replace(entry(by="o1"), at=EPOCH + 5))
    ]
    assert isinstance(effects[-1], RunDiff)
    assert (state.phase, state.operation) == (Phase.VERIFYING, None)
    state, effects = after(state, diffed(NO_DIFF))
    assert said(effects) == (Status.CONVERGED, Reason.AS_INTENDED)
    assert not written(effects, Adopt), "it is in the ledger already"


def test_an_unknown_outcome_keeps_the_operation_and_is_looked_at_soon() -> None:
    state, effects = after(pushing(), ended(UNKNOWN))
    assert written(effects, Finish) == [Finish(KEY.partition, "o1", UNKNOWN, EPOCH + 5)]
    assert said(effects) == (Status.UNKNOWN, Reason.OUTCOME_UNKNOWN)
    assert state.operation is not None
    assert state.operation.result is Result.UNKNOWN
    _, effects = after(state, Begin(view(after=10)))
    assert effects == [AskStatus(state.operation)]


def test_a_failed_push_is_tried_again_after_growing_delays() -> None:
    state, delays = State(), []
    for turn in range(4):
        state, effects = after(pushing(state, after=1000.0 * turn), ended(FAILED, 1000.0 * turn))
        delays.append(rest(effects).delay)
        assert said(effects) == (Status.RETRYING, Reason.PUSH_FAILED)
    assert delays == [1.0, 2.0, 4.0, 8.0]


def test_before_its_time_a_failed_push_is_not_repeated() -> None:
    state, _ = after(pushing(), ended(FAILED))
    early, effects = after(state, Begin(view(after=5.5)), diffed())
    assert not any(isinstance(effect, RunChecks) for effect in effects)
    assert rest(effects).delay == pytest.approx(0.5)
    _, effects = after(early, Begin(view(after=6.0)), diffed())
    assert isinstance(effects[-1], RunChecks)


def test_a_failure_that_names_a_time_is_not_repeated_before() -> None:
    state, effects = after(pushing(), ended(Outcome(Result.FAILED, "no", EPOCH + 105)))
    assert rest(effects).delay == 100
    _, effects = after(state, Begin(view(after=60)), diffed())
    assert rest(effects).delay == 45


def test_a_failed_diff_listens_to_what_the_asset_refers_to() -> None:
    others = (AssetId("db"), AssetId("disk"))
    for stalled in (False, True):
        failed = DiffFailed("no connection", stalled=stalled, refers_to=others)
        _, effects = after(State(), Begin(view()), failed)
        assert rest(effects).wait_for == others
    unknown = State(operation=operation())
    failed = DiffFailed("no connection", refers_to=others)
    _, effects = after(unknown, Begin(view()), StatusReported(Progress.ENDED), failed)
    assert rest(effects).wait_for == others


def test_what_is_said_of_a_stall_is_what_a_regular_look_does() -> None:
    state, effects = after(pushing(resync=60.0), ended(STALLED))
    [stalled] = [item.decision.condition for item in written(effects, RecordDecision)]
    assert (stalled.automatic, stalled.next_at, stalled.resync) == (False, None, 60.0)
    assert "lehr retry a" in stalled.unblock
    _, effects = after(state, Begin(view(after=1e6)), diffed())
    assert not any(isinstance(effect, RunChecks) for effect in effects)

    failed = DiffFailed("no such port", stalled=True)
    state, effects = after(State(), Begin(view(resync=60.0)), failed)
    [stalled] = [item.decision.condition for item in written(effects, RecordDecision)]
    assert (stalled.automatic, stalled.next_at, stalled.resync) == (True, None, 60.0)
    _, effects = after(state, Begin(view(after=1e6)), diffed())
    assert isinstance(effects[-1], RunChecks)


def test_who_is_not_looked_at_is_not_said_to_be() -> None:
    for blind in (view(resync=60.0, served=False), view(resync=60.0, asset=None)):
        _, effects = after(State(), Begin(blind))
        [found] = [item.decision.condition for item in written(effects, RecordDecision)]
        assert (found.automatic, found.resync) == (False, None)


def test_a_stalled_push_waits_for_other_content_or_another_difference_or_a_person() -> None:
    state, effects = after(pushing(), ended(STALLED))
    assert said(effects) == (Status.STALLED, Reason.PUSH_STALLED)
    later = view(after=1e6)
    _, effects = after(state, Begin(later), diffed())
    assert effects == [Rest()], "the same diff is not pushed again"
    for event in (diffed(OTHER_DIFF), Diffed(DIFF, digest("new content"))):
        _, effects = after(state, Begin(later), event)
        assert isinstance(effects[-1], RunChecks)
    _, effects = after(state, Begin(replace(later, cause=RETRY)), diffed())
    assert isinstance(effects[-1], RunChecks)


def test_pushed_and_still_different_ends_in_a_stall() -> None:
    state = State()
    for push in range(1, INEFFECTIVE_PUSHES + 1):
        state, effects = after(pushing(state, after=1000.0 * push), ended(DONE, 1000.0 * push), diffed())
        stalled = push == INEFFECTIVE_PUSHES
        status = Status.STALLED if stalled else Status.RETRYING
        assert said(effects) == (status, Reason.PUSHED_STILL_DIFFERENT)
    _, effects = after(state, Begin(view(after=1e6)), diffed())
    assert effects == [Rest()]


def test_a_push_that_leaves_another_difference_is_getting_somewhere() -> None:
    state = State()
    for push, diff in enumerate([DIFF, OTHER_DIFF] * INEFFECTIVE_PUSHES, 1):
        state, _ = after(pushing(state, after=1000.0 * push), ended(DONE, 1000.0 * push), diffed(diff))
        assert not state.trouble.stalled


def test_new_content_forgets_old_trouble() -> None:
    state, _ = after(pushing(), ended(FAILED))
    state, effects = after(state, Begin(view(after=5.1)), Diffed(DIFF, digest("new content")))
    assert isinstance(effects[-1], RunChecks)
    assert state.trouble == NO_TROUBLE


def test_convergence_forgets_trouble() -> None:
    state, _ = after(pushing(), ended(FAILED))
    state, _ = after(state, Begin(view(after=5.1)), diffed(NO_DIFF))
    assert state.trouble == NO_TROUBLE


def test_a_superseded_push_that_stopped_is_no_failure() -> None:
    state, effects = after(pushing(), ended(Outcome(Result.FAILED, "superseded"), superseded=True))
    assert isinstance(effects[-1], Again)
    assert len(written(effects, Finish)) == 1
    assert (state.operation, state.trouble) == (None, NO_TROUBLE)


# --- turndown ------------------------------------------------------------------


def test_a_stage_that_was_reached_goes_on_to_the_next() -> None:
    _, effects = after(State(), Begin(view(goal=Goal.FENCED)), diffed(NO_DIFF))
    assert written(effects, Adopt) == [Adopt(entry(goal=Goal.FENCED))]
    assert isinstance(effects[-1], Again)


def test_a_stage_that_must_last_is_waited_out() -> None:
    stage = TurndownStage(Goal.FENCED, until=EPOCH + 60)
    _, effects = after(State(), Begin(view(stage=stage)), diffed(NO_DIFF))
    assert said(effects) == (Status.WAITING, Reason.TURNDOWN_STANDS)
    assert rest(effects) == Rest(60.0, quiet=True)


def test_what_is_removed_is_turned_down_and_settled() -> None:
    _, effects = after(State(), Begin(view(goal=Goal.ABSENT)), diffed(NO_DIFF))
    assert said(effects) == (Status.TURNED_DOWN, Reason.REMOVED)
    assert rest(effects).settled


def test_an_obstacle_of_a_turndown_is_named() -> None:
    stage = TurndownStage(
        Goal.PRESENT, obstacle=(Reason.STILL_REFERENCED, "web still refers to it", "let go")
    )
    _, effects = after(State(), Begin(view(stage=stage)), diffed(NO_DIFF))
    assert said(effects) == (Status.WAITING, Reason.STILL_REFERENCED)
    assert not rest(effects).settled


# --- how turns end -------------------------------------------------------------


def test_the_number_of_turns_that_ended_alike_is_told_by_the_next_decision() -> None:
    state = State()
    for turn in range(4):
        state, _ = after(state, Begin(view(after=60.0 * turn)), diffed(NO_DIFF))
    _, effects = after(state, Begin(view(after=300, observe="look")), diffed())
    [record] = written(effects, RecordDecision)
    assert record.decision.turns == 3


def test_another_due_time_alone_is_touched_and_not_decided() -> None:
    waits = Verdict("b", False, "Full", "no room", "room", EPOCH + 30)
    state, _ = after(checking(), Checked((waits,), "o1"))
    moved = replace(waits, until=EPOCH + 90)
    _, effects = after(checking(state, after=20), Checked((moved,), "o2"))
    [touch] = written(effects, Reschedule)
    assert touch.key == KEY
    assert touch.condition.next_at == EPOCH + 90
    assert not written(effects, RecordDecision)


def test_a_decision_says_what_it_rested_on() -> None:
    trouble = Trouble(failures=2, not_before=2000.0, last_failure=(Reason.PUSH_FAILED, "m", "u"))
    _, effects = after(
        State(trouble=trouble), Begin(view(pinning=Pinning(1, PIN), cause="due again")), diffed()
    )
    [record] = written(effects, RecordDecision)
    decision = record.decision
    assert (decision.content, decision.governing, decision.event) == (1, 2, "due again")
    assert decision.diff == DIFF
    assert decision.evidence == {"content_digest": CONTENT, "pin": "c1", "failures": 2}


@pytest.mark.parametrize(
    "event", [StatusReported(None), diffed(), ALLOWED, ended(DONE)], ids=lambda event: type(event).__name__
)
def test_an_event_that_nothing_asked_for_is_a_fault_of_the_shell(event: Event) -> None:
    with pytest.raises(AssertionError):
        after(State(), event)


@pytest.mark.parametrize(
    ("reason", "unblock"),
    [
        (Reason.CLAIMED_ELSEWHERE, "lehr claims"),
        (Reason.CLAIMED_HERE, "lehr claims"),
        (Reason.PROTECTED_PATH, "symbolic link"),
    ],
)
def test_what_an_asset_must_not_change_is_not_pushed_and_said(reason: str, unblock: str) -> None:
    asking, [ask] = after(checking(), ALLOWED)
    assert isinstance(ask, AskAdmission)
    refused = Refused(reason, "file /x belongs to `motd` of partition blog")
    _, effects = after(asking, NotAdmitted(refused, (AssetId("motd"),)))
    assert said(effects) == (Status.WAITING, reason)
    assert condition(effects).message == refused.message
    assert unblock in condition(effects).unblock
    assert (rest(effects).delay, rest(effects).wait_for) == (60.0, ("motd",))


def test_new_content_of_what_is_fenced_already_does_not_start_the_fence_anew() -> None:
    fenced = replace(entry(content_digest=digest("older"), goal=Goal.FENCED), at=EPOCH - 60)
    for known, at in ((fenced, EPOCH - 60), (replace(fenced, goal=Goal.DRAINED), EPOCH)):
        state, _ = after(State(ledger=known), Begin(view(goal=Goal.FENCED)), diffed(NO_DIFF))
        assert state.ledger is not None
        assert (state.ledger.goal, state.ledger.content_digest, state.ledger.at) == (Goal.FENCED, CONTENT, at)


RESTARTS = tuple(control(ControlKind.RESTART, id) for id in ("r1", "r2"))


def test_what_a_person_asked_to_restart_is_compared_with_the_newest_request() -> None:
    state, [run] = after(State(ledger=entry()), Begin(view(pinning=Pinning(2, restarts=RESTARTS))))
    assert isinstance(run, RunDiff)
    assert run.target.restart == "r2"
    state, [checks] = after(state, diffed())
    assert isinstance(checks, RunChecks)
    assert checks.purpose is Purpose.RESTART
    _, [ask] = after(state, ALLOWED)
    assert isinstance(ask, AskAdmission)
    assert ask.admit.operation.purpose is Purpose.RESTART
    assert ask.admit.decision is not None
    assert ask.admit.decision.evidence["restart"] == "r2"


def test_a_restart_is_verified_and_then_lifted_with_those_before_it() -> None:
    asking, _ = after(checking(pinning=Pinning(2, restarts=RESTARTS)), ALLOWED)
    pushing, [start] = after(asking, Admitted(operation()))
    assert isinstance(start, StartPush)
    assert start.target.restart == "r2"
    verifying, effects = after(pushing, ended(DONE))
    assert not written(effects, LiftControl)
    assert isinstance(effects[-1], RunDiff)
    assert effects[-1].target.restart == "r2"
    _, effects = after(verifying, diffed(NO_DIFF))
    assert [item.id for item in written(effects, LiftControl)] == ["r1", "r2"]


def test_a_restart_that_fails_is_not_lifted() -> None:
    asking, _ = after(checking(pinning=Pinning(2, restarts=RESTARTS)), ALLOWED)
    _, effects = after(asking, Admitted(operation()), ended(FAILED))
    assert not written(effects, LiftControl)


def test_a_restart_whose_outcome_is_unknown_is_looked_for() -> None:
    pinned = view(pinning=Pinning(2, restarts=RESTARTS))
    _, effects = after(State(operation=operation()), Begin(pinned), StatusReported(Progress.ENDED))
    [run] = effects
    assert isinstance(run, RunDiff)
    assert run.target.restart == "r2"


def test_nothing_is_restarted_on_its_way_out() -> None:
    leaving = view(goal=Goal.ABSENT, pinning=Pinning(2, restarts=RESTARTS))
    state, [run] = after(State(), Begin(leaving))
    assert isinstance(run, RunDiff)
    assert run.target.restart == ""
    _, effects = after(state, diffed(NO_DIFF))
    assert [item.id for item in written(effects, LiftControl)] == ["r1", "r2"]
