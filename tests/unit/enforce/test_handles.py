"""Handles in the per-asset loop: kept before the outcome is, and given with every later target."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lehr.enforce.state import (
    Admitted,
    Begin,
    Checked,
    Commit,
    DiffFailed,
    Effect,
    Ended,
    Event,
    RunDiff,
    StartPush,
    State,
    StatusReported,
)
from lehr.model.diff import NO_DIFF, Diff, Goal
from lehr.model.handle import MOST_BYTES, Handle, excess
from lehr.model.operation import DONE, Outcome, Progress, Result
from lehr.model.writes import Adopt, Finish, KeepHandle, RecordDecision, Write
from lehr.testing.virtual import EPOCH
from lehr.testing.world import PARTITION, THING
from tests.unit.enforce.turns import DIFF, KEY, after, diffed, operation, view

KNOWN = Handle(PARTITION, KEY.id, THING, "i-1", EPOCH)


def written(effects: list[Effect]) -> list[Write]:
    """All writes, in their order."""
    return [write for effect in effects if isinstance(effect, Commit) for write in effect.writes]


def pushed(outcome: Outcome) -> tuple[State, list[Effect]]:
    events: tuple[Event, ...] = (Begin(view()), diffed(), Checked((), "o1"), Admitted(operation()))
    return after(State(), *events, Ended(outcome, EPOCH, 1000.0))


@pytest.mark.parametrize("result", Result)
def test_a_handle_is_kept_before_the_outcome_however_the_push_ended(result: Result) -> None:
    state, effects = pushed(Outcome(result, "", handle="i-1"))
    keep, finish, *_ = written(effects)
    assert keep == KeepHandle(KNOWN)
    assert isinstance(finish, Finish)
    assert state.handle == KNOWN


def test_verification_and_each_later_turn_are_given_the_handle() -> None:
    state, effects = pushed(replace(DONE, handle="i-1"))
    assert isinstance(effects[-1], RunDiff)
    assert effects[-1].target.handle == "i-1"
    state, _ = after(state, diffed(NO_DIFF))
    for events in ((Begin(view()),), (Begin(view()), diffed(), Checked((), "o2"), Admitted(operation("o2")))):
        _, effects = after(state, *events)
        assert isinstance(effects[-1], RunDiff | StartPush)
        assert effects[-1].target.handle == "i-1"


def test_the_handle_of_an_adopted_asset_is_kept_and_is_no_part_of_the_decision() -> None:
    state, effects = after(State(), Begin(view()), diffed(replace(NO_DIFF, handle="i-1")))
    keep, adopt, record = written(effects)
    assert keep == KeepHandle(KNOWN)
    assert isinstance(adopt, Adopt)
    assert isinstance(record, RecordDecision)
    assert record.decision.diff == Diff()
    assert state.handle == KNOWN


def test_a_handle_that_is_known_is_not_written_again() -> None:
    for found in (NO_DIFF, replace(NO_DIFF, handle="i-1")):
        _, effects = after(State(handle=KNOWN), Begin(view()), diffed(found))
        assert not any(isinstance(write, KeepHandle) for write in written(effects))


def test_a_handle_of_another_type_is_given_to_nobody_and_replaced() -> None:
    state = State(handle=replace(KNOWN, type="test.Other"))
    state, effects = after(state, Begin(view()))
    assert isinstance(effects[-1], RunDiff)
    assert effects[-1].target.handle == ""
    state, effects = after(state, diffed(replace(DIFF, handle="i-1")))
    assert written(effects) == [KeepHandle(KNOWN)]
    assert state.handle == KNOWN


def test_the_look_after_an_unknown_outcome_names_the_push_that_was_lost() -> None:
    state = State(operation=operation(), handle=KNOWN)
    state, effects = after(state, Begin(view()), StatusReported(Progress.ENDED))
    assert isinstance(effects[-1], RunDiff)
    assert (effects[-1].target.lost, effects[-1].target.handle) == ("o1", "i-1")
    state, effects = after(state, diffed(replace(NO_DIFF, handle="i-2")))
    keep, finish = written(effects)
    assert keep == KeepHandle(replace(KNOWN, text="i-2"))
    assert isinstance(finish, Finish)
    _, effects = after(state, Begin(view()))
    assert isinstance(effects[-1], RunDiff)
    assert (effects[-1].target.lost, effects[-1].target.handle) == ("", "i-2")


def test_the_handle_of_what_was_removed_is_forgotten_once_that_is_verified() -> None:
    gone, push = view(goal=Goal.ABSENT), operation(goal=Goal.ABSENT)
    events = (Begin(gone), diffed(), Checked((), "o1"), Admitted(push), Ended(DONE, EPOCH, 1000.0))
    state, effects = after(State(handle=KNOWN), *events, diffed(NO_DIFF))
    assert written(effects)[0] == KeepHandle(replace(KNOWN, text=""))
    assert state.handle is None
    state, effects = after(state, Begin(gone), diffed(NO_DIFF))
    assert not any(isinstance(write, KeepHandle) for write in written(effects))


def test_a_look_that_finds_nothing_does_not_make_the_handle_forgotten() -> None:
    state, effects = after(State(handle=KNOWN), Begin(view(goal=Goal.ABSENT)), diffed(NO_DIFF))
    assert state.handle == KNOWN
    assert not any(isinstance(write, KeepHandle) for write in written(effects))


def test_what_a_push_may_have_made_is_looked_for_until_a_look_has_an_answer() -> None:
    stalled = DiffFailed("it may exist", "write `import: ID` into intent", stalled=True)
    events: tuple[Event, ...] = (Begin(view()), StatusReported(Progress.ENDED), stalled)
    state, effects = after(State(operation=operation()), *events)
    keep, finish = written(effects)
    assert keep == KeepHandle(replace(KNOWN, text="", lost="o1"))
    assert isinstance(finish, Finish)
    for _ in range(2):
        state, effects = after(state, Begin(view()))
        assert isinstance(effects[-1], RunDiff)
        assert (effects[-1].target.lost, effects[-1].target.handle) == ("o1", "")
        state, effects = after(state, stalled)
        assert not any(isinstance(write, KeepHandle) for write in written(effects))
    found, effects = after(state, Begin(view()), diffed(replace(NO_DIFF, handle="i-1")))
    assert written(effects)[0] == KeepHandle(KNOWN)
    assert found.handle == KNOWN
    nothing, effects = after(state, Begin(view()), diffed(DIFF))
    assert written(effects)[0] == KeepHandle(replace(KNOWN, text=""))
    assert nothing.handle is None


def test_what_was_lost_of_a_known_asset_does_not_cost_its_handle() -> None:
    stalled = DiffFailed("it may exist", stalled=True)
    events: tuple[Event, ...] = (Begin(view()), StatusReported(Progress.ENDED), stalled)
    state, _ = after(State(operation=operation(), handle=KNOWN), *events)
    assert state.handle == replace(KNOWN, lost="o1")
    state, effects = after(state, Begin(view()), diffed(NO_DIFF))
    assert written(effects)[0] == KeepHandle(KNOWN)


def test_the_length_of_a_handle_counts_in_bytes() -> None:
    assert excess("x" * MOST_BYTES) == ""
    assert "8,194 bytes" in excess("ä" * (MOST_BYTES // 2 + 1))
