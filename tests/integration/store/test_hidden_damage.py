"""What damage makes seem to be over, ended or kept is not taken at its word."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from lehr.model.asset import AssetId
from lehr.model.damage import DamagedError
from lehr.model.decision import Reservation
from lehr.model.operation import DONE, Outcome, Result
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Adopt, Prune, Pruned, RecordDecision, Refused
from lehr.sdk.store import Store
from lehr.sdk.watch import FeedGoneError
from lehr.store.postgres import PostgresStore
from lehr.store.postgres.connections import connect
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    admitted,
    asset,
    commit,
    contents,
    decision,
    entry,
    finish,
    governed,
    key,
    published,
    request,
)
from tests.codes import raises
from tests.integration.store.conftest import fresh

_LATER = NOW + 1e7
_RATE = Reservation("rate", 1, 60.0)
_SLOT = Reservation("slot", 1)


class Place(NamedTuple):
    """A store, and a way to change its tables behind its back."""

    store: Store
    damage: Callable[[str], None]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        path = tmp_path / "state.sqlite"

        def change(statement: str) -> None:
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                assert db.execute(statement).rowcount == 1

        with contextlib.closing(SqliteStore(path)) as store:
            yield Place(store, change)
        return
    address = fresh(request.getfixturevalue("server"))

    def change_there(statement: str) -> None:
        with contextlib.closing(connect(address)) as db:
            assert db.execute(statement.encode()).rowcount == 1

    with contextlib.closing(PostgresStore(address)) as remote:
        yield Place(remote, change_there)


def damaged(store: Store, admit: Admit) -> Refused:
    """Commit `admit`, which must be refused because what it rests on is damaged."""
    answer = commit(store, admit)
    assert isinstance(answer, Refused)
    assert answer.reason == Reason.DAMAGED
    return answer


def prune(store: Store, before: float = _LATER, most: int = 100) -> Pruned:
    total = Pruned(rest=Prune(PARTITION, 1, before, most))
    while total.rest is not None:
        total = total.plus(commit(store, total.rest))
    return total


# --- operations -----------------------------------------------------------------------


def _in_flight(place: Place) -> None:
    governed(place.store)
    admitted(place.store, request(place.store, "o0"))
    commit(place.store, finish("o0", DONE))
    admitted(place.store, request(place.store, "o1"))
    place.damage("UPDATE operation SET open = 0 WHERE id = 'o1'")


def test_a_push_that_seems_to_have_ended_keeps_another_from_being_admitted(place: Place) -> None:
    _in_flight(place)
    answer = damaged(place.store, request(place.store, "o2"))
    assert "operation o1 of asset a is damaged" in answer.message
    quiet = ((AssetId("a"), asset("a", "1").digest),)
    asked = request(place.store, "o2", "b")
    on_it = replace(asked, basis=replace(asked.basis, looked_at=quiet))
    assert "operation o1" in damaged(place.store, on_it).message
    admitted(place.store, asked)


def test_a_push_of_long_ago_that_is_damaged_keeps_nothing_back(place: Place) -> None:
    governed(place.store)
    for id in ("o0", "o1"):
        admitted(place.store, request(place.store, id))
        commit(place.store, finish(id, DONE))
    place.damage("UPDATE operation SET open = 0, asset = 'b' WHERE id = 'o0'")
    admitted(place.store, request(place.store, "o2"))


_DAMAGE = {
    "it seems to have ended": "UPDATE operation SET open = 0 WHERE id = 'o1'",
    "its body is nothing": "UPDATE operation SET body = checksum WHERE id = 'o1'",
    "its id is another": "UPDATE operation SET id = 'odd' WHERE id = 'o1'",
}


@pytest.mark.parametrize("damage", _DAMAGE)
def test_the_end_of_a_push_whose_record_is_damaged_is_refused_and_others_are_written(
    place: Place, damage: str
) -> None:
    store = place.store
    governed(store)
    for id, of in (("o1", "a"), ("o2", "b")):
        admitted(store, request(store, id, of))
    place.damage(_DAMAGE[damage])
    refused, ended = store.commit(
        [
            finish("o1", DONE, ledger=entry("a", operation="o1")),
            finish("o2", DONE, ledger=entry("b", operation="o2")),
        ]
    )
    assert isinstance(refused, Refused)
    assert refused.reason == Reason.DAMAGED
    assert "table operation" in refused.message
    assert ended is None
    assert [item.asset for item in store.records.ledgers(PARTITION)] == ["b"], "a's is as it was"
    damaged(store, request(store, "o3"))
    admitted(store, request(store, "o4", "b"))


def test_a_push_whose_record_is_damaged_gives_back_what_it_held_once_it_has_ended(place: Place) -> None:
    store = place.store
    governed(store)
    admitted(store, request(store, "o1", reservations=(_SLOT,)))
    place.damage("UPDATE operation SET open = 0 WHERE id = 'o1'")
    commit(store, finish("o1", Outcome(Result.UNKNOWN)))
    assert store.records.usage(_SLOT, NOW)[0] == 1, "it may go on"
    commit(store, finish("o1", Outcome(Result.FAILED)))
    admitted(store, request(store, "o2", "b", reservations=(_SLOT,)))


@pytest.mark.parametrize("damage", _DAMAGE)
def test_who_starts_is_told_whose_push_may_be_under_way(place: Place, damage: str) -> None:
    store = place.store
    governed(store)
    admitted(store, request(store, "o0", "b"))
    assert store.records.damaged_operations(PARTITION) == []
    admitted(store, request(store, "o1"))
    place.damage(_DAMAGE[damage])
    [found] = store.records.damaged_operations(PARTITION)
    assert found.assets == ("a",)
    assert "of asset a is damaged" in str(found.error)
    assert [item.id for item in store.records.open_operations(PARTITION)] == ["o0"]


def test_a_push_whose_record_contradicts_itself_may_be_of_either_asset(place: Place) -> None:
    store = place.store
    governed(store)
    admitted(store, request(store, "o1"))
    place.damage("UPDATE operation SET asset = 'b' WHERE id = 'o1'")
    [found] = store.records.damaged_operations(PARTITION)
    assert found.assets == ("b", "a")


def test_a_damaged_push_before_the_newest_concerns_nobody_who_starts(place: Place) -> None:
    store = place.store
    governed(store)
    for id in ("o0", "o1"):
        admitted(store, request(store, id))
        commit(store, finish(id, DONE))
    place.damage("UPDATE operation SET id = 'odd' WHERE id = 'o0'")
    assert store.records.damaged_operations(PARTITION) == []


def test_what_a_push_reads_that_seems_to_have_ended_is_not_pruned(place: Place) -> None:
    store = place.store
    governed(store)
    admitted(store, request(store, "o0", "b"))
    commit(store, finish("o0", DONE))
    admitted(store, request(store, "o1"))
    published(store, 1, asset("a", "2"))
    published(store, 2, asset("a", "3"))
    place.damage("UPDATE operation SET open = 0 WHERE id = 'o1'")
    for most in (1, 100):
        with raises("MOD101", DamagedError, match="operation o1"):
            prune(store, most=most)
    assert store.intent.asset(key("a"), 1) == asset("a", "1")


# --- shares of limits -----------------------------------------------------------------


def test_a_share_that_seems_to_be_over_is_not_given_to_another(place: Place) -> None:
    store = place.store
    governed(store)
    admitted(store, request(store, "o1", reservations=(_RATE,)))
    place.damage("UPDATE reservation SET until = 5")
    asked = request(store, "o2", "b", at=NOW + 9, reservations=(_RATE,))
    assert "share of rate" in damaged(store, asked).message
    assert "share of rate" in damaged(store, asked).message


def test_a_share_that_seems_to_be_until_the_end_is_not_given_back(place: Place) -> None:
    store = place.store
    governed(store)
    admitted(store, request(store, "o1", reservations=(_RATE, _SLOT)))
    place.damage("UPDATE reservation SET until = NULL WHERE key = 'rate'")
    commit(store, finish("o1", DONE))
    admitted(store, request(store, "o2", "b", at=NOW + 9, reservations=(_SLOT,)))
    damaged(store, request(store, "o3", "c", at=NOW + 9, reservations=(_RATE,)))


def test_a_share_that_seems_to_be_over_for_long_is_not_removed(place: Place) -> None:
    store = place.store
    governed(store)
    admitted(store, request(store, "o1", reservations=(_RATE,)))
    place.damage("UPDATE reservation SET until = 5")
    prune(store)
    with raises("MOD101", DamagedError, match="share of rate"):
        store.records.usage(_RATE, NOW)


# --- incarnations ---------------------------------------------------------------------


def test_an_incarnation_that_seems_not_to_be_pruned_is_not_read(place: Place) -> None:
    for day in range(1, 5):
        published(place.store, day - 1, asset("a", str(day)), at=NOW + day)
    commit(place.store, Adopt(entry("a", content=1)))  # keeps the first
    prune(place.store)
    place.damage("UPDATE incarnation SET pruned = 0 WHERE sequence = 2")
    with raises("MOD101", DamagedError, match="@2 was pruned"):
        place.store.intent.asset(key("a"), 2)


def test_an_addon_does_not_stand_for_longer_because_no_incarnation_seems_to_be_pruned(place: Place) -> None:
    store = place.store
    for day in range(1, 4):
        published(store, day - 1, asset("a", str(day), {"test.Addon": {}} if day != 2 else {}), at=NOW + day)
    commit(store, Adopt(entry("a", content=1)))  # keeps the first
    prune(store)
    assert store.intent.addon_since(key("a"), "test.Addon") == NOW + 3
    place.damage("UPDATE incarnation SET pruned = 0 WHERE sequence = 2")
    with raises("MOD101", DamagedError, match="@2 was pruned"):
        store.intent.addon_since(key("a"), "test.Addon")


def test_an_incarnation_that_seems_to_be_pruned_keeps_what_it_shows(place: Place) -> None:
    store = place.store
    for day in range(1, 5):
        published(store, day - 1, asset("a", str(day)), at=NOW + day)
    place.damage("UPDATE incarnation SET pruned = 1 WHERE sequence = 2")
    with raises("MOD101", DamagedError, match="@2 was pruned"):
        prune(store)
    assert [sequence for sequence, _asset in store.intent.versions(key("a"), 4)] == [4, 3, 2, 1]


def test_an_earlier_version_that_seems_to_be_in_force_is_not_read_as_the_newest(place: Place) -> None:
    published(place.store, 0, asset("a", "1"))
    published(place.store, 1, asset("a", "2"))
    first = "SELECT min(number) FROM asset_version WHERE id = 'a'"
    place.damage(f"UPDATE asset_current SET version = ({first}) WHERE id = 'a'")
    with raises("MOD101", DamagedError, match="the current state of asset a"):
        contents(place.store, 2)


@pytest.mark.parametrize("column", ["id", "type", "digest"])
def test_an_asset_whose_current_state_differs_from_its_version_is_not_read(place: Place, column: str) -> None:
    published(place.store, 0, asset("a", "1"))
    place.damage(f"UPDATE asset_current SET {column} = 'z'")
    named = "z" if column == "id" else "a"
    with raises("MOD101", DamagedError, match=f"the current state of asset {named}"):
        contents(place.store, 1)


# --- rows that were intact before -----------------------------------------------------


def test_a_row_is_verified_each_time_it_is_read(place: Place) -> None:
    published(place.store, 0, asset("a", "1"))
    commit(place.store, Adopt(entry("a", content=1)))
    assert place.store.records.ledger(key("a")) == entry("a", content=1)
    place.damage("UPDATE ledger SET content = 2")
    with raises("MOD101", DamagedError, match="the ledger of asset a"):
        place.store.records.ledger(key("a"))


# --- the feed -------------------------------------------------------------------------


_NEWEST = "number = (SELECT max(number) FROM feed)"
_OF_ENTRIES = {
    "its changes are others": f"UPDATE feed SET changes = checksum WHERE {_NEWEST}",
    "its number is another": f"UPDATE feed SET number = number + 1000 WHERE {_NEWEST}",
}


@pytest.mark.parametrize("damage", _OF_ENTRIES)
def test_damage_of_the_feed_holds_up_no_commit_and_no_reader_skips_it(place: Place, damage: str) -> None:
    records = place.store.records
    for number in range(1, 4):
        commit(place.store, RecordDecision(decision("a", f"Turn{number}")))
    place.damage(_OF_ENTRIES[damage])
    position = records.position(PARTITION)
    commit(place.store, RecordDecision(decision("a", "Turn4")))
    with pytest.raises((FeedGoneError, DamagedError)):
        records.feed(PARTITION, 2)
    [after] = records.feed(PARTITION, position)
    assert after.position == position + 1


def test_a_decision_with_damaged_inputs_is_not_made_again(place: Place) -> None:
    commit(place.store, RecordDecision(decision("a"), b"inputs"))
    [(number, _decision)] = place.store.records.decisions(PARTITION)
    place.damage("UPDATE decision SET inputs = checksum")
    with raises("MOD101", DamagedError, match="on asset a"):
        place.store.records.decision(PARTITION, number)
