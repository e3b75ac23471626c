"""A `lehr.store.sql.session.Session` of PostgreSQL, and the connections of readers."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import pq

from lehr.store.postgres.connections import Connection, Connector, alive
from lehr.store.postgres.errors import translated
from lehr.store.sql.feed import Noted
from lehr.store.sql.session import Row, Rows, Values

_ROWS_AT_ONCE = 2000
_NUMBERS_AT_ONCE = 16

_NAMED = re.compile(r"(?<!:):([a-z_]+)")


@functools.cache
def to_psycopg(statement: str) -> bytes:
    """A statement of `lehr.store.sql` with the driver's placeholders."""
    escaped = statement.replace("%", "%%").replace("?", "%s")
    return _NAMED.sub(r"%(\1)s", escaped).encode()


class PostgresSession:
    """Statements over one connection. The opener begins and ends transactions."""

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline | None = None) -> None:
        """With a `pipeline`, statements whose results are not read are not waited for."""
        self.connection = connection
        self.noted = Noted()
        self._pipeline = pipeline
        self._streams = 0
        self._numbers: dict[str, deque[int]] = {}

    def execute(self, statement: str, values: Values = (), /) -> Rows:
        cursor = self.connection.execute(to_psycopg(statement), values or None, binary=True)
        return cursor if self._pipeline is None else _Awaited(cursor, self._pipeline)

    def executemany(self, statement: str, values: Iterable[Values], /) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(to_psycopg(statement), values)

    def stream(self, statement: str, values: Values = (), /) -> Iterator[Row]:
        # A cursor lives in a transaction, and closes with it.
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
        """Read from one snapshot from now until the session ends."""
        self.connection.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def copy(self, table: str, columns: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Append many rows to a table."""
        query = f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)".encode()
        with self.connection.cursor() as cursor, cursor.copy(query) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def next_number(self, table: str) -> int:
        # Some at a time, since each batch is a round trip. A commit that numbers rows of a partition holds
        # its lock until they are committed, so they are committed in this order.
        numbers = self._numbers.setdefault(table, deque())
        if not numbers:
            numbers.extend(self.numbers(table, _NUMBERS_AT_ONCE))
        return numbers.popleft()

    def numbers(self, table: str, count: int) -> list[int]:
        """`count` new numbers, in order."""
        sequence = f"{table}_number_seq"
        rows = self.execute("SELECT nextval(?) FROM generate_series(1, ?)", (sequence, count))
        return [number for (number,) in rows]

    def now(self) -> str:
        return "extract(epoch FROM clock_timestamp())::float8"

    def number(self, column: str, field: str) -> str:
        return f"({self.text(column, field)})::double precision"

    def text(self, column: str, field: str) -> str:
        return f"(convert_from({column}, 'UTF8')::json #>> '{{{field.replace('.', ',')}}}')"

    def by(self, index: str) -> str:
        return ""  # the planner knows


class _Awaited:
    """Rows of a statement in a pipeline. The driver waits for rows, but not for their count."""

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
    """Connections for reading; each reader, in any thread, uses one exclusively, then returns it."""

    _MOST_IDLE = 4

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._idle: list[Connection] = []
        self._closed = False

    @contextlib.contextmanager
    def session(self) -> Iterator[PostgresSession]:
        """A session for reading (`lehr.store.sql.session.OpenSession`)."""
        connection = self._take()
        try:
            with translated(self._connector.address):
                yield PostgresSession(connection)
        finally:
            self._give_back(connection)

    @contextlib.contextmanager
    def moment(self) -> Iterator[PostgresSession]:
        """The same; all reads in it are from one snapshot."""
        with self.session() as session:
            session.begin_reading()
            yield session

    def close(self) -> None:
        """Close idle connections; the others are closed when returned."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        while True:
            try:
                connection = self._idle.pop()  # no check before: other threads take from it
            except IndexError:
                return self._connector.connect()
            if alive(connection):
                return connection
            connection.close()

    def _give_back(self, connection: Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            connection.rollback()
            if not self._closed and len(self._idle) < self._MOST_IDLE and not connection.broken:
                self._idle.append(connection)
                return
        connection.close()
