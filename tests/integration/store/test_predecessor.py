"""What validators ask of the newest incarnation in a store."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

import lehr.publish.predecessor
from lehr.model.addons import LABELS, Labels
from lehr.model.asset import AssetId
from lehr.model.damage import DamagedError
from lehr.model.incarnation import AssetChange
from lehr.model.selector import parse_selector
from lehr.publish.predecessor import StoredPredecessor
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, asset, published
from lehr.testing.world import registry
from tests.codes import raises


def test_whether_a_selector_selects_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    try:
        empty = StoredPredecessor(store, registry(), PARTITION)
        assert not empty.selects(parse_selector("a"), ())
        labelled = asset("web", addons={LABELS: Labels({"team": "web"})})
        published(store, 0, asset("a"), asset("b"), labelled)
        found = StoredPredecessor(store, registry(), PARTITION)
        assert found.selects(parse_selector("a"), ())
        assert not found.selects(parse_selector("a"), {AssetId("a")})
        assert found.selects(parse_selector("type=test.*"), {AssetId("a")})
        assert found.selects(parse_selector("label:team=web"), ())
        assert not found.selects(parse_selector("label:team=db"), ())
        assert not found.selects(parse_selector("a,label:team=web"), ())
        monkeypatch.setattr(lehr.publish.predecessor, "_MOST_READ", 2)
        assert found.selects(parse_selector("label:team=db"), ()), "it is not looked for without end"
    finally:
        store.close()


def test_a_damaged_asset_is_replaced_as_what_it_is_known_to_be_and_cannot_be_removed(tmp_path: Path) -> None:
    before, after = asset("a", "1"), asset("a", "2")
    path = tmp_path / "state.sqlite"
    with contextlib.closing(SqliteStore(path)) as store:
        published(store, 0, before)
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            assert db.execute("UPDATE asset_version SET body = NULL").rowcount == 1
        predecessor = StoredPredecessor(store, registry(), PARTITION)
        known = predecessor.change(before.id, after).before
        assert known is not None
        assert (known.type, known.digest) == (before.type, before.digest)
        with raises("MOD101", DamagedError, match="asset a of incarnation"):
            predecessor.change(before.id, None)


def test_changes_are_those_since_the_newest_incarnation_at_that_time(tmp_path: Path) -> None:
    same, old, new, gone, added = asset("a"), asset("b", "1"), asset("b", "2"), asset("c"), asset("d")
    after = {item.id: item for item in (same, new, added)}
    expected = [
        AssetChange(new.id, old, new),
        AssetChange(gone.id, gone, None),
        AssetChange(added.id, None, added),
    ]
    with contextlib.closing(SqliteStore(tmp_path / "state.sqlite")) as store:
        assert [item.id for item in StoredPredecessor(store, registry(), PARTITION).changes(after)] == [
            *after
        ]
        published(store, 0, same, old, gone)
        predecessor = StoredPredecessor(store, registry(), PARTITION)
        assert predecessor.changes(after) == expected
        assert predecessor.changes(after, {same.id, new.id}) == expected[:1]
        published(store, 1, new, added)
        assert predecessor.changes(after) == expected
        assert [item.id for item in StoredPredecessor(store, registry(), PARTITION).changes(after)] == [
            gone.id
        ]
