"""PostgreSQL, 14 or newer, through psycopg. All functions block.

Types and defaults are compared as the server itself prints them, so that `int` and `integer`, or `'1.50'` and
`1.5` in a numeric column, do not differ. The version is a row of a table in the schema.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import pq

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.database import payload
from lehr.plugins.database.catalogue import SERIAL, Catalogue, ColumnState, IndexState, TableState
from lehr.plugins.database.connection import PostgresAddress
from lehr.plugins.database.payload import VERSION_TABLE, DatabaseSchema
from lehr.plugins.database.plan import CreateIndex, Edit
from lehr.plugins.database.postgres_errors import refused, translated
from lehr.plugins.database.session import QueryResult
from lehr.plugins.database.statements import literal, quoted, statements
from lehr.sdk.secrets import SecretValue

T = TypeVar("T")

_OLDEST_SERVER = 140_000
_CONNECT_SECONDS = 5
_LONGEST_SOCKET = 107
_MOST_LITERALS = 500  # of one query; PostgreSQL allows 1664 columns

_SETTINGS = {
    "lock_timeout": "2s",  # a session that waits for a lock on a table makes all others queue behind it
    "statement_timeout": "5min",
    "idle_in_transaction_session_timeout": "1min",
    "client_connection_check_interval": "1s",  # ends statements of a client that was killed
    "standard_conforming_strings": "on",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
}
_BUILD_SETTINGS = {"lock_timeout": "50min", "statement_timeout": "50min"}

_SERIAL_TYPES = {"smallserial": "smallint", "serial": "integer", "bigserial": "bigint"}
_CONSTANT = re.compile(
    r"\(?(?P<literal>NULL|true|false|-?\d+(\.\d+)?([eE][+-]?\d+)?|'([^']|'')*')\)?(::[\w .\"\[\](),]+)*"
)
_NOW = ("now()", "current_timestamp")

_COLUMNS = """
SELECT n.nspname, c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
       pg_get_expr(d.adbin, d.adrelid),
       a.attidentity <> '' OR pg_get_serial_sequence(
           quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname) IS NOT NULL
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE (n.nspname, c.relname) IN (SELECT * FROM unnest(%s::name[], %s::name[]))
      AND c.relkind NOT IN ('i', 'I', 'S', 't')
ORDER BY n.nspname, c.relname, a.attnum
"""

_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname <> %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""

_INDEXES = """
SELECT n.nspname, t.relname, i.relname, x.indisprimary, x.indisunique, x.indisvalid,
       m.amname <> 'btree' OR x.indexprs IS NOT NULL OR x.indpred IS NOT NULL
           OR x.indnatts <> x.indnkeyatts OR EXISTS (SELECT FROM unnest(x.indoption) o WHERE o <> 0),
       EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x')),
       ARRAY (SELECT a.attname::text FROM unnest(x.indkey) WITH ORDINALITY AS k (number, place)
              JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number
              WHERE k.place <= x.indnkeyatts ORDER BY k.place)
FROM pg_index x
JOIN pg_class t ON t.oid = x.indrelid
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_am m ON m.oid = i.relam
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE (n.nspname, t.relname) IN (SELECT * FROM unnest(%s::name[], %s::name[]))
ORDER BY n.nspname, t.relname, i.relname
"""


class PostgresSession:
    """A `Session` of PostgreSQL."""

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._alone = False

    def tables(self) -> list[str]:
        return [name for (name,) in self._rows(_TABLES, self._schema, VERSION_TABLE)]

    def intended(self, schema: DatabaseSchema) -> Catalogue:
        return self._intended([schema])[0]

    def observed(self, schema: DatabaseSchema) -> Catalogue:
        return self._observed([schema])[0]

    def together(self, schemas: Sequence[DatabaseSchema]) -> list[tuple[Catalogue, Catalogue] | None]:
        # One search path for all. With this one the server qualifies all names but its own, so it prints
        # whatever has no dot in the same way with the search path of the schema.
        _configure(self._connection, {"search_path": ""})
        query = "SELECT name FROM unnest(%s::text[]) AS t (name) WHERE to_regtype(name) IS NOT NULL"
        known = {name for (name,) in self._rows(query, sorted(set().union(*map(_types_of, schemas))))}
        plain = [_types_of(schema) <= known for schema in schemas]
        chosen = list(itertools.compress(schemas, plain))
        pairs = zip(self._intended(chosen), self._observed(chosen), strict=True)
        answers = (None if any(map(_qualified, pair)) else pair for pair in pairs)
        return [next(answers) if read else None for read in plain]

    def _intended(self, schemas: Sequence[DatabaseSchema]) -> list[Catalogue]:
        columns = [
            column
            for schema in schemas
            for table in schema.tables.values()
            for column in table.columns.values()
        ]
        types = self._types({column.type for column in columns})
        constants = self._constants(
            {
                (column.expression, types[column.type])
                for column in columns
                if column.expression is not None and payload.is_literal(column.expression)
            }
        )
        return [_intended(schema, types, constants) for schema in schemas]

    def _observed(self, schemas: Sequence[DatabaseSchema]) -> list[Catalogue]:
        existing = self._rows(
            "SELECT nspname FROM pg_namespace WHERE nspname = ANY (%s)", [schema.schema for schema in schemas]
        )
        places = [schema.schema for schema in schemas for _ in schema.tables]
        tables = self._tables(places, [name for schema in schemas for name in schema.tables])
        versions = self._versions([name for (name,) in existing])
        return [
            Catalogue(
                schema.schema,
                versions[schema.schema],
                {
                    name: tables[schema.schema, name]
                    for name in sorted(schema.tables)
                    if (schema.schema, name) in tables
                },
            )
            if schema.schema in versions
            else Catalogue(None, 0)
            for schema in schemas
        ]

    def _tables(self, places: list[str], names: list[str]) -> dict[tuple[str, str], TableState]:
        """The tables of these names, each in the schema at the same index."""
        columns = self._columns(places, names)
        keys: dict[tuple[str, str], tuple[str, ...]] = {}
        indexes: dict[tuple[str, str], dict[str, IndexState]] = {table: {} for table in columns}
        for place, table, name, primary, unique, valid, special, constraint, parts in self._rows(
            _INDEXES, places, names
        ):
            if primary:
                keys[place, table] = tuple(parts)
            else:
                indexes[place, table][name] = IndexState(tuple(parts), unique, valid, special, constraint)
        return {
            table: TableState(states, keys.get(table, ()), indexes[table])
            for table, states in columns.items()
        }

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        with translated(self._connection):
            if write and not self._alone:
                self._lock()
            self._connection.read_only = not write
            self._connection.isolation_level = (
                psycopg.IsolationLevel.READ_COMMITTED if write else psycopg.IsolationLevel.REPEATABLE_READ
            )
            with self._connection.transaction():
                yield

    def execute(self, edit: Edit) -> None:
        with translated(self._connection, about_rows=True):
            if isinstance(edit, CreateIndex) and edit.concurrently:
                _configure(self._connection, _BUILD_SETTINGS)
            for statement in statements(edit, self._schema):
                self._connection.execute(statement)

    def interrupt(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self._connection.cancel()

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with translated(self._connection):
            return self._connection.execute(query, values).fetchall()

    def _lock(self) -> None:
        """Held until the connection ends, even by a push whose process was killed."""
        query = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        if not self._rows(query, f"lehr {self._schema}")[0][0]:
            raise TransientError(
                f"another push of the schema {self._schema} is under way",
                code="DBS110",
                fix="this push continues when the other has ended; see pg_stat_activity",
            )
        self._alone = True

    def unlock(self) -> None:
        """Let the next push in at once: the server may be slow to end a session."""
        if self._alone:
            with contextlib.suppress(psycopg.Error):
                self._connection.execute("SELECT pg_advisory_unlock_all()")

    def _types(self, names: Collection[str]) -> dict[str, str]:
        """Each type as the server prints it."""
        asked = sorted({_SERIAL_TYPES.get(name.lower(), name) for name in names})
        if not asked:
            return {}
        # The payload's grammar lets only a type through.
        query = "SELECT " + ", ".join(f"NULL::{name}" for name in asked)
        with translated(self._connection):
            result = self._connection.execute(query).pgresult
        assert result is not None
        numbers = [(result.ftype(place), result.fmod(place)) for place in range(len(asked))]
        printed = self._rows(
            "SELECT format_type(number, modifier) FROM unnest(%s::oid[], %s::int[]) "
            "WITH ORDINALITY AS t (number, modifier, place) ORDER BY place",
            [number for number, _ in numbers],
            [modifier for _, modifier in numbers],
        )
        known = {name: text for name, (text,) in zip(asked, printed, strict=True)}
        return {name: known[_SERIAL_TYPES.get(name.lower(), name)] for name in names}

    def _constants(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str | None]:
        """Literals with their types, in one spelling for each value."""
        asked = sorted(set(pairs))
        found: dict[tuple[str, str], str | None] = {}
        for start in range(0, len(asked), _MOST_LITERALS):
            part = asked[start : start + _MOST_LITERALS]
            # Only literals reach this point: the server parses them, and runs nothing.
            values = self._rows("SELECT " + ", ".join(f"({text}::{type})::text" for text, type in part))[0]
            found |= {
                pair: None if value is None else literal(value)
                for pair, value in zip(part, values, strict=True)
            }
        return found

    def _columns(self, places: list[str], names: list[str]) -> dict[tuple[str, str], dict[str, ColumnState]]:
        rows = self._rows(_COLUMNS, places, names)
        constants = self._constants(
            (match["literal"], type)
            for *_, type, _, default, _ in rows
            if default is not None and (match := _CONSTANT.fullmatch(default))
        )
        found: dict[tuple[str, str], dict[str, ColumnState]] = {}
        for schema, table, kind, name, type, nullable, expression, serial in rows:
            if kind not in ("r", "p"):
                raise StalledError(
                    f"{schema}.{table} is a view or a foreign table",
                    code="DBS111",
                    fix="drop it by hand, or remove the name from intent",
                )
            columns = found.setdefault((schema, table), {})
            if name is None:
                continue  # a table without columns
            default = SERIAL if serial else _spelt(expression)
            if not serial and expression is not None and (match := _CONSTANT.fullmatch(expression)):
                default = constants[match["literal"], type]
            columns[name] = ColumnState(type, nullable, default)
        return found

    def _versions(self, schemas: list[str]) -> dict[str, int]:
        """The version of each of these schemas."""
        query = (
            "SELECT place FROM unnest(%s::text[]) AS t (place) "
            "WHERE to_regclass(format('%%I.%%I', place, %s::text)) IS NOT NULL"
        )
        kept = [name for (name,) in self._rows(query, schemas, VERSION_TABLE)]
        queries = (
            f"SELECT {literal(name)}, version FROM {quoted(name)}.{quoted(VERSION_TABLE)}"  # noqa: S608 - quoted
            for name in kept
        )
        rows = self._rows(" UNION ALL ".join(queries)) if kept else []
        return dict.fromkeys(schemas, 0) | {name: int(version) for name, version in reversed(rows)}


@contextlib.contextmanager
def session(
    address: PostgresAddress, schema: str, base: Path, password: SecretValue | None = None
) -> Iterator[PostgresSession | None]:
    """A session for `schema`; None if the server does not have the database.

    Raises:
        TransientError: the server is down, or starting up.
        StalledError: it rejects the connection.
    """
    connection = _connect(_parameters(address, base, password))
    if connection is None:
        yield None
        return
    with contextlib.closing(connection):
        with translated(connection):
            if connection.info.server_version < _OLDEST_SERVER:
                raise StalledError(
                    "the PostgreSQL server is older than version 14", code="DBS112", fix="upgrade it"
                )
            path = f"{quoted(schema)}, public"
            _configure(connection, {**_SETTINGS, "search_path": path})
        opened = PostgresSession(connection, schema)
        try:
            yield opened
        finally:
            opened.unlock()


def create_database(address: PostgresAddress, base: Path, password: SecretValue | None = None) -> None:
    """Create the database, unless another client has."""
    parameters = _parameters(address, base, password) | {"dbname": "postgres"}
    connection = _connect(parameters)
    if connection is None:
        raise StalledError(
            "the server has no database postgres to connect to",
            code="DBS113",
            fix="create the database by hand",
        )
    with (
        contextlib.closing(connection),
        translated(connection),
        contextlib.suppress(psycopg.errors.DuplicateDatabase),
    ):
        connection.execute(f"CREATE DATABASE {quoted(address.database)}")


def read(address: PostgresAddress, query: str, base: Path, take: Callable[[QueryResult], T]) -> T:
    """The result of `take` on the answer to `query`, which may only read."""
    connection = _connect(_parameters(address, base))
    if connection is None:
        raise TransientError(f"database {address.place} does not exist", code="DBS114")
    with contextlib.closing(connection), translated(connection, about_rows=True):
        _configure(
            connection, _SETTINGS | {"default_transaction_read_only": "on", "statement_timeout": "10s"}
        )
        # Binary results require a single statement: a second could remove the guard.
        cursor = connection.cursor(binary=True)
        rows = cursor.stream(query.encode())  # row by row: the answer may not fit in memory
        first = next(rows, None)
        columns = tuple(column.name for column in cursor.description or ())
        return take(QueryResult(columns, rows if first is None else itertools.chain([first], rows)))


def _parameters(address: PostgresAddress, base: Path, password: SecretValue | None = None) -> dict[str, Any]:
    """Connection parameters for libpq."""
    known: dict[str, Any] = dict(address.parameters)
    for name in address.paths:
        known[name] = str(base / known[name])
    host = str(base / address.host) if "/" in address.host else address.host
    if host.startswith("/") and len(f"{host}/.s.PGSQL.{address.port or 5432}".encode()) > _LONGEST_SOCKET:
        raise StalledError(
            f"the socket in {host} cannot be reached",
            code="DBS115",
            why=f"its path is longer than {_LONGEST_SOCKET} bytes",
            fix="have the server put its socket in a directory with a shorter path",
        )
    known |= {"host": host, "port": address.port, "user": address.user, "dbname": address.database}
    if password is not None:
        known["password"] = password.text()
    return {name: value for name, value in known.items() if value} | {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "lehr",
    }


def _connect(parameters: dict[str, Any]) -> psycopg.Connection[Any] | None:
    """A connection; None if the database does not exist.

    libpq reports a failure only in the server's language, so we ask the server in another way.
    """
    error: psycopg.Error
    for _ in range(2):  # it may have become ready between the attempt and this check
        try:
            return psycopg.connect(autocommit=True, **parameters)
        except psycopg.Error as failure:
            error = failure
        info = psycopg.conninfo.make_conninfo(**parameters)
        answer = pq.PGconn.ping(info.encode())
        if answer in (pq.Ping.REJECT, pq.Ping.NO_RESPONSE):
            what = "is starting up or shutting down" if answer is pq.Ping.REJECT else "does not answer"
            raise TransientError(f"the PostgreSQL server {what}", code="DBS116", why=_line(error)) from error
    if _missing(parameters):
        return None
    raise refused(_line(error)) from error


def _missing(parameters: dict[str, Any]) -> bool:
    """True if the server certainly does not have the database."""
    if parameters["dbname"] == "postgres":
        return False
    try:
        with contextlib.closing(psycopg.connect(**parameters | {"dbname": "postgres"})) as connection:
            query = "SELECT FROM pg_database WHERE datname = %s"
            return not connection.execute(query, [parameters["dbname"]]).fetchall()
    except psycopg.Error:
        return False


def _configure(connection: psycopg.Connection[Any], settings: dict[str, str]) -> None:
    calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
    connection.execute(f"SELECT {calls}", [text for pair in settings.items() for text in pair])


def _intended(
    schema: DatabaseSchema, types: Mapping[str, str], constants: Mapping[tuple[str, str], str | None]
) -> Catalogue:
    tables = {}
    for name, table in schema.tables.items():
        if table.absent:
            continue
        states = {}
        for key, column in table.columns.items():
            type, expression = types[column.type], column.expression
            default = SERIAL if column.serial else _spelt(expression)
            if expression is not None and payload.is_literal(expression):
                default = constants[expression, type]
            nullable = column.nullable and not column.serial and key not in table.primary_key
            states[key] = ColumnState(type, nullable, default)
        indexes = {
            key: IndexState(tuple(index.columns), index.unique) for key, index in table.indexes.items()
        }
        tables[name] = TableState(states, tuple(table.primary_key), indexes)
    unwanted = tuple(name for name, table in schema.tables.items() if table.absent)
    return Catalogue(schema.schema, schema.version, tables, unwanted)


def _types_of(schema: DatabaseSchema) -> set[str]:
    columns = (column for table in schema.tables.values() for column in table.columns.values())
    return {_SERIAL_TYPES.get(column.type.lower(), column.type) for column in columns}


def _qualified(catalogue: Catalogue) -> bool:
    """True if a name in it may have a schema, so that it depends on the search path."""
    return any(
        column.type.startswith("reg")  # its values are names
        or "." in column.type
        or ("." in (column.default or "") and not payload.is_literal(column.default or ""))
        for table in catalogue.tables.values()
        for column in table.columns.values()
    )


def _spelt(expression: str | None) -> str | None:
    """A default that is not a literal, in one spelling where several are equivalent."""
    if expression is None:
        return None
    if expression.lower() in _NOW:
        return "now()"
    return expression.lower() if payload.is_default(expression) else expression


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())[:300]
