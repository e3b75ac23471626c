"""Drafts `lehr.DatabaseSchema` from the tables of a database. Blocks; read-only.

Each draft is compared with its table at once, so that a table that intent cannot fully describe is left out
and reported.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.errors import LehrError, StalledError, raised_as
from lehr.plugins.database.catalogue import SERIAL, Catalogue, ColumnState, TableState
from lehr.plugins.database.connection import SqliteAddress
from lehr.plugins.database.databases import Databases
from lehr.plugins.database.payload import DATABASE_SCHEMA, DatabaseSchema, Name, Table
from lehr.plugins.database.plan import plan
from lehr.plugins.database.session import Session
from lehr.sdk.discovered_ids import Ids
from lehr.sdk.plugin import Found

_PUBLIC = "public"
_SERIAL_TYPES = {"smallint": "smallserial", "integer": "serial", "bigint": "bigserial"}
_WHOLE = re.compile(r"'?(-?\d{1,15})'?")
_TRUTH = {"'true'": True, "'false'": False}


def drafts(databases: Databases, query: Sequence[str]) -> list[Found]:
    """A draft for each requested schema.

    Args:
        query: a connection, and then patterns of tables (`orders*`, `sales.*`); all of the schema `public` by
            default.

    Raises:
        StalledError: the query cannot be parsed, or nothing matches it.
        TransientError: the database does not answer.
    """
    connection, *patterns = query
    wanted: dict[str, list[str]] = {}
    for pattern in patterns or ["*"]:
        schema, _, name = pattern.rpartition(".")
        wanted.setdefault(schema or _PUBLIC, []).append(name)
    ids = Ids()
    return [_draft(databases, _asked(connection, schema), names, ids) for schema, names in wanted.items()]


def _asked(connection: str, schema: str) -> DatabaseSchema:
    fix = "write a connection such as postgresql://host/database or sqlite:PATH"
    with raised_as(StalledError, "this does not name a database", code="DBS104", fix=fix, on=ValueError):
        return DatabaseSchema(connection=connection, version=0, schema=schema)


def _draft(databases: Databases, asked: DatabaseSchema, patterns: Sequence[str], ids: Ids) -> Found:
    tables: dict[str, Any] = {}
    notes: list[str] = []
    with databases.open(asked) as session:
        if session is None:  # cannot happen: the draft does not ask to create it
            raise StalledError(f"database {asked.address.place} does not exist", code="DBS105")
        with session.transaction(write=False):
            names = [name for name in session.tables() if _matches(name, patterns)]
            version = session.observed(asked).version
        for name in names:
            with session.transaction(write=False):
                declaration, problem = _table(session, asked, name)
            if problem:
                notes.append(f"table {name} is skipped: {problem}")
            else:
                tables[name] = declaration
                notes.extend(_undeclared_indexes(session, asked, name))
    if not names:
        raise StalledError(
            f"no table of {asked.address.place} matches {', '.join(patterns)}",
            code="DBS106",
            why=f"looked for in schema {asked.schema}",
            fix="correct the pattern; write SCHEMA.TABLE for tables of another schema",
        )
    payload = {"connection": asked.connection, "version": version}
    payload |= {} if asked.schema == _PUBLIC else {"schema": asked.schema}
    if not version:
        notes.append("the database has no version yet; leave it at 0 until another asset requires one")
    return Found(
        id=ids.propose(_name(asked)),
        type=DATABASE_SCHEMA,
        payload=payload | {"tables": tables},
        notes=(*notes, "foreign keys, checks, triggers and views are ignored and stay unchanged"),
        obstacle="" if tables else "intent cannot describe any of its tables as they are",
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _name(asked: DatabaseSchema) -> str:
    address = asked.address
    if isinstance(address, SqliteAddress):
        return f"database/{PurePath(address.path).stem}"
    return f"database/{address.database}" + ("" if asked.schema == _PUBLIC else f"/{asked.schema}")


def _table(session: Session, asked: DatabaseSchema, name: str) -> tuple[dict[str, Any], str]:
    """The part of a table that intent can describe, and why not all of it; empty if all."""
    observed = _observed(session, asked, name)
    declaration = _declaration(observed.tables[name], numbered=isinstance(asked.address, SqliteAddress))
    try:
        declared = msgspec.convert({name: declaration}, dict[Name, Table])
        intended = session.intended(replace(asked, version=observed.version, tables=declared))
    except (msgspec.ValidationError, ValueError, LehrError) as error:
        return declaration, str(error)
    differing = [
        change.path.removeprefix(f"tables/{name}/") for change in plan(intended, observed).diff.changes
    ]
    return declaration, f"intent cannot describe {', '.join(differing)} as it is" if differing else ""


def _observed(session: Session, asked: DatabaseSchema, name: str) -> Catalogue:
    # The query is about columns: only the name of the named table counts.
    return session.observed(replace(asked, tables={name: Table(absent=True)}))


def _declaration(state: TableState, *, numbered: bool) -> dict[str, Any]:
    """The table as people write it.

    Args:
        numbered: the database numbers rows by their integer primary key implicitly.
    """
    columns = {
        name: _column(column, required=name in state.primary_key, numbered=numbered)
        for name, column in state.columns.items()
    }
    declaration: dict[str, Any] = {"columns": columns}
    if state.primary_key:
        declaration["primary_key"] = list(state.primary_key)
    indexes = {
        name: {"columns": list(index.columns)} | ({"unique": True} if index.unique else {})
        for name, index in state.indexes.items()
        if not index.special and not index.constraint
    }
    return declaration | ({"indexes": indexes} if indexes else {})


def _column(state: ColumnState, *, required: bool, numbered: bool) -> dict[str, Any]:
    if state.default == SERIAL:
        return {"type": state.type if numbered else _SERIAL_TYPES.get(state.type, state.type)}
    declaration: dict[str, Any] = {"type": state.type}
    if not state.nullable and not required:
        declaration["nullable"] = False
    if state.default is not None:
        declaration["default"] = _default(state.type, state.default)
    return declaration


def _default(type: str, default: str) -> str | int | bool:
    """A number or truth as such; anything else as SQL."""
    if default in _TRUTH and type == "boolean":
        return _TRUTH[default]
    whole = _WHOLE.fullmatch(default)
    return int(whole[1]) if whole and type in _SERIAL_TYPES else default


def _undeclared_indexes(session: Session, asked: DatabaseSchema, name: str) -> Iterator[str]:
    """Indexes that stay even if they are not declared."""
    with session.transaction(write=False):
        state = _observed(session, asked, name).tables.get(name)
    for index, found in state.indexes.items() if state else ():
        if found.special or found.constraint:
            kind = "of a constraint" if found.constraint else "over expressions, a subset of rows or similar"
            yield f"index {index} of table {name}, {kind}, is not declared and stays unchanged"
