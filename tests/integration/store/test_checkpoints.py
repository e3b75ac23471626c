"""What commits have logged is carried over into the SQLite file, and no commit has to wait for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lehr.model.asset import Partition
from lehr.model.control import AuditEntry
from lehr.model.writes import Audit
from lehr.store.sqlite import SqliteStore, checkpoints
from lehr.store.sqlite.checkpoints import Checkpoints
from lehr.store.sqlite.connection import connect

INSERT = "INSERT INTO audit (partition, body, checksum) VALUES ('p', zeroblob(1000), '')"


def write(db: sqlite3.Connection, rows: int) -> None:
    db.execute("BEGIN")
    for _ in range(rows):
        db.execute(INSERT)
    db.execute("COMMIT")


def logged(path: Path) -> int:
    """Pages of the log after one more commit, which begins it anew if all of it was carried over."""
    with closing(connect(path)) as db:
        write(db, 1)
        _busy, pages, _carried = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(pages)


@pytest.mark.parametrize(("rows", "least", "most"), [(999, 200, 400), (1000, 1, 10)])
def test_after_enough_rows_the_log_is_carried_over(tmp_path: Path, rows: int, least: int, most: int) -> None:
    path = tmp_path / "state.sqlite"
    with closing(connect(path)) as writer:
        made = Checkpoints(path, writer)
        write(writer, rows)
        made.after_commit()
        made.close()
        assert least <= logged(path) <= most


def test_a_log_that_grows_too_long_is_carried_over_before_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_ROWS", 1)
    monkeypatch.setattr(checkpoints, "_MOST_PAGES", 3)
    path = tmp_path / "state.sqlite"
    with closing(connect(path)) as writer, closing(connect(path, read_only=True)) as reader:
        made = Checkpoints(path, writer)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM audit").fetchone()
        write(writer, 100)
        made.after_commit()
        made.close()  # one was made, as far as the reader let it
        reader.execute("COMMIT")
        made.before_commit()
        assert logged(path) < 10


def test_a_large_transaction_leaves_no_log_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "_MANY_ROWS", 900)
    path = tmp_path / "state.sqlite"
    with closing(connect(path)) as writer, closing(Checkpoints(path, writer)) as made:
        write(writer, 899)
        made.after_commit()
        assert path.with_name("state.sqlite-wal").stat().st_size > 800_000
        write(writer, 1)
        made.after_commit()
        assert path.with_name("state.sqlite-wal").stat().st_size == 0


def test_a_large_transaction_is_durable_though_a_reader_keeps_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_MANY_ROWS", 100)
    path = tmp_path / "state.sqlite"
    with (
        closing(connect(path)) as writer,
        closing(connect(path, read_only=True)) as reader,
        closing(Checkpoints(path, writer)) as made,
    ):
        writer.execute("PRAGMA busy_timeout = 10")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM audit").fetchone()
        write(writer, 100)
        made.after_commit()
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM audit").fetchone() == (100,)


def test_a_store_that_is_closed_has_carried_everything_over(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path, background=True)
    entry = AuditEntry(at=0.0, actor="somebody", command="test", arguments={}, result="done")
    store.commit([Audit(Partition("p"), entry)] * 1100)
    store.close()
    assert not path.with_name("state.sqlite-wal").exists()
    with closing(SqliteStore(path, read_only=True)) as again:
        assert len(again.records.audit(Partition("p"), 2000)) == 1100
