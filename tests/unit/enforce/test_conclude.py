"""How a turn ends: one record for each change of mind."""

from __future__ import annotations

import pytest

from lehr.enforce.conclude import conclude, decision_of, pushing_condition
from lehr.enforce.state import Commit, Phase, Rest, State, Trouble, Turn
from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Condition, Status, Verdict
from lehr.model.operation import DONE
from lehr.model.pinning import Pinning
from lehr.model.reason import Reason
from lehr.model.writes import Finish, RecordDecision, Reschedule
from lehr.testing.virtual import EPOCH
from tests.unit.enforce.turns import CONTENT, DIFF, KEY, control, operation, view

HELD = Condition(Status.HELD, Reason.PAUSED, "m", "u")
TURN = Turn(view(), DIFF, CONTENT, (Verdict("a", True),))


def test_a_changed_verdict_is_recorded_after_what_it_rests_on() -> None:
    finish = Finish(KEY.partition, "o1", DONE, EPOCH)
    state, (commit, rest) = conclude(State(turn=TURN), HELD, writes=(finish,), operation="o1")
    assert isinstance(commit, Commit)
    first, second = commit.writes
    assert first == finish
    assert isinstance(second, RecordDecision)
    assert second.decision.operation == "o1"
    assert second.decision.verdicts == TURN.verdicts
    assert rest == Rest()
    assert (state.condition_key, state.phase, state.turn) == (HELD.key(), Phase.IDLE, None)


def test_an_unchanged_verdict_only_counts_up() -> None:
    state, effects = conclude(State(turn=TURN, condition_key=HELD.key(), turns=4), HELD)
    assert effects == (Rest(),)
    assert state.turns == 5


def test_what_must_be_written_is_written_also_without_a_new_verdict() -> None:
    finish = Finish(KEY.partition, "o1", DONE, EPOCH)
    _, effects = conclude(State(turn=TURN, condition_key=HELD.key()), HELD, writes=(finish,))
    assert effects == (Commit((finish,)), Rest())


@pytest.mark.parametrize(
    ("before", "delay", "touched"),
    [
        (None, None, False),
        (None, 30.0, True),
        (EPOCH + 30, None, True),
        (EPOCH + 30, 30.0, False),
        (EPOCH + 30, 30.9, False),
        (EPOCH + 30, 60.0, True),
    ],
)
def test_a_due_time_that_moved_is_touched(before: float | None, delay: float | None, touched: bool) -> None:
    state = State(turn=TURN, condition_key=HELD.key(), next_at=before)
    _, effects = conclude(state, HELD, delay=delay)
    writes = [write for effect in effects if isinstance(effect, Commit) for write in effect.writes]
    assert [type(write) for write in writes] == [Reschedule] * touched


def test_who_waits_and_who_has_settled_is_told() -> None:
    names = (AssetId("b"),)
    _, effects = conclude(State(turn=TURN), HELD, delay=5.0, wait_for=names)
    assert effects[-1] == Rest(5.0, names)
    _, effects = conclude(State(turn=TURN), Condition(Status.CONVERGED, Reason.AS_INTENDED), settled=True)
    assert effects[-1] == Rest(settled=True)


def test_a_decision_names_what_the_turn_read_and_remembered() -> None:
    pin = control(ControlKind.PIN, "c7", incarnation=1)
    seen = Turn(view(pinning=Pinning(1, pin), cause="resync"), DIFF, CONTENT)
    state = State(turn=seen, turns=3, trouble=Trouble(failures=1, ineffective=2))
    decision = decision_of(state, HELD)
    assert (decision.partition, decision.asset) == KEY
    assert (decision.content, decision.governing, decision.event) == (1, 2, "resync")
    assert (decision.turns, decision.diff) == (3, DIFF)
    assert decision.evidence == {
        "content_digest": CONTENT,
        "pin": "c7",
        "failures": 1,
        "ineffective_pushes": 2,
    }


def test_a_turn_without_an_asset_has_no_content() -> None:
    assert decision_of(State(turn=Turn(view(asset=None))), HELD).content == 0


def test_the_condition_during_a_push_names_it() -> None:
    condition = pushing_condition(operation("o9"))
    assert condition.status is Status.PUSHING
    assert "o9" in condition.message
    assert condition.unblock
