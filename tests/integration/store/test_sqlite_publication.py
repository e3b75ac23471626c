"""What publishing leaves in a SQLite file, beyond what can be read through the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from lehr.base.digest import digest_all
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import Candidate
from lehr.model.writes import Publish
from lehr.store.sqlite import SqliteStore, publication
from tests.codes import raises

PARTITION = Partition("p")


def asset(id: str, text: str = "") -> Asset:
    return make_asset(AssetId(id), "sample.Policy", {"text": text}, {})


def publish(assets: Sequence[Asset], base: int = 0, claims: dict[str, str] | None = None) -> Publish:
    candidate = Candidate(PARTITION, base, (), digest_all(()), tuple(assets), ())
    held: dict[AssetId, tuple[str, ...]] = {AssetId(id): (claim,) for id, claim in (claims or {}).items()}
    return Publish(candidate, {}, (), 0.0, held)


def schema(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {row[0] for row in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publication, "_MANY", 1)


def test_an_incarnation_of_many_changes_leaves_every_index_that_it_found(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    before = schema(path)
    store.commit([publish([asset("b"), asset("a")])])
    assert schema(path) == before
    store.commit([publish([asset("b", "changed"), asset("c")], 1)])
    store.close()
    assert schema(path) == before
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_incarnation_of_many_changes_that_fails_leaves_every_index_that_it_found(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    before = schema(path)
    with raises("STO150", StalledError):
        store.commit([publish([asset("a"), asset("a", "another")])])
    store.commit([publish([asset("a")])])
    store.close()
    assert schema(path) == before


def test_only_claims_that_differ_are_written(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    store.commit([publish([asset("a"), asset("b")], 0, {"a": "port:1", "b": "port:2"})])
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE written (claim TEXT)")
        for event, row in (("INSERT", "new"), ("DELETE", "old")):
            db.execute(
                f"CREATE TRIGGER on_{event} AFTER {event} ON claim_current"
                f" BEGIN INSERT INTO written VALUES ('{event} ' || {row}.claim); END"
            )
        db.commit()
        changed = [asset("a", "changed"), asset("b", "changed")]
        store.commit([publish(changed, 1, {"a": "port:1", "b": "port:3"})])
        assert db.execute("SELECT claim FROM written ORDER BY claim").fetchall() == [
            ("DELETE port:2",),
            ("INSERT port:3",),
        ]
    assert store.intent.claimed_by(PARTITION, "port:3") == ["b"]
    assert store.intent.claimed_by(PARTITION, "port:2") == []
    store.close()
