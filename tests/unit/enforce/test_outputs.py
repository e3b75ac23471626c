"""Outputs in the per-asset loop: kept as they are observed, and waited for until they are there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lehr.enforce.state import (
    Admitted,
    Again,
    Begin,
    Checked,
    Commit,
    DiffFailed,
    Effect,
    Ended,
    Event,
    Rest,
    RunDiff,
    State,
    StatusReported,
    Trouble,
)
from lehr.model.asset import AssetId
from lehr.model.decision import Decision, Status
from lehr.model.diff import NO_DIFF, Diff, Goal
from lehr.model.operation import DONE, Progress, Result
from lehr.model.outputs import (
    MOST_BYTES,
    OutputNames,
    Outputs,
    changed_names,
    name_in,
    problem_with,
    value_at,
)
from lehr.model.reason import Reason
from lehr.model.writes import Adopt, Finish, KeepHandle, KeepOutputs, RecordDecision, Write
from lehr.testing.virtual import EPOCH
from lehr.testing.world import PARTITION, THING
from tests.unit.enforce.turns import DIFF, KEY, after, diffed, operation, view

KNOWN = Outputs(PARTITION, KEY.id, THING, {"arn": "arn:1"}, EPOCH)
FOUND = replace(NO_DIFF, outputs={"arn": "arn:1"})
NET = AssetId("net")


def written(effects: list[Effect]) -> list[Write]:
    """All writes, in their order."""
    return [write for effect in effects if isinstance(effect, Commit) for write in effect.writes]


def recorded(effects: list[Effect]) -> Decision:
    [decision] = [write.decision for write in written(effects) if isinstance(write, RecordDecision)]
    return decision


def test_outputs_are_kept_before_the_decision_and_are_no_part_of_it() -> None:
    state, effects = after(State(), Begin(view()), diffed(replace(FOUND, handle="i-1")))
    handle, keep, adopt, record = written(effects)
    assert isinstance(handle, KeepHandle)
    assert keep == KeepOutputs(KNOWN)
    assert isinstance(adopt, Adopt)
    assert isinstance(record, RecordDecision)
    assert record.decision.diff == Diff()
    assert state.outputs == KNOWN


def test_outputs_that_are_known_are_not_written_again() -> None:
    for found in (NO_DIFF, FOUND):
        state, effects = after(State(outputs=KNOWN), Begin(view()), diffed(found))
        assert state.outputs == KNOWN
        assert not any(isinstance(write, KeepOutputs) for write in written(effects))


@pytest.mark.parametrize("now", [{"arn": "arn:2"}, {"arn": "arn:1", "size": 1}, {"arn": None}])
def test_other_outputs_replace_the_last_ones_as_a_whole(now: dict[str, Any]) -> None:
    state, effects = after(State(outputs=KNOWN), Begin(view()), diffed(replace(DIFF, outputs=now)))
    assert written(effects)[0] == KeepOutputs(replace(KNOWN, values=now))
    assert state.outputs == replace(KNOWN, values=now)


def test_true_is_another_output_than_one() -> None:
    assert changed_names({"a": 1, "b": [1]}, {"a": True, "b": [1.0]}) == ["a", "b"]
    assert changed_names({"a": None}, {}) == ["a"]


def test_what_is_found_gone_has_no_outputs_any_more() -> None:
    missing = replace(DIFF, outputs={})
    state, effects = after(State(outputs=KNOWN), Begin(view()), diffed(missing))
    assert written(effects) == [KeepOutputs(replace(KNOWN, values={}))]
    assert state.outputs is None
    _, effects = after(state, Begin(view()), diffed(missing))
    assert written(effects) == []


def test_the_outputs_of_an_asset_of_another_type_are_replaced() -> None:
    state = State(outputs=replace(KNOWN, type="test.Other"))
    state, effects = after(state, Begin(view()), diffed(FOUND))
    assert written(effects)[0] == KeepOutputs(KNOWN)


def test_what_was_removed_has_no_outputs_whatever_its_plugin_returns() -> None:
    gone, push = view(goal=Goal.ABSENT), operation(goal=Goal.ABSENT)
    events = (Begin(gone), diffed(), Checked((), "o1"), Admitted(push), Ended(DONE, EPOCH, 1000.0))
    for found in (NO_DIFF, FOUND):
        state, effects = after(State(outputs=KNOWN), *events, diffed(found))
        assert KeepOutputs(replace(KNOWN, values={})) in written(effects)
        assert state.outputs is None


def test_what_is_still_to_be_removed_keeps_its_outputs() -> None:
    state, _ = after(State(outputs=KNOWN), Begin(view(goal=Goal.ABSENT)), diffed(DIFF))
    assert state.outputs == KNOWN


def test_the_look_after_an_unknown_outcome_keeps_outputs_as_well() -> None:
    state, effects = after(
        State(operation=operation()), Begin(view()), StatusReported(Progress.ENDED), diffed(FOUND)
    )
    keep, finish = written(effects)
    assert keep == KeepOutputs(KNOWN)
    assert isinstance(finish, Finish)
    assert state.outputs == KNOWN


def awaiting(**fields: Any) -> DiffFailed:
    return DiffFailed("output `id` of net is not known yet", "wait", until=0.0, awaits=(NET,), **fields)


def test_an_output_that_is_not_known_is_waited_for_and_names_its_asset() -> None:
    state, effects = after(State(), Begin(view()), awaiting(refers_to=(NET, AssetId("other"))))
    decision, rest = recorded(effects), effects[-1]
    assert (decision.condition.status, decision.condition.reason) == (Status.WAITING, Reason.OUTPUT_UNKNOWN)
    assert decision.awaits == (NET,)
    assert isinstance(rest, Rest)
    assert (rest.wait_for, rest.delay, rest.settled) == ((NET,), None, False)
    assert decision.condition.next_at is None
    assert state.trouble.failed_diffs == 0


def test_to_wait_for_an_output_is_no_failure_and_ends_a_row_of_them() -> None:
    state, _ = after(State(trouble=Trouble(failures=2, failed_diffs=3)), Begin(view()), awaiting())
    assert (state.trouble.failures, state.trouble.failed_diffs) == (2, 0)


def test_assets_that_need_outputs_of_each_other_say_so() -> None:
    _, effects = after(State(), Begin(view()), awaiting(cycle=(KEY.id, NET)))
    condition = recorded(effects).condition
    assert (condition.status, condition.reason) == (Status.WAITING, Reason.MUTUAL_BLOCK)
    assert condition.message.startswith("a waits for net waits for a")


def test_an_unknown_outcome_waits_for_the_output_that_its_look_needs() -> None:
    events: tuple[Event, ...] = (Begin(view()), StatusReported(Progress.ENDED), awaiting())
    state, effects = after(State(operation=operation()), *events)
    rest = effects[-1]
    assert isinstance(rest, Rest)
    assert rest.wait_for == (NET,)
    assert state.operation is not None


def test_an_unknown_outcome_does_not_wait_for_an_output_that_waits_for_it() -> None:
    events: tuple[Event, ...] = (
        Begin(view()),
        StatusReported(Progress.ENDED),
        awaiting(cycle=(KEY.id, NET)),
    )
    state, effects = after(State(operation=operation()), *events)
    [finish] = [write for write in written(effects) if isinstance(write, Finish)]
    assert finish.outcome.result is Result.FAILED
    assert state.operation is None
    assert isinstance(effects[-1], Again)


def test_once_it_is_known_the_turn_goes_on() -> None:
    state, _ = after(State(), Begin(view()), awaiting())
    state, effects = after(state, Begin(view()))
    assert isinstance(effects[-1], RunDiff)


NAMES = OutputNames(stable=frozenset({"id"}), changing=frozenset({"load"}))


@pytest.mark.parametrize(
    ("values", "names", "why"),
    [
        ({"id": 1, "load": 2}, NAMES, ""),
        ({}, OutputNames(), ""),
        ({"id": 1, "arn": 2}, NAMES, "the output `arn`, and its type has `id`, `load`"),
        ({"arn": 2}, OutputNames(), "the output `arn`, and its type has none"),
        ({"id": "x" * (MOST_BYTES - 9)}, NAMES, ""),
        ({"id": "x" * (MOST_BYTES - 8)}, NAMES, "outputs of 8,193 bytes; at most 8,192 are kept"),
    ],
)
def test_what_may_be_an_output(values: dict[str, Any], names: OutputNames, why: str) -> None:
    assert problem_with(values, names) == why


def test_a_path_leads_into_an_output() -> None:
    values = {"zones": ["a", {"b/c": None}], "x~y": 1}
    assert value_at(values, "zones/0") == "a"
    assert value_at(values, "zones/1/b~1c") is None
    assert value_at(values, "x~0y") == 1
    assert name_in("x~0y/1") == "x~y"
    for path in ("zones/2", "zones/-1", "zones/b", "zones/0/a", "", "id", "zones/"):
        with pytest.raises(LookupError):
            value_at(values, path)
