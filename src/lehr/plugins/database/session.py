"""What the plugin asks of a database, whichever it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.database.catalogue import Catalogue
from lehr.plugins.database.payload import DatabaseSchema
from lehr.plugins.database.plan import Edit


class ConnectionLostError(TransientError):
    """The connection ended while something was under way: nobody knows how far it came."""


_MOST_ROWS = 1_000_000


def values_of(rows: Iterable[Sequence[Any]]) -> frozenset[str]:
    """The first column of `rows` as text, without NULL.

    Raises:
        StalledError: there are too many.
    """
    found = [str(row[0]) for row in itertools.islice(rows, _MOST_ROWS + 1) if row[0] is not None]
    if len(found) > _MOST_ROWS:
        raise StalledError(f"the query gives more than {_MOST_ROWS:,} rows", fix="have it give less")
    return frozenset(found)


class Session(Protocol):
    """A connection to one database. All calls but `interrupt` block.

    Every call raises `TransientError` when the database is not there or busy, `StalledError` when
    it refuses, and `ConnectionLostError` when the connection ends.
    """

    def tables(self) -> list[str]:
        """Names of all tables of the schema that may be declared, sorted. Read-only."""
        ...

    def intended(self, schema: DatabaseSchema) -> Catalogue:
        """The intent in this database's words, in which it can be compared. Read-only."""
        ...

    def observed(self, schema: DatabaseSchema) -> Catalogue:
        """What there is of the tables that `schema` declares. Read-only."""
        ...

    def transaction(self, *, write: bool) -> AbstractContextManager[None]:
        """One transaction; with `write`, the only one of all who push this schema."""
        ...

    def execute(self, edit: Edit) -> None:
        """Carry out `edit`: in the transaction that is open, or without one if it is a build."""
        ...

    def interrupt(self) -> None:
        """Have what is under way fail, from another thread."""
        ...
