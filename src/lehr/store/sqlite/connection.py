"""Opens the file, and translates errors."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.damage import DamagedError
from lehr.store.sql.feed import Noted
from lehr.store.sql.schema import TABLES, VERSION

BUSY_SECONDS = 5.0

_APPLICATION = 0x4C656872  # "Lehr": another program's database is never taken for a state file
_PAGE_CACHE_KIB = 16_384
_LOG_BYTES = 64 * 1024 * 1024  # size that a log which grew beyond it is cut to when it restarts
_SWITCHES = 5  # tries to switch a file to a log, while others do; the first to succeed ends it for all
_INDEXES = """
CREATE UNIQUE INDEX asset_version_key ON asset_version (partition, id, sequence);
CREATE INDEX asset_current_type ON asset_current (partition, type, id);
CREATE INDEX asset_current_bucket ON asset_current (partition, bucket, id, digest);
"""
_BEGIN = "run `lehr run` once, or name the state folder with --state"


class Connection(sqlite3.Connection):
    """A `lehr.store.sql.session.Session` of SQLite."""

    noted: Noted

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._numbers: dict[str, int] = {}

    def begin(self) -> None:
        """Begin a commit: nothing else is written until it ends."""
        self.execute("BEGIN IMMEDIATE")
        self._numbers.clear()

    def stream(self, statement: str, values: Any = (), /) -> Iterator[Any]:
        return self.execute(statement, values)

    def next_number(self, table: str, count: int = 1) -> int:
        """The first of `count` numbers for new rows. Looked up once per commit, since that takes 5 us."""
        number = self._numbers.get(table)
        if number is None:
            query = f"SELECT coalesce(max(number), 0) + 1 FROM {table}"  # noqa: S608 - our own names
            number = int(self.execute(query).fetchone()[0])
        self._numbers[table] = number + count
        return number

    def number(self, column: str, field: str) -> str:
        return f"json_extract(CAST({column} AS TEXT), '$.{field}')"

    text = number

    def now(self) -> str:
        return ":at"

    def by(self, index: str) -> str:
        return f" INDEXED BY {index}"


def connect(path: Path, *, read_only: bool = False, alone: bool = False) -> Connection:
    """Open the state file, creating it if it is missing (unless `read_only`).

    Durability: WAL with `synchronous=FULL`, so a commit that returned survives a crash of the
    machine.

    Args:
        alone: no other process opens the file, so that locks cost no system calls.

    Raises:
        TransientError: it is locked or the disk is full.
        StalledError: it is missing, not a state file, corrupt, or of another version.
    """
    if read_only and not path.exists():
        raise StalledError(f"there is no state file {path}", code="STO142", fix=_BEGIN)
    if path.is_dir():
        raise StalledError(
            f"state file {path} is a directory",
            code="STO143",
            why="Lehr needs to create a file there",
            fix="move it away, or name another state folder with --state",
        )
    if not read_only:
        _make_private(path)
    with Translated(path):
        uri = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        if alone:
            uri += "&vfs=unix-excl"
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
        try:
            connection.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KIB}")
            if not _empty(connection):
                _check_kind(connection, path)
            elif read_only:
                raise StalledError(
                    f"state file {path} is empty", code="STO144", why="nothing was written yet", fix=_BEGIN
                )
            if not read_only:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts for a new file only
                use_log(connection)
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
                _create(connection)
            _check_kind(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def use_log(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log, also while other processes do.

    SQLite waits for a lock only before its first read, and this reads first: at another's lock it
    fails at once, whatever the timeout.

    Raises:
        sqlite3.OperationalError: it is locked for longer than the connection's timeout.
    """
    for tries_left in reversed(range(_SWITCHES)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not tries_left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN IMMEDIATE")  # waits for the other to end
            connection.execute("ROLLBACK")
        else:
            return


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _empty(connection):
            for statement in (TABLES + _INDEXES).split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has already rolled back if the disk is full
            connection.execute("ROLLBACK")
        raise


def _empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _make_private(path: Path) -> None:
    """Create the file for its owner only; SQLite gives its journal the same mode."""
    with contextlib.suppress(OSError):  # SQLite's own error explains what is wrong
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    if _number(connection, "application_id") != _APPLICATION:
        raise StalledError(
            f"{path} is not a state file of Lehr",
            code="STO145",
            why="it is a database of another program",
            fix="name another state folder with --state, or move that file away",
        )
    found = _number(connection, "user_version")
    if found != VERSION:
        raise StalledError(
            f"state file {path} has version {found}, and this Lehr reads version {VERSION}",
            code="STO147",
            fix="run the version of Lehr that wrote it, or move the state folder away to start over",
        )


class Translated:
    """Translates exceptions of SQLite, and of decoding stored values, into ours.

    A class, because a generator would cost each read a tenth of its time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self.translate(error)

    def translate(self, error: BaseException) -> None:
        """Raise ours instead of `error`, if it is one of those."""
        if isinstance(error, sqlite3.Error):
            raise _translate(error, self._path) from error
        if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
            raise _corrupt(error, self._path) from error
        if isinstance(error, DamagedError):
            raise error.at(str(self._path)) from error


def is_no_text(error: sqlite3.Error) -> bool:
    """Whether a row with a text that is not UTF-8 was read: the module's own error, without a code."""
    return isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")


def _translate(error: sqlite3.Error, path: Path) -> LehrError:
    if is_no_text(error):
        # Not the module's message: it quotes the unreadable text, which may be a secret.
        return DamagedError(
            "a row", "", place=str(path), why="it has text that is not UTF-8; see `lehr store check`"
        )
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return TransientError(
            f"state file {path} is locked",
            code="STO148",
            why="another program holds it",
            fix="stop the other program; nothing was written",
        )
    if code == sqlite3.SQLITE_FULL:
        return TransientError(
            f"no room to write state file {path}",
            code="STO149",
            why="the disk is full",
            fix="free some space; nothing was lost, and Lehr continues automatically",
        )
    if code == sqlite3.SQLITE_CONSTRAINT:
        # A retry would fail forever, and hold up every write behind it.
        return StalledError(
            f"state file {path} refused a write that breaks its rules",
            code="STO150",
            why=str(error),
            fix="this is a bug in Lehr: report it; nothing was written, and `lehr run` can be started again",
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _corrupt(error, path)
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StalledError(
            f"state file {path} cannot be opened",
            code="STO151",
            why=str(error),
            fix="check that its folder exists, and that this user may write there",
        )
    return TransientError(
        f"state file {path} failed",
        code="STO152",
        why=str(error),
        fix="check its disk; nothing was lost, and Lehr retries automatically",
    )


def _corrupt(error: Exception, path: Path) -> StalledError:
    return StalledError(
        f"state file {path} cannot be read",
        code="STO153",
        why=str(error),
        fix="restore it from a backup, or move it away: Lehr then starts over from git and "
        "production, without its history",
    )
