"""An asset does one thing at a time, and goes on only to what may follow."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lehr.enforce.slot import TRANSITIONS, Activity, RunningPush, Slot
from lehr.enforce.state import State, Trouble
from lehr.model.asset import AssetId, AssetKey, Partition
from tests.unit.enforce.turns import operation


def slot() -> Slot:
    lane: Any = None  # what an asset may do next is not the lane's business
    return Slot(AssetKey(Partition("test"), AssetId("a")), "Thing", None, lane)


@pytest.mark.parametrize(
    ("routine", "state", "shared"),
    [
        (True, State(), True),
        (False, State(), False),
        (True, State(operation=operation()), False),
        (True, State(trouble=Trouble(failed_diffs=1)), False),
        (True, State(trouble=Trouble(failures=1)), True),
    ],
    ids=["routine", "urgent", "outcome unknown", "comparison failed", "push failed"],
)
def test_only_regular_turns_without_trouble_are_compared_together(
    routine: bool, state: State, shared: bool
) -> None:
    tested = slot()
    tested.routine, tested.state = routine, state
    assert tested.may_share_a_call is shared


@pytest.mark.parametrize(("before", "after"), [*itertools.product(Activity, Activity)])
def test_only_what_may_follow_does(before: Activity, after: Activity) -> None:
    tested = slot()
    tested.activity = before
    if after in TRANSITIONS[before]:
        tested.become(after)
        assert tested.activity is after
    else:
        with pytest.raises(RuntimeError, match=f"{before.name} cannot be followed by {after.name}"):
            tested.become(after)
        assert tested.activity is before


def test_every_activity_can_be_reached_and_left() -> None:
    reached = {Activity.IDLE}
    while more := {after for before in reached for after in TRANSITIONS[before]} - reached:
        reached |= more
    assert reached == set(Activity)
    assert all(TRANSITIONS[activity] for activity in Activity)


def test_a_push_keeps_the_first_and_the_last_of_many_reports() -> None:
    times = itertools.count(1.0)
    push = RunningPush(operation(), lambda: next(times))
    assert (push.last_progress, push.steps) == ("", ())
    for number in range(50):
        push.progress(f"step {number}")
        push.progress(f"step {number}")  # which is nothing new
    messages = [step.message for step in push.steps]
    assert messages == [f"step {number}" for number in (*range(10), *range(40, 50))]
    assert [step.at for step in push.steps][:2] == [1.0, 2.0]
    assert push.last_progress == "step 49"


def test_a_report_is_one_short_line() -> None:
    push = RunningPush(operation(), lambda: 1.0)
    push.progress("two\nlines " + "x" * 10_000)
    [step] = push.steps
    assert "\n" not in step.message
    assert len(step.message) <= 200
