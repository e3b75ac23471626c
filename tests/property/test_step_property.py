"""The per-asset loop under any sequence of events that its shell may bring."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lehr.base.digest import digest
from lehr.enforce.state import (
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
)
from lehr.enforce.step import step
from lehr.enforce.turndown import TurndownStage
from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Condition, Verdict
from lehr.model.diff import NO_DIFF, Goal
from lehr.model.operation import Outcome, Progress, Result
from lehr.model.pinning import Pinning
from lehr.model.reason import Reason
from lehr.model.writes import Adopt, Finish, RecordDecision, Refused, Reschedule, Write
from lehr.testing.virtual import EPOCH
from tests.unit.enforce.turns import ASSET, CONTENT, DESTRUCTIVE, DIFF, OTHER_DIFF, control, operation, view

seconds = st.sampled_from([0.0, 0.1, 1.0, 60.0, 5000.0])
rarely = st.integers(0, 9).map(lambda number: number == 0)
courses = st.builds(
    TurndownStage,
    st.sampled_from([Goal.PRESENT, Goal.PRESENT, *Goal]),
    st.sampled_from([None, EPOCH + 1e7]),
    st.sampled_from([None, None, (Reason.STILL_REFERENCED, "b refers to it", "let go")]),
)
pinnings = st.builds(
    Pinning,
    st.sampled_from([1, 2]),
    st.sampled_from([None, control(ControlKind.PIN, incarnation=1)]),
    st.sampled_from([None] * 9 + [control(ControlKind.PAUSE)]),
    st.sampled_from([frozenset(), frozenset({DESTRUCTIVE.digest()})]),
)
views: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "pinning": pinnings,
        "stage": courses,
        "cause": st.sampled_from(["due again", "retry"]),
        "asset": rarely.map(lambda none: None if none else ASSET),
        "observe": rarely.map(lambda yes: "adoption" if yes else None),
        "orphaned": rarely,
        "served": rarely.map(lambda no: not no),
        "jitter": st.floats(0, 1),
    }
)
verdicts = st.builds(
    Verdict,
    st.sampled_from(["calendar", "rate"]),
    rarely.map(lambda no: not no),
    message=st.sampled_from(["", "m"]),
    unblock=st.sampled_from(["", "u"]),
    until=st.sampled_from([None, EPOCH - 1, EPOCH + 1e4]),
    wait_for=st.sampled_from([(), (AssetId("b"),)]),
)
outcomes = st.builds(
    Outcome, st.sampled_from(Result), st.just("m"), st.sampled_from([None, EPOCH, EPOCH + 1e4])
)
refusals = st.builds(
    Refused,
    st.sampled_from(
        [
            Reason.LEASE_LOST,
            Reason.STORE_UNAVAILABLE,
            Reason.LIMIT_REACHED,
            Reason.APPROVAL_MISSING,
            Reason.OVERTAKEN,
            Reason.GOVERNANCE_CHANGED,
            Reason.IN_FLIGHT,
        ]
    ),
    st.just("m"),
    st.sampled_from([None, EPOCH - 1, EPOCH + 1e4]),
)
contents = st.sampled_from([CONTENT, CONTENT, digest("other content")])
compared = st.builds(Diffed, st.sampled_from([DIFF, DIFF, NO_DIFF, OTHER_DIFF, DESTRUCTIVE]), contents)
failures = st.builds(
    DiffFailed, st.just("m"), st.just(""), st.booleans(), st.sampled_from([None, EPOCH + 1e4])
)
diffs: st.SearchStrategy[Diffed | DiffFailed] = rarely.flatmap(lambda no: failures if no else compared)


class Shell:
    """Brings events as the shell does: each of the kind that the last effect asked for."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        left = data.draw(st.sampled_from([None, operation("o0"), operation("o0", goal=Goal.FENCED)]))
        self.state = State(operation=left)
        self.last: Effect = Rest()
        self.time = 0.0
        self.pushes = 0

    def next(self) -> Event:
        """What happens next."""
        draw = self.data.draw
        match self.last:
            case Rest() | Again():
                self.time += draw(seconds)
                return Begin(view(after=self.time, **draw(views)))
            case RunDiff():
                return draw(diffs)
            case RunChecks():
                self.pushes += 1
                return Checked(tuple(draw(st.lists(verdicts, max_size=2))), f"o{self.pushes}")
            case AskAdmission(admit):
                refused = st.builds(NotAdmitted, refusals)
                deferred = st.builds(Deferred, st.just("r"), st.just("m"))
                admitted = st.just(Admitted(admit.operation))
                return draw(st.one_of(admitted, admitted, admitted, refused, deferred))
            case AskStatus():
                return StatusReported(draw(st.sampled_from([None, *Progress])), "m")
            case StartPush():
                self.time += draw(seconds)
                return Ended(draw(outcomes), EPOCH + self.time, 1000.0 + self.time, draw(rarely))
            case Commit():
                raise AssertionError("a commit is never the last effect")

    def go(self) -> tuple[State, Event, list[Effect]]:
        """One step; the state before it, the event, and the effects."""
        before, event = self.state, self.next()
        self.state, effects = step(before, event)
        self.last = effects[-1]
        return before, event, list(effects)


def hold_invariants(before: State, event: Event, effects: list[Effect], state: State) -> None:
    *first, last = effects
    assert all(isinstance(effect, Commit) and effect.writes for effect in first)
    hold_order(before, event, last, state)
    writes: list[Write] = [write for effect in first if isinstance(effect, Commit) for write in effect.writes]
    hold_records(before, event, writes, last, state)
    hold_operation(before, event, writes, state)


def hold_order(before: State, event: Event, last: Effect, state: State) -> None:
    """Phases, and what may follow what."""
    assert isinstance(last, StartPush) == isinstance(event, Admitted), "I3: no push without admission"
    if isinstance(event, Begin) and before.operation is not None:
        assert last == AskStatus(before.operation), "an unknown outcome is looked at first"
    if isinstance(last, RunChecks):
        assert last.view.pinning.pause is None, "a paused asset is not pushed"
        assert last.view.observe is None, "an observed asset is not pushed"
        assert not last.view.orphaned, "I4: what intent let go of is not touched"
        assert not last.diff.empty, "nothing is pushed where nothing differs"
    if isinstance(last, AskAdmission):
        assert isinstance(event, Checked)
        assert all(verdict.allow for verdict in event.verdicts), "I3: every check has allowed it"
        admit = last.admit
        destroys = admit.operation.diff_digest == DESTRUCTIVE.digest()
        assert admit.approval == (destroys and admit.operation.goal is Goal.PRESENT)
    over = isinstance(last, Rest | Again)
    assert over == (state.phase is Phase.IDLE)
    assert over == (state.turn is None)
    if isinstance(last, Rest) and last.delay is not None:
        assert last.delay >= 0


def hold_records(before: State, event: Event, writes: list[Write], last: Effect, state: State) -> None:
    """A decision for each change of mind, and for nothing else."""
    records = [write for write in writes if isinstance(write, RecordDecision)]
    assert len(records) <= 1
    if records:
        condition = records[0].decision.condition
        assert state.condition_key == condition.key() != before.condition_key
        hold_explained(condition)
        assert isinstance(last, Rest)
        assert last.settled == condition.status.settled
    elif not isinstance(event, Admitted):
        assert state.condition_key == before.condition_key, "a verdict that changed is recorded"
    else:
        assert state.operation == event.operation
    for write in writes:
        if isinstance(write, Reschedule):
            assert write.condition.key() == state.condition_key


def hold_explained(condition: Condition) -> None:
    """I8: what is not settled says what blocks it and what would unblock it."""
    assert condition.message
    assert condition.status.settled or condition.unblock


def hold_operation(before: State, event: Event, writes: list[Write], state: State) -> None:
    """I12: no operation is dropped without its end being written; the ledger says what is known."""
    finishes = [write for write in writes if isinstance(write, Finish)]
    ended = [finish.operation for finish in finishes if finish.outcome.result is not Result.UNKNOWN]
    if before.operation is not None and state.operation is None:
        assert ended == [before.operation.id]
    else:
        assert not ended
    if state.operation is not None and before.operation is None:
        assert isinstance(event, Admitted)
    entries = [finish.ledger for finish in finishes if finish.ledger is not None]
    entries += [write.ledger for write in writes if isinstance(write, Adopt)]
    assert state.ledger == (entries[-1] if entries else before.ledger)


@given(st.data())
@settings(max_examples=100)
def test_the_loop_keeps_its_invariants_whatever_happens(data: st.DataObject) -> None:
    shell = Shell(data)
    for _ in range(data.draw(st.integers(20, 60))):
        before, event, effects = shell.go()
        hold_invariants(before, event, effects, shell.state)


@given(st.data())
@settings(max_examples=25)
def test_the_same_events_give_the_same_decisions(data: st.DataObject) -> None:
    shell = Shell(data)
    state = shell.state
    for _ in range(data.draw(st.integers(10, 40))):
        _, event, effects = shell.go()
        state, again = step(state, event)
        assert list(again) == effects
    assert state == shell.state


@given(st.data())
@settings(max_examples=25)
def test_a_push_whose_process_died_is_looked_at_first_wherever_it_died(data: st.DataObject) -> None:
    shell = Shell(data)
    for _ in range(data.draw(st.integers(10, 40))):
        shell.go()
        if shell.state.operation is not None:
            left = replace(shell.state.operation, result=Result.UNKNOWN)
            restarted = State(operation=left, ledger=shell.state.ledger)
            _, effects = step(restarted, Begin(view(after=shell.time, **data.draw(views))))
            assert effects == (AskStatus(left),)
