"""What the per-asset loop remembers of what went wrong, and for how long."""

from __future__ import annotations

from lehr.enforce.state import (
    Admitted,
    Again,
    AskAdmission,
    Begin,
    Checked,
    Commit,
    Diffed,
    DiffFailed,
    Effect,
    Ended,
    NotAdmitted,
    Rest,
    State,
    StatusReported,
)
from lehr.enforce.turndown import TurndownStage
from lehr.model.decision import Condition, Status
from lehr.model.diff import Change, Diff, Goal
from lehr.model.operation import DONE, Outcome, Progress, Result
from lehr.model.reason import Reason
from lehr.model.writes import Finish, RecordDecision, Refused
from lehr.testing.virtual import EPOCH
from tests.unit.enforce.turns import CONTENT, DIFF, after, checking, diffed, operation, view

NOT_SEEN = DiffFailed("no connection")
NOT_COMPARABLE = DiffFailed("the address makes no sense", "correct it", stalled=True)


def recorded(effects: list[Effect]) -> Condition:
    [found] = [
        write.decision.condition
        for effect in effects
        if isinstance(effect, Commit)
        for write in effect.writes
        if isinstance(write, RecordDecision)
    ]
    return found


def pushing(state: State, seconds: float) -> State:
    """The state in which a push of `DIFF` is under way, `seconds` after the start."""
    return after(state, Begin(view(after=seconds)), diffed(), Checked((), "o1"), Admitted(operation()))[0]


def ended(outcome: Outcome, seconds: float) -> Ended:
    return Ended(outcome, EPOCH + seconds, 1000.0 + seconds)


def test_a_push_that_ended_and_cannot_be_compared_does_not_hold_newer_content_up() -> None:
    state = State(operation=operation())
    state, effects = after(state, Begin(view()), StatusReported(Progress.ENDED), NOT_COMPARABLE)
    assert state.operation is None
    [keep, commit, again] = effects
    assert isinstance(keep, Commit)
    assert isinstance(commit, Commit)
    [finish] = commit.writes
    assert isinstance(finish, Finish)
    assert finish.outcome.result is Result.FAILED
    assert isinstance(again, Again)


def test_a_push_that_ended_stays_unknown_while_production_cannot_be_seen() -> None:
    state = State(operation=operation())
    state, effects = after(state, Begin(view()), StatusReported(Progress.ENDED), NOT_SEEN)
    assert state.operation is not None
    assert recorded(effects).status is Status.UNKNOWN


def test_diffs_that_failed_do_not_count_as_pushes_that_failed() -> None:
    state = State()
    for _ in range(5):
        state, _effects = after(state, Begin(view()), NOT_SEEN)
    assert state.trouble.failed_diffs == 5
    state, effects = after(checking(state), Checked((), "o1"))
    [ask] = effects
    assert isinstance(ask, AskAdmission)
    assert not ask.retry
    state = pushing(state, 0.0)
    _, effects = after(state, ended(Outcome(Result.FAILED, "refused"), 1.0))
    assert "once" in recorded(effects).message
    assert "refused" in recorded(effects).message


def test_pushes_that_leave_another_diff_each_time_are_pushed_at_growing_distances() -> None:
    state, seconds, delays = State(), 0.0, []
    for number in range(6):
        state = pushing(state, seconds)
        left = Diff((Change("uptime", 0, number),))
        state, effects = after(state, ended(DONE, seconds), Diffed(left, CONTENT))
        rest = effects[-1]
        assert isinstance(rest, Rest)
        assert rest.delay is not None, "no two of these diffs are the same, so nothing stalls"
        delays.append(rest.delay)
        seconds += rest.delay
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


def test_a_failed_push_is_remembered_for_the_goal_that_it_had() -> None:
    state = State(operation=operation(goal=Goal.FENCED))
    seen = Begin(view(stage=TurndownStage(Goal.ABSENT)))
    state, _ = after(state, seen, StatusReported(Progress.ENDED), Diffed(DIFF, CONTENT))
    assert state.trouble.failures == 1
    state, _ = after(state, Begin(view(stage=TurndownStage(Goal.FENCED))), Diffed(DIFF, CONTENT))
    assert state.trouble.failures == 1


def test_a_turn_that_is_out_of_date_again_and_again_says_so() -> None:
    overtaken = NotAdmitted(Refused(Reason.OVERTAKEN, "a new incarnation changed this asset"))
    state, delays = State(), []
    for _ in range(7):
        state, effects = after(checking(state), Checked((), "o1"), overtaken)
        rest = effects[-1]
        assert isinstance(rest, Rest)
        assert rest.delay is not None
        delays.append(rest.delay)
        if len(delays) == 4:
            assert effects == [rest], "it is nothing to speak of yet"
        if len(delays) == 5:
            assert recorded(effects).reason == Reason.OVERTAKEN
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    state = pushing(state, 0.0)
    assert state.refused == 0


def test_what_is_to_stand_anew_is_not_pushed_before_its_time() -> None:
    stage = TurndownStage(Goal.ABSENT, until=EPOCH + 60, held=True)
    state, effects = after(State(), Begin(view(stage=stage)), Diffed(DIFF, CONTENT))
    [rest] = [effect for effect in effects if isinstance(effect, Rest)]
    assert (rest.delay, state.operation) == (60.0, None)
    assert recorded(effects).reason == Reason.TURNDOWN_STANDS
