"""Bringing a state file of an older version up to date: forward only, whole or not at all.

In: a file of an older version, opened for writing by whoever holds the state folder's lock. Out: the
same file at `schema.VERSION`, and beside it a copy as it was, for whoever has to go back to the Lehr
that wrote it.

Architecture invariant: a step is never changed once it was released. What a newer version needs is
a step of its own.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from lehr.base.errors import TransientError
from lehr.store.sqlite import schema

STEPS: Mapping[int, str] = {}
"""What leads from a version to the next: statements, by the version that they start from."""


def can_be_migrated(version: int) -> bool:
    """Whether a file of a version can be brought up to date."""
    return version < schema.VERSION and version in STEPS


def copy_of(path: Path, version: int) -> Path:
    """Where a state file is kept as it was at an older version."""
    return path.with_name(f"{path.name}.version-{version}")


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the state file at `path` up to date, if it is not, and leave a copy of it as it was.

    Raises:
        TransientError: there is no room for the copy; the file is as it was.
    """
    if version_of(connection) == schema.VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster.
        found = version_of(connection)
        if can_be_migrated(found):
            _copy(path, copy_of(path, found))
            for version in range(found, schema.VERSION):
                for statement in STEPS[version].split(";\n"):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {schema.VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a state file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _copy(path: Path, target: Path) -> None:
    """Copy what is committed. The caller keeps others from writing meanwhile."""
    half = target.with_name(f"{target.name}.half")
    half.unlink(missing_ok=True)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with (
            contextlib.closing(sqlite3.connect(uri, uri=True)) as source,
            contextlib.closing(sqlite3.connect(half)) as copy,
        ):
            source.backup(copy)
        half.chmod(path.stat().st_mode & 0o777)
        _make_durable(half)
        half.replace(target)
        _make_durable(target.parent)
    except OSError as error:
        raise TransientError(
            f"state file {path} cannot be copied before it is brought up to date",
            code="STO154",
            why=error.strerror or str(error),
            fix="make room beside it, and see that this user may write there",
        ) from error
    finally:
        half.unlink(missing_ok=True)


def _make_durable(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
