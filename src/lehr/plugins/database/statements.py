"""Edits as SQL. Pure.

Names are always quoted. Types and defaults are in the database's own words, or have passed the payload's
grammar.
"""

from __future__ import annotations

from lehr.plugins.database.catalogue import SERIAL, ColumnState, TableState
from lehr.plugins.database.payload import VERSION_TABLE
from lehr.plugins.database.plan import (
    AddColumn,
    ColumnEdit,
    CreateIndex,
    CreateSchema,
    CreateTable,
    DropColumn,
    DropDefault,
    DropIndex,
    DropTable,
    Edit,
    SetDefault,
    SetNullable,
    SetType,
    SetVersion,
)

_SERIAL_TYPES = {"smallint": "smallserial", "integer": "serial", "bigint": "bigserial"}


def quoted(name: str) -> str:
    """`name` as an SQL identifier, whatever characters it has."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def literal(text: str) -> str:
    """`text` as an SQL string, where backslashes have no meaning."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def statements(edit: Edit, schema: str | None) -> list[str]:
    """The SQL that carries `edit` out: PostgreSQL's in `schema`, SQLite's without one."""
    match edit:
        case CreateSchema():
            return [f"CREATE SCHEMA {quoted(schema or '')}"]
        case CreateTable(table, state):
            return [f"CREATE TABLE {_in(schema, table)} ({_body(state, schema)})"]
        case DropTable(table):
            return [f"DROP TABLE {_in(schema, table)}"]
        case CreateIndex():
            return [_create_index(edit, schema)]
        case DropIndex(index=index):
            return [f"DROP INDEX {_in(schema, index)}"]
        case SetVersion(version):
            return _set_version(version, schema)
        case ColumnEdit():
            return [f"ALTER TABLE {_in(schema, edit.table)} {_alteration(edit, schema)}"]


def _alteration(edit: ColumnEdit, schema: str | None) -> str:
    name = quoted(edit.column)
    match edit:
        case AddColumn(state=state):
            return f"ADD COLUMN {name} {_column(state, schema)}"
        case DropColumn():
            return f"DROP COLUMN {name}"
        case SetType(type=type):
            return f"ALTER COLUMN {name} TYPE {type} USING {name}::{type}"
        case SetNullable(nullable=nullable):
            return f"ALTER COLUMN {name} {'DROP' if nullable else 'SET'} NOT NULL"
        case SetDefault(default=default):
            return f"ALTER COLUMN {name} SET DEFAULT {default}"
        case _:
            assert isinstance(edit, DropDefault)
            return f"ALTER COLUMN {name} DROP DEFAULT"


def _create_index(edit: CreateIndex, schema: str | None) -> str:
    unique = "UNIQUE " if edit.state.unique else ""
    concurrently = "CONCURRENTLY " if edit.concurrently and schema is not None else ""
    columns = ", ".join(map(quoted, edit.state.columns))
    return f"CREATE {unique}INDEX {concurrently}{quoted(edit.index)} ON {_in(schema, edit.table)} ({columns})"


def _set_version(version: int, schema: str | None) -> list[str]:
    if schema is None:
        return [f"PRAGMA user_version = {version:d}"]
    table = _in(schema, VERSION_TABLE)
    row = "only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), version integer NOT NULL"
    put = "ON CONFLICT (only_row) DO UPDATE SET version = excluded.version"
    return [
        f"CREATE TABLE IF NOT EXISTS {table} ({row})",
        f"INSERT INTO {table} (version) VALUES ({version:d}) {put}",  # noqa: S608 - all our own
    ]


def _body(state: TableState, schema: str | None) -> str:
    parts = [f"{quoted(name)} {_column(column, schema)}" for name, column in state.columns.items()]
    if state.primary_key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, state.primary_key))})")
    return ", ".join(parts)


def _column(state: ColumnState, schema: str | None) -> str:
    null = "" if state.nullable else " NOT NULL"
    if state.default == SERIAL:
        return f"{state.type if schema is None else _SERIAL_TYPES[state.type]}{null}"
    return f"{state.type}{null}" if state.default is None else f"{state.type}{null} DEFAULT {state.default}"


def _in(schema: str | None, name: str) -> str:
    return quoted(name) if schema is None else f"{quoted(schema)}.{quoted(name)}"
