"""State files of older versions: brought up to date by who writes, and refused with advice by who reads."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.base.errors import StalledError, TransientError
from lehr.store import SqliteStore
from lehr.store.sqlite import migrations, schema
from lehr.testing.conformance.store.subject import PARTITION, RULE, asset, contents, key, published

VERSION_2 = Path(__file__).with_name("version_2.sql")
"""What the last Lehr of version 2 had written: two incarnations, a push, a freeze."""


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        yield db


def version(path: Path) -> int:
    with database(path) as db:
        return migrations.version_of(db)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "state.sqlite"
    with database(path) as db:
        db.executescript(VERSION_2.read_text())
        db.execute("PRAGMA user_version = 2")
        db.execute(f"PRAGMA application_id = {0x4C656872}")
        db.execute("PRAGMA journal_mode = WAL")
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
    assert list(migrations.STEPS) == list(range(migrations.OLDEST, schema.VERSION))


def test_an_older_file_is_brought_to_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    SqliteStore(old).close()
    SqliteStore(tmp_path / "new").close()
    assert version(old) == schema.VERSION
    assert tables(old) == tables(tmp_path / "new")


def test_what_an_older_file_knew_is_known_and_goes_on(old: Path) -> None:
    with contextlib.closing(SqliteStore(old)) as store:
        assert contents(store, 1) == [asset("a", "1"), asset("b", "1"), asset("rule", "1", type=RULE)]
        assert contents(store, 2) == [asset("a", "2"), asset("c", "1"), asset("rule", "1", type=RULE)]
        assert store.intent.mentioned_by(key("c")) == [("a", "/payload/0")]
        assert [item.id for item in store.records.operations(PARTITION)] == ["o1"]
        assert [item.id for item in store.records.controls(PARTITION, 0.0)[1]] == ["c1"]
        assert len(store.records.decisions(PARTITION)) == 2
        assert published(store, 2, asset("d", "1")).sequence == 3


def test_a_copy_of_the_older_file_is_left_beside_it(old: Path) -> None:
    SqliteStore(old).close()
    with database(migrations.copy_of(old, 2)) as db:
        assert migrations.version_of(db) == 2
        assert "\n".join(db.iterdump()) + "\n" == VERSION_2.read_text()
    assert sorted(path.name for path in old.parent.iterdir()) == ["state.sqlite", "state.sqlite.version-2"]


def test_a_step_that_fails_leaves_the_file_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = {2: migrations.STEPS[2] + ";\nCREATE TABLE imported (name)"}
    monkeypatch.setattr(migrations, "STEPS", half)
    before = tables(old)
    with pytest.raises(TransientError, match="already exists"):
        SqliteStore(old)
    assert (version(old), tables(old)) == (2, before)


def test_without_room_for_the_copy_nothing_is_done(old: Path) -> None:
    migrations.copy_of(old, 2).mkdir()  # it cannot be replaced by a file
    (migrations.copy_of(old, 2) / "x").touch()
    with pytest.raises(TransientError, match="cannot be copied") as caught:
        SqliteStore(old)
    assert caught.value.fix
    assert version(old) == 2
    assert [path.name for path in old.parent.iterdir() if "half" in path.name] == []


def test_who_only_reads_an_older_file_is_told_what_to_do(old: Path) -> None:
    with pytest.raises(
        StalledError, match=f"has version 2, this Lehr reads version {schema.VERSION}"
    ) as caught:
        SqliteStore(old, read_only=True)
    assert "start `lehr run`" in caught.value.fix
    assert version(old) == 2


def test_what_is_older_than_every_step_is_refused(old: Path) -> None:
    with database(old) as db:
        db.execute("PRAGMA user_version = 1")
    with pytest.raises(StalledError, match="has version 1") as caught:
        SqliteStore(old)
    assert "run the Lehr that wrote it" in caught.value.fix


def test_a_newer_file_is_refused_and_left_alone(old: Path) -> None:
    with database(old) as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with pytest.raises(StalledError, match="run the Lehr that wrote it"):
        SqliteStore(old)
    assert version(old) == schema.VERSION + 1
