"""State files of older versions: brought up to date by who writes, and refused with advice by who reads."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.base.errors import StalledError, TransientError
from lehr.store.sqlite import SqliteStore, migrations, schema
from lehr.testing.conformance.store.subject import asset, contents, key, published

STEP = "ALTER TABLE audit ADD COLUMN note TEXT;\nCREATE INDEX audit_note ON audit (note)"
OLD = schema.VERSION


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        yield db


def version(path: Path) -> int:
    with database(path) as db:
        return migrations.version_of(db)


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state file that the Lehr before has written."""
    path = tmp_path / "state.sqlite"
    with contextlib.closing(SqliteStore(path)) as store:
        published(store, 0, asset("a", "1"), asset("b", "1"))
        published(store, 1, asset("a", "2"), removals=["b"], mentions={"a": ["c"]})
    with database(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    monkeypatch.setattr(schema, "VERSION", OLD + 1)
    monkeypatch.setattr(migrations, "STEPS", {OLD: STEP})
    return path


def tables(path: Path) -> dict[str, Any]:
    """Columns and indexes of every table; not the text that made them, which differs."""
    with database(path) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {name: db.execute(f"PRAGMA table_xinfo({name})").fetchall() for name in names}
        indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'").fetchall()
    by_name = {name: sorted(row[1:] for row in rows) for name, rows in columns.items()}
    return {**by_name, "indexes": sorted(indexes)}


def test_every_older_version_has_a_step() -> None:
    assert list(migrations.STEPS) == list(range(1, schema.VERSION))


def test_an_older_file_is_brought_up_to_date_and_goes_on(old: Path) -> None:
    with contextlib.closing(SqliteStore(old)) as store:
        assert contents(store, 1) == [asset("a", "1"), asset("b", "1")]
        assert contents(store, 2) == [asset("a", "2")]
        assert store.intent.mentioned_by(key("c")) == [("a", "/payload/0")]
        assert published(store, 2, asset("d", "1")).sequence == 3
    assert version(old) == schema.VERSION
    assert any(name == "audit_note" for name, _sql in tables(old)["indexes"])


def test_a_copy_of_the_older_file_is_left_beside_it(old: Path) -> None:
    with database(old) as db:
        before = list(db.iterdump())
    SqliteStore(old).close()
    with database(migrations.copy_of(old, OLD)) as db:
        assert migrations.version_of(db) == OLD
        assert list(db.iterdump()) == before
    names = sorted(path.name for path in old.parent.iterdir())
    assert names == ["state.sqlite", f"state.sqlite.version-{OLD}"]


def test_a_step_that_fails_leaves_the_file_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = {OLD: STEP + ";\nCREATE TABLE imported (name)"}
    monkeypatch.setattr(migrations, "STEPS", half)
    before = tables(old)
    with pytest.raises(TransientError, match="already exists"):
        SqliteStore(old)
    assert (version(old), tables(old)) == (OLD, before)


def test_without_room_for_the_copy_nothing_is_done(old: Path) -> None:
    migrations.copy_of(old, OLD).mkdir()  # it cannot be replaced by a file
    (migrations.copy_of(old, OLD) / "x").touch()
    with pytest.raises(TransientError, match="cannot be copied") as caught:
        SqliteStore(old)
    assert caught.value.fix
    assert version(old) == OLD
    assert [path.name for path in old.parent.iterdir() if "half" in path.name] == []


def test_who_only_reads_an_older_file_is_told_what_to_do(old: Path) -> None:
    with pytest.raises(
        StalledError, match=f"has version {OLD}, this Lehr reads version {schema.VERSION}"
    ) as caught:
        SqliteStore(old, read_only=True)
    assert "start `lehr run`" in caught.value.fix
    assert version(old) == OLD


def test_what_no_step_leads_on_from_is_refused(old: Path) -> None:
    with database(old) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StalledError, match="has version 99") as caught:
        SqliteStore(old)
    assert "run the Lehr that wrote it" in caught.value.fix


def test_a_newer_file_is_refused_and_left_alone(old: Path) -> None:
    with database(old) as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(StalledError, match="run the Lehr that wrote it"):
        SqliteStore(old)
    assert version(old) == schema.VERSION + 1
