"""An asset does one thing at a time, and goes on only to what may follow."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from lehr.enforce.slot import TRANSITIONS, Activity, Slot
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
