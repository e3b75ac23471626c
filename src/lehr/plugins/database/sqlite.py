"""SQLite, through the standard library. All functions block.

The version is the file's `user_version`. SQLite cannot change an existing column: such a difference stalls.
Names are compared as SQLite does, ignoring case.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.plugins.database.catalogue import SERIAL, Catalogue, ColumnState, IndexState, TableState
from lehr.plugins.database.connection import SqliteAddress
from lehr.plugins.database.payload import DatabaseSchema, Table
from lehr.plugins.database.plan import DropDefault, Edit, SetDefault, SetNullable, SetType
from lehr.plugins.database.session import QueryResult
from lehr.plugins.database.statements import quoted, statements

T = TypeVar("T")

_BUSY_SECONDS = 2.0
_STEPS_PER_TURN, _MOST_TURNS = 1_000_000, 200  # of SQLite's virtual machine: some seconds
_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_ALIASES = {
    "bigserial": "integer",
    "bool": "boolean",
    "character varying": "varchar",
    "decimal": "numeric",
    "float8": "double precision",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "serial": "integer",
    "smallserial": "integer",
}
_SPELT = {"true": "1", "false": "0", "now()": "current_timestamp", "null": None}
_PASSES = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_INTERRUPT,
)


class SqliteSession:
    """A `Session` of SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def tables(self) -> list[str]:
        query = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        return [name for (name,) in self._rows(query) if not name.lower().startswith("sqlite_")]

    def intended(self, schema: DatabaseSchema) -> Catalogue:
        wanted = {name: table for name, table in schema.tables.items() if not table.absent}
        unwanted = tuple(name for name, table in schema.tables.items() if table.absent)
        tables = {name: _intended(name, table) for name, table in wanted.items()}
        return Catalogue(None, schema.version, tables, unwanted)

    def observed(self, schema: DatabaseSchema) -> Catalogue:
        spelling = _spelling(schema.tables)
        tables = {}
        for name, kind in self._rows("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')"):
            known = spelling.get(name.lower())
            if known is not None and kind != "table":
                raise StalledError(
                    f"{name} is a view", code="DBS123", fix="drop it by hand, or remove the name from intent"
                )
            if known is not None:
                tables[known] = self._table(known, schema.tables[known])
        return Catalogue(None, self._rows("PRAGMA user_version")[0][0], tables)

    def together(self, schemas: Sequence[DatabaseSchema]) -> list[tuple[Catalogue, Catalogue] | None]:
        return [(self.intended(schema), self.observed(schema)) for schema in schemas]

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        with _translated():
            self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def execute(self, edit: Edit) -> None:
        if isinstance(edit, SetType | SetNullable | SetDefault | DropDefault):
            raise StalledError(
                f"SQLite cannot change column {edit.column} of table {edit.table} in place",
                code="DBS124",
                fix="declare the existing column, or create another table, copy the rows, and drop this one",
            )
        with _translated():
            for statement in statements(edit, None):
                self._connection.execute(statement)

    def interrupt(self) -> None:
        with contextlib.suppress(sqlite3.ProgrammingError):  # it has just been closed
            self._connection.interrupt()

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()

    def _table(self, name: str, declared: Table) -> TableState:
        spelling = _spelling(declared.columns)
        columns: dict[str, ColumnState] = {}
        key: dict[int, str] = {}
        for _, raw, type, required, default, place, _ in self._rows(f"PRAGMA table_xinfo({quoted(name)})"):
            column = spelling.get(raw.lower(), raw)
            columns[column] = ColumnState(_type(type), not (required or place), _default(default))
            if place:
                key[place] = column
        primary_key = tuple(key[place] for place in sorted(key))
        state = TableState(_numbered(columns, primary_key), primary_key)
        return TableState(state.columns, primary_key, self._indexes(name, declared, spelling))

    def _indexes(self, table: str, declared: Table, columns: dict[str, str]) -> dict[str, IndexState]:
        spelling = _spelling(declared.indexes)
        found = {}
        for _, name, unique, origin, partial in self._rows(f"PRAGMA index_list({quoted(table)})"):
            if origin == "pk":
                continue
            keys = [row for row in self._rows(f"PRAGMA index_xinfo({quoted(name)})") if row[5]]
            special = bool(partial) or any(
                column is None or descending for _, _, column, descending, *_ in keys
            )
            names = tuple(columns.get(row[2].lower(), row[2]) for row in keys if row[2] is not None)
            found[spelling.get(name.lower(), name)] = IndexState(
                names, bool(unique), special=special, constraint=origin == "u"
            )
        return found


@contextlib.contextmanager
def session(address: SqliteAddress, base: Path) -> Iterator[SqliteSession | None]:
    """A session of the file; None if it does not exist.

    Raises:
        TransientError, StalledError: it cannot be opened, or is not a database.
    """
    path = base / address.path
    if not path.exists():
        yield None
        return
    with _translated(), contextlib.closing(_connect(path, "rw")) as connection:
        yield SqliteSession(connection)


def create_database(address: SqliteAddress, base: Path) -> None:
    """Create the file, unless it exists."""
    path = base / address.path
    if not path.parent.is_dir():
        raise StalledError(f"directory {path.parent} does not exist", code="DBS125", fix="make it")
    with _translated(), contextlib.closing(_connect(path, "rwc")) as connection:
        connection.execute("PRAGMA user_version = 0")  # the file is not created until something is written


def read(address: SqliteAddress, query: str, base: Path, take: Callable[[QueryResult], T]) -> T:
    """The result of `take` on the answer to `query`, which may only read."""
    path = base / address.path
    if not path.exists():
        raise TransientError(f"database {address.place} does not exist", code="DBS114")
    with _translated(), contextlib.closing(_connect(path, "ro")) as connection:
        connection.set_authorizer(lambda action, *_: 0 if action in _READS else 1)
        turns = iter(range(_MOST_TURNS))
        connection.set_progress_handler(lambda: next(turns, None) is None, _STEPS_PER_TURN)
        cursor = connection.execute(query)
        return take(QueryResult(tuple(column[0] for column in cursor.description or ()), cursor))


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    location = f"file:{quote(str(path))}?mode={mode}"
    return sqlite3.connect(location, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)


def _intended(name: str, table: Table) -> TableState:
    columns = {}
    for key, column in table.columns.items():
        if column.serial and table.primary_key != [key]:
            raise StalledError(
                f"column {key} of table {name} is {column.type}, and not the primary key",
                code="DBS126",
                why="SQLite only numbers rows by their primary key",
                fix="make it the primary key, or an integer",
            )
        expression = (column.expression or "").lower()
        if expression == "gen_random_uuid()":
            raise StalledError(
                f"SQLite does not support {expression}",
                code="DBS127",
                fix=f"omit the default of {name}.{key}",
            )
        columns[key] = ColumnState(
            _type(column.type),
            column.nullable and key not in table.primary_key,
            _default(column.expression),
        )
    indexes = {key: IndexState(tuple(index.columns), index.unique) for key, index in table.indexes.items()}
    primary_key = tuple(table.primary_key)
    return TableState(_numbered(columns, primary_key), primary_key, indexes)


def _numbered(columns: dict[str, ColumnState], primary_key: tuple[str, ...]) -> dict[str, ColumnState]:
    """The columns; SQLite provides the values of an integer primary key."""
    if len(primary_key) != 1 or columns[primary_key[0]].type != "integer":
        return columns
    return columns | {primary_key[0]: ColumnState("integer", False, SERIAL)}


def _type(text: str) -> str:
    """A type in one spelling: SQLite keeps types as they were written."""
    name, bracket, rest = " ".join(text.lower().split()).partition("(")
    name = name.strip()
    return _ALIASES.get(name, name) + re.sub(r"\s*([(),])\s*", r"\1", bracket + rest)


def _default(text: str | None) -> str | None:
    if text is None or text.startswith("'"):
        return text
    return _SPELT.get(text.lower(), text.lower())


def _spelling(names: Iterable[str]) -> dict[str, str]:
    return {name.lower(): name for name in names}


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _error(error) from error


def _error(error: sqlite3.Error) -> LehrError:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _PASSES:
        return TransientError("SQLite cannot do this now", code="DBS128", why=str(error))
    fix = "name an SQLite database" if code == sqlite3.SQLITE_NOTADB else ""
    return StalledError("SQLite refused the statement", code="DBS129", why=str(error), fix=fix)
