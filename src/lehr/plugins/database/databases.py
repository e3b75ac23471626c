"""Opens and creates databases of any kind. Blocks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from lehr.base.errors import StalledError, raised_as
from lehr.plugins.database import sqlite
from lehr.plugins.database.connection import SqliteAddress, parse
from lehr.plugins.database.payload import DatabaseSchema
from lehr.plugins.database.session import QueryResult, Session
from lehr.sdk.secrets import SecretValue
from lehr.sdk.source import Rows

T = TypeVar("T")

_MOST_VALUES = 1_000_000
_MOST_ROWS = 100_000


class Databases:
    """The databases that this machine reaches.

    Args:
        base: the directory that relative paths start from.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._sessions: set[Session] = set()

    @contextlib.contextmanager
    def open(self, schema: DatabaseSchema, password: SecretValue | None = None) -> Iterator[Session | None]:
        """A session of the database of `schema`; None if it does not exist and should be created.

        Raises:
            StalledError, TransientError: it cannot be opened, or does not exist and should not be created.
        """
        with self._opened(schema, password) as session:
            if session is None:
                if not schema.create_database:
                    raise _no_database(schema)
                yield None
                return
            self._sessions.add(session)
            try:
                yield session
            finally:
                self._sessions.discard(session)

    def create(self, schema: DatabaseSchema, password: SecretValue | None = None) -> None:
        """Create the database of `schema`, unless it exists.

        Raises:
            StalledError, TransientError: it cannot be created.
        """
        address = schema.address
        if isinstance(address, SqliteAddress):
            sqlite.create_database(address, self._base)
            return
        with _driver():
            from lehr.plugins.database import postgres  # noqa: PLC0415
        postgres.create_database(address, self._base, password)

    def interrupt(self) -> None:
        """Make all running calls fail, from another thread."""
        for session in tuple(self._sessions):
            session.interrupt()

    def _opened(
        self, schema: DatabaseSchema, password: SecretValue | None
    ) -> AbstractContextManager[Session | None]:
        address = schema.address
        if isinstance(address, SqliteAddress):
            return sqlite.session(address, self._base)
        with _driver():
            from lehr.plugins.database import postgres  # noqa: PLC0415
        return postgres.session(address, schema.schema, self._base, password)


def column(connection: str, query: str, base: Path) -> frozenset[str]:
    """The first column of the result of `query`, which may only read; as text, without NULL.

    Args:
        base: the directory that relative paths start from.

    Raises:
        TransientError: the database does not exist, or takes too long.
        StalledError: it refuses, or the result is too large.
    """
    return _read(connection, query, base, _first_column)


def rows(connection: str, query: str, base: Path) -> Rows:
    """The whole result of `query`, which may only read. Arguments and errors as for `column`."""
    return _read(connection, query, base, lambda answer: Rows(answer.columns, answer.first(_MOST_ROWS)))


def _first_column(answer: QueryResult) -> frozenset[str]:
    return frozenset(str(row[0]) for row in answer.first(_MOST_VALUES) if row[0] is not None)


def _read(connection: str, query: str, base: Path, take: Callable[[QueryResult], T]) -> T:
    with raised_as(StalledError, "it does not name a database", code="DBS101", on=ValueError):
        address = parse(connection)
    if isinstance(address, SqliteAddress):
        return sqlite.read(address, query, base, take)
    with _driver():
        from lehr.plugins.database import postgres  # noqa: PLC0415
    return postgres.read(address, query, base, take)


def _driver() -> AbstractContextManager[None]:
    """The driver is imported when an asset needs it: it may be missing, and is slow to load."""
    what, fix = "the PostgreSQL driver is not installed", "pip install 'lehr[postgres]'"
    return raised_as(StalledError, what, code="DBS102", fix=fix, on=ImportError)


def _no_database(schema: DatabaseSchema) -> StalledError:
    return StalledError(
        f"database {schema.address.place} does not exist",
        code="DBS103",
        fix="correct `connection`, create the database, or set `create_database: true`",
    )
