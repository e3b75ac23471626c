"""Database rows as a source: the result of one query, as one file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.digest import canonical, digest_bytes
from lehr.base.documents import MAX_BYTES
from lehr.base.errors import StalledError
from lehr.base.text import writable
from lehr.model.declared_sources import SqlPlace
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import Rows
from lehr.sources.archive import Archive, ArchivedSource, HeldSnapshot
from lehr.sources.command import public
from lehr.sources.hints import Hints

FILE = "rows.json"
"""The one file: a list of objects, one for each row, ordered by key."""

AskRows = Callable[[SqlPlace], Rows]
"""Queries the database, read-only. Raises `TransientError` or `StalledError`."""

_INTEGERS = range(-(2**63), 2**64)


class RowsSource(ArchivedSource):
    """The result of a query. Revisions are digests of the file.

    Args:
        declared: the query, and the known properties of its result.
        archive: where the files of kept revisions are or will be stored.
        ask: queries the database.
    """

    def __init__(
        self, declared: SqlPlace, archive: Path, ask: AskRows, *, clock: Clock, blocking: Blocking
    ) -> None:
        super().__init__(Archive(archive), Hints(clock, declared.poll, blocking=blocking))
        self._declared = declared
        self._ask = ask

    @property
    def name(self) -> str:
        """`sql:CONNECTION`."""
        return writable(f"sql:{public(self._declared.sql)}")

    def newest(self) -> HeldSnapshot:
        """The current rows.

        Raises:
            TransientError: the database does not answer.
            StalledError: it refuses; or there are no rows, too many, or two with the same key.
        """
        content = document(self._ask(self._declared), self._declared)
        revision = digest_bytes(content)
        held = self._archive.held(revision)
        if held is None:
            held = HeldSnapshot(SourceRevision(self.name, revision), {FILE: content})
        self._archive.hold(held)
        return held


def document(rows: Rows, declared: SqlPlace) -> bytes:
    """The file with `rows`: equal rows give equal bytes, regardless of their order.

    Raises:
        StalledError: two have the same key, one has a value that intent cannot hold, or there are none.
    """
    if rows.values:
        _check_columns(rows, declared)
    elif not declared.may_be_empty:
        raise StalledError(
            "the query returns no rows",
            code="SRC132",
            why="an empty result is usually a mistake, and would remove everything",
            fix="fix the query or the table; if an empty result is intended, write `may_be_empty: true`",
        )
    found: dict[tuple[Any, ...], bytes] = {}
    for values in rows.values:
        row = {column: _plain(column, value) for column, value in zip(rows.columns, values, strict=True)}
        key = tuple(_key(column, row[column]) for column in declared.key)
        if key in found:
            named = ", ".join(f"{column}={row[column]!r}" for column in declared.key)
            raise StalledError(
                f"two rows have the key {named}",
                code="SRC133",
                why="keys must be unique",
                fix="fix the table, or name more columns in `key`",
            )
        found[key] = canonical(row)
    content = b"[" + b",".join(b"\n" + found[key] for key in sorted(found)) + b"\n]\n"
    if len(content) > MAX_BYTES:
        raise StalledError(
            f"the rows have {len(content):,} bytes, more than {MAX_BYTES:,}",
            code="SRC134",
            why="files of intent are read whole",
            fix="let the query return less, or split it into several sources",
        )
    return content


def _check_columns(rows: Rows, declared: SqlPlace) -> None:
    twice = sorted({column for column in rows.columns if rows.columns.count(column) > 1})
    if twice:
        raise StalledError(
            f"the query returns two columns called {twice[0]}",
            code="SRC135",
            fix=f"rename one of them: {twice[0]} AS ...",
        )
    missing = [column for column in declared.key if column not in rows.columns]
    if missing:
        raise StalledError(
            f"the query returns no column {missing[0]}, which `key` names",
            code="SRC136",
            why=f"its columns are {', '.join(rows.columns)}",
            fix="fix `key` or the query",
        )


def _plain(column: str, value: Any) -> Any:
    """`value` in a form that intent can hold: exact numbers, times and bytes become text."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError):
        plain = None if value is None else msgspec.UNSET
    problem = "has a kind" if plain is msgspec.UNSET else _problem(plain)
    if problem:
        raise StalledError(
            f"the column {column} {problem} that files of intent cannot hold: {type(value).__name__}",
            code="SRC137",
            fix=f"cast it in the query: CAST({column} AS text)",
        )
    return plain


def _problem(value: Any) -> str:
    """Why a file of intent cannot hold the value; "" if it can."""
    if isinstance(value, float) and not math.isfinite(value):
        return "has a number"
    if isinstance(value, int) and value not in _INTEGERS:
        return "has a number"
    inner: Sequence[Any] = ()
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    return next(filter(None, map(_problem, inner)), "")


def _key(column: str, value: Any) -> tuple[str, Any]:
    """A sort key for rows, whatever kinds of values the column holds."""
    if isinstance(value, bool | int | float | str):
        return type(value).__name__, value
    raise StalledError(
        f"the key column {column} holds {'NULL' if value is None else 'a value that cannot be a key'}",
        code="SRC138",
        why="a row without a key cannot be identified",
        fix="exclude such rows from the query, or name a different column in `key`",
    )
