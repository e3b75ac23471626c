"""A `lehr.store.sql.session.Session` of PostgreSQL, and how connections are opened."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import select
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import pq

from lehr.base.errors import StalledError
from lehr.store.postgres.address import Address
from lehr.store.postgres.errors import away, said, translated
from lehr.store.sql.session import Row, Rows, Values

Connection = psycopg.Connection[Any]

_OLDEST_SERVER = 140_000
_ROWS_AT_ONCE = 2000

_SETTINGS = {
    # Whatever the server's default is, a commit that has returned survives a crash of the machine.
    "synchronous_commit": "on",
    # A process that was stopped in the middle of a commit does not hold its locks for ever.
    "idle_in_transaction_session_timeout": "60s",
    "client_connection_check_interval": "5s",
    "default_transaction_isolation": "read committed",
    "cursor_tuple_fraction": "1",  # who streams reads to the end
    "statement_timeout": "0",
    "jit": "off",  # takes longer than our statements
    "timezone": "UTC",
    "standard_conforming_strings": "on",
    "client_min_messages": "warning",
}
LOCK_SECONDS = 5.0

# What the driver warns of while it cleans up after an error, the error says already.
logging.getLogger("psycopg").setLevel(logging.ERROR)

_NAMED = re.compile(r"(?<!:):([a-z_]+)")


def connect(address: Address) -> Connection:
    """A connection in autocommit mode that finds the tables of `address`.

    Raises:
        TransientError: the server does not answer.
        StalledError: it refuses us, or is too old.
    """
    try:
        connection = psycopg.connect(address.conninfo, autocommit=True)
    except psycopg.Error as error:
        # libpq gives no code for this, and its text is in the server's language.
        if pq.PGconn.ping(address.conninfo.encode()) is not pq.Ping.OK:
            raise away(address, error) from error
        raise StalledError(
            f"the PostgreSQL server of {address.place} refuses the connection",
            why=said(error),
            fix="see that the database is there, and user and password are right (~/.pgpass, PGPASSWORD)",
        ) from error
    try:
        with translated(address):
            _configure(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _configure(connection: Connection, address: Address) -> None:
    if connection.info.server_version < _OLDEST_SERVER:
        raise StalledError(
            f"the PostgreSQL server of {address.place} is older than version 14", fix="upgrade it"
        )
    settings = {
        **_SETTINGS,
        "search_path": address.schema,
        "lock_timeout": f"{LOCK_SECONDS * 1000:.0f}ms",
    }
    calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
    connection.execute(f"SELECT {calls}".encode(), [text for pair in settings.items() for text in pair])


def alive(connection: Connection) -> bool:
    """Whether an idle connection can still be used, as far as is known without asking the server.

    A server that has ended says so, or closes the socket: both make it readable.
    """
    if connection.closed or connection.broken:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


@functools.cache
def spoken(statement: str) -> bytes:
    """A statement of `lehr.store.sql` with the driver's placeholders."""
    escaped = statement.replace("%", "%%").replace("?", "%s")
    return _NAMED.sub(r"%(\1)s", escaped).encode()


class PostgresSession:
    """Statements over one connection. Whoever opens it begins and ends transactions."""

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline | None = None) -> None:
        """With a `pipeline`, statements whose answers nobody asks for are not waited for."""
        self.connection = connection
        self._pipeline = pipeline
        self._streams = 0

    def execute(self, statement: str, values: Values = (), /) -> Rows:
        cursor = self.connection.execute(spoken(statement), values or None, binary=True)
        return cursor if self._pipeline is None else _Awaited(cursor, self._pipeline)

    def executemany(self, statement: str, values: Iterable[Values], /) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(spoken(statement), values)

    def stream(self, statement: str, values: Values = (), /) -> Iterator[Row]:
        # A cursor lives in a transaction. It needs no close: it ends with that.
        if self.connection.info.transaction_status == pq.TransactionStatus.IDLE:
            self.begin_reading()
        self._streams += 1
        name = f"stream_{self._streams}"
        self.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {statement}", values)
        fetch = f"FETCH FORWARD {_ROWS_AT_ONCE} FROM {name}".encode()
        while rows := self.connection.execute(fetch, binary=True, prepare=False).fetchall():
            yield from rows
            if len(rows) < _ROWS_AT_ONCE:
                return

    def begin_reading(self) -> None:
        """All that is read from now on, until the session ends, is of one moment."""
        self.connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def copy(self, table: str, columns: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Append many rows to a table."""
        query = f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)".encode()
        with self.connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def number(self, column: str, field: str) -> str:
        return f"({self.text(column, field)})::double precision"

    def text(self, column: str, field: str) -> str:
        return f"(convert_from({column}, 'UTF8')::json ->> '{field}')"

    def by(self, index: str) -> str:
        return ""  # the planner knows


class _Awaited:
    """Rows of a statement in a pipeline. The driver waits for rows, but not for their number."""

    def __init__(self, cursor: psycopg.Cursor[Any], pipeline: psycopg.Pipeline) -> None:
        self._cursor = cursor
        self._pipeline = pipeline

    @property
    def rowcount(self) -> int:
        self._pipeline.sync()
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class Readers:
    """Connections for reading; each reader has one for itself, and hands it on."""

    _MOST_IDLE = 4

    def __init__(self, address: Address) -> None:
        self._address = address
        self._idle: list[Connection] = []
        self._closed = False

    @contextlib.contextmanager
    def session(self) -> Iterator[PostgresSession]:
        """A session for reading (`lehr.store.sql.session.Reading`)."""
        connection = self._take()
        try:
            with translated(self._address):
                yield PostgresSession(connection)
        finally:
            self._give_back(connection)

    @contextlib.contextmanager
    def moment(self) -> Iterator[PostgresSession]:
        """The same; all that is read in it is of one moment."""
        with self.session() as session:
            session.begin_reading()
            yield session

    def close(self) -> None:
        """Close those that nobody uses; the others are closed when they are given back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if alive(connection):
                return connection
            connection.close()
        return connect(self._address)

    def _give_back(self, connection: Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            connection.rollback()
            if not self._closed and len(self._idle) < self._MOST_IDLE and not connection.broken:
                self._idle.append(connection)
                return
        connection.close()
