"""`replay` compares a decision with what is decided again from its inputs, and says what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.enforce.replay import Replay, replay
from lehr.enforce.state import DiffFailed, State
from lehr.model.asset import Partition
from lehr.model.decision import Decision
from lehr.model.incarnation import Candidate
from lehr.model.reason import Reason
from lehr.model.writes import Prune, Publish, RecordDecision
from lehr.query.partition_view import Reading
from lehr.store.sqlite import SqliteStore
from lehr.testing.virtual import EPOCH
from tests.codes import raises
from tests.unit.enforce.test_turn_inputs import BEGIN, FAILING, TURNS, decided
from tests.unit.enforce.turns import ASSET, KEY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "state.sqlite")
    store.commit([Publish(Candidate(KEY.partition, 0, (), Digest("g"), (ASSET,), ()), {}, (), EPOCH)])
    yield store
    store.close()


def kept(store: SqliteStore, decision: Decision, inputs: bytes) -> int:
    """The number under which it is kept."""
    store.commit([RecordDecision(decision, inputs)])
    return store.records.decisions(decision.partition, None, 1)[0][0]


def replayed(store: SqliteStore, number: int, partition: Partition = KEY.partition) -> Replay:
    return replay(Reading(store, partition, EPOCH, lambda type: False), number)


@pytest.mark.parametrize("name", TURNS)
def test_a_decision_that_follows_from_its_inputs_is_the_same(store: SqliteStore, name: str) -> None:
    decision, inputs = decided(*TURNS[name])
    number = kept(store, decision, inputs)
    found = replayed(store, number)
    assert (found.number, found.asset, found.at) == (number, decision.asset, decision.at)
    assert (found.same, found.differences) == (True, ())
    assert found.recorded == found.again == decision.condition


def test_a_decision_that_does_not_follow_differs_in_the_fields_that_are_named(store: SqliteStore) -> None:
    decision, inputs = decided(*TURNS["a check"])
    forged = replace(decision, condition=replace(decision.condition, message="all is well"), turns=9)
    found = replayed(store, kept(store, forged, inputs))
    assert not found.same
    by_field = {item.field: (item.recorded, item.again) for item in found.differences}
    assert by_field.keys() == {"condition"}  # the number of equal turns is an input
    before, after = by_field["condition"]
    assert before["message"] == "all is well"
    assert after == {**before, "message": decision.condition.message}
    assert (found.recorded, found.again) == (forged.condition, decision.condition)


def test_another_verdict_is_told_apart(store: SqliteStore) -> None:
    decision, _inputs = decided(*TURNS["a check"])
    _other, inputs = decided(State(trouble=FAILING), [BEGIN, DiffFailed("no answer")])
    found = replayed(store, kept(store, decision, inputs))
    assert not found.same
    assert found.again is not None
    assert found.again.reason == Reason.DIFF_FAILED


def test_what_was_recorded_without_inputs_cannot_be_replayed(store: SqliteStore) -> None:
    decision, _inputs = decided(*TURNS["a check"])
    number = kept(store, decision, b"")
    with raises("ENF112", match=str(number)):
        replayed(store, number)


def test_inputs_of_another_form_are_refused(store: SqliteStore) -> None:
    decision, _inputs = decided(*TURNS["a check"])
    number = kept(store, decision, b"\x92\x90")
    with raises("ENF113", match=decision.asset):
        replayed(store, number)


@pytest.mark.parametrize("number", [-1, 0, 2, 2**53])
def test_a_number_that_was_never_given_is_unknown(store: SqliteStore, number: int) -> None:
    kept(store, *decided(*TURNS["a check"]))
    with raises("ENF114"):
        replayed(store, number)


def test_a_decision_that_was_pruned_is_not_there_any_more(store: SqliteStore) -> None:
    first, newest = (kept(store, *decided(*TURNS[name])) for name in ("a check", "a push"))
    share: Prune | None = Prune(KEY.partition, keep=1, before=EPOCH + 1e6)
    while share is not None:
        [pruned] = store.commit([share])
        share = pruned.rest
    with raises("ENF115", match=str(first)):
        replayed(store, first)
    assert replayed(store, newest).same


def test_a_decision_of_another_partition_is_not_shown(store: SqliteStore) -> None:
    other = Partition("other")
    decision, inputs = decided(*TURNS["a check"])
    number = kept(store, decision, inputs)
    kept(store, replace(decision, partition=other), inputs)
    with raises("ENF115"):
        replayed(store, number, other)
