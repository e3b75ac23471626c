"""What another process remembers of an asset is what the running one does, on its own clock."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from lehr.enforce.contest import NO_CONTEST, Contest
from lehr.enforce.memory import NO_MEMORY, Memory, memory_after
from lehr.enforce.state import NO_TROUBLE, DiffFailed, State, Trouble
from lehr.enforce.step import step
from lehr.model.diff import NO_DIFF
from tests.unit.enforce.test_turn_inputs import BEGIN, FAILING, decided
from tests.unit.enforce.turns import diffed

LATER = 7.0
AHEAD = 500.0
"""How far the clock of the other process is ahead."""


def remembered(state: State, *events: object) -> tuple[Memory, State]:
    """The memory after a turn by another clock, seconds later; and the state of the process that decided."""
    decision, inputs = decided(state, list(events))  # type: ignore[arg-type]
    for event in events:
        state, _effects = step(state, event)  # type: ignore[arg-type]
    monotonic = BEGIN.view.monotonic + LATER + AHEAD
    return memory_after(decision, inputs, decision.at + LATER, monotonic), state


def test_a_failed_push_is_remembered_on_the_other_clock() -> None:
    failing = replace(FAILING, not_before=BEGIN.view.monotonic + 60.0)
    memory, state = remembered(State(trouble=failing), BEGIN, diffed())
    assert state.trouble.not_before == failing.not_before
    assert memory.trouble == replace(state.trouble, not_before=failing.not_before + AHEAD)
    assert memory.contest == state.contest == NO_CONTEST
    assert memory.slows


def test_a_contested_asset_is_remembered_on_the_other_clock() -> None:
    contest = Contest(FAILING.content_digest, (), 2, BEGIN.view.monotonic + 30.0)
    memory, _state = remembered(State(contest=contest), BEGIN, diffed())
    assert memory.contest == replace(contest, not_before=contest.not_before + AHEAD)
    assert memory.slows


def test_what_stalls_in_this_turn_is_remembered() -> None:
    memory, state = remembered(State(), BEGIN, DiffFailed("no such table", "create it", stalled=True))
    assert memory.trouble == state.trouble
    assert memory.trouble.failed_diffs == 1
    assert memory.slows


def test_an_asset_without_trouble_leaves_nothing_to_remember() -> None:
    memory, _state = remembered(State(), BEGIN, diffed(NO_DIFF))
    assert memory == NO_MEMORY
    assert not memory.slows


@pytest.mark.parametrize(
    ("trouble", "slows"),
    [
        (NO_TROUBLE, False),
        (Trouble(FAILING.content_digest), False),
        (Trouble(failures=1), True),
        (Trouble(failed_diffs=1), True),
        (Trouble(ineffective=1), True),
        (Trouble(stalled=True), True),
    ],
)
def test_only_what_keeps_an_asset_from_being_pushed_slows_it(trouble: Trouble, slows: bool) -> None:
    assert Memory(trouble).slows is slows


def test_other_bytes_are_not_inputs() -> None:
    decision, _inputs = decided(State(), [BEGIN, diffed(NO_DIFF)])
    with pytest.raises(msgspec.DecodeError):
        memory_after(decision, b"{", 0.0, 0.0)
