"""State files of other versions are refused with advice, and left alone."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from lehr.base.errors import StalledError
from lehr.store.sql import schema
from lehr.store.sqlite import SqliteStore
from tests.codes import raises


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("found", [schema.VERSION - 1, schema.VERSION + 1, 99])
def test_a_file_of_another_version_is_refused_and_left_alone(
    found: int, read_only: bool, tmp_path: Path
) -> None:
    path = tmp_path / "state.sqlite"
    SqliteStore(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {found}")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    with raises("STO147", StalledError) as caught:
        SqliteStore(path, read_only=read_only)
    assert f"version {found}" in caught.value.what
    assert f"version {schema.VERSION}" in caught.value.what
    assert path.read_bytes() == before
