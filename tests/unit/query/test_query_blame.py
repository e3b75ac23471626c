"""Since when an asset and a field are what they are, over history that comes, goes and is pruned."""

from __future__ import annotations

from typing import Any

from lehr.model.asset import AssetId, AssetKey
from lehr.model.writes import Prune
from lehr.query.blame import blame
from lehr.query.blame_values import Blame


def ask(shelf: Any, id: str, field: str | None = None, incarnation: str = "latest") -> Blame:
    return blame(shelf.reading(), lambda revision: None, id, field, incarnation)


def test_a_field_is_older_than_the_asset_that_changed_elsewhere(shelf: Any) -> None:
    shelf.publish(shelf.asset("a", "x"))
    shelf.publish(shelf.asset("a", "x", Owner={"team": "t"}))
    shelf.publish(shelf.asset("a", "x", Owner={"team": "t"}), shelf.asset("b"))
    found = ask(shelf, "a", "value")
    assert found.field is not None
    assert (found.chain[0].since, found.field.since, found.incarnation) == (2, 1, "shop@3")
    before = ask(shelf, "a", "value", "1")
    assert before.chain[0].since == 1


def test_what_has_been_away_is_only_as_old_as_its_return(shelf: Any) -> None:
    shelf.publish(shelf.asset("a", "x"), shelf.asset("b"))
    shelf.publish(shelf.asset("b"))
    shelf.publish(shelf.asset("a", "x"), shelf.asset("b"))
    found = ask(shelf, "a", "value")
    assert found.field is not None
    assert (found.chain[0].since, found.field.since) == (3, 3)


def test_what_was_pruned_may_have_been_so_longer(shelf: Any) -> None:
    for number in range(5):
        shelf.publish(shelf.asset("a", f"x{number}"), shelf.asset("b"))
    assert not ask(shelf, "b").since_pruned
    shelf.store.commit([Prune(shelf.reading().partition, 1, shelf.tick())])
    found = ask(shelf, "a")
    assert (found.chain[0].since, found.since_pruned) == (5, True)


def test_without_what_was_kept_nothing_is_read(shelf: Any) -> None:
    shelf.publish(shelf.asset("a"))
    found = ask(shelf, "a", "value")
    assert not found.readable
    assert found.field is not None
    assert (found.field.written, found.field.found) == (None, ())


def test_versions_are_told_newest_first_with_absence_among_them(shelf: Any) -> None:
    shelf.publish(shelf.asset("a", "x"), shelf.asset("b"))
    shelf.publish(shelf.asset("b"))
    shelf.publish(shelf.asset("a", "y"), shelf.asset("b"))
    reading = shelf.reading()
    key = AssetKey(reading.partition, AssetId("a"))
    told = [(sequence, asset is None) for sequence, asset in reading.intent.versions(key, 3)]
    assert told == [(3, False), (2, True), (1, False)]
    assert [sequence for sequence, _ in reading.intent.versions(key, 2)] == [2, 1]
