"""The interface between the plugin and a database of any kind."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.database.catalogue import Catalogue
from lehr.plugins.database.payload import DatabaseSchema
from lehr.plugins.database.plan import Edit


class ConnectionLostError(TransientError):
    """The connection ended during a call: how far it got is unknown."""


class QueryResult(NamedTuple):
    """The result of a query, while it is being read."""

    columns: tuple[str, ...]
    rows: Iterable[Sequence[Any]]

    def first(self, most: int) -> list[tuple[Any, ...]]:
        """All rows.

        Raises:
            StalledError: there are more than `most`.
        """
        found = [tuple(row) for row in itertools.islice(self.rows, most + 1)]
        if len(found) > most:
            raise StalledError(
                f"the query returns more than {most:,} rows",
                code="DBS122",
                fix="limit what the query returns",
            )
        return found


class Session(Protocol):
    """A connection to one database. All calls but `interrupt` block.

    Every call raises `TransientError` when the database is missing or busy, `StalledError` when
    it refuses, and `ConnectionLostError` when the connection ends.
    """

    def tables(self) -> list[str]:
        """Names of all tables of the schema that may be declared, sorted. Read-only."""
        ...

    def intended(self, schema: DatabaseSchema) -> Catalogue:
        """The intent in this database's words, for comparison. Read-only."""
        ...

    def observed(self, schema: DatabaseSchema) -> Catalogue:
        """The existing tables among those that `schema` declares. Read-only."""
        ...

    def together(self, schemas: Sequence[DatabaseSchema]) -> list[tuple[Catalogue, Catalogue] | None]:
        """`intended` and `observed` of each; None for a schema that must be read alone. Read-only.

        It must be the last call in a session.
        """
        ...

    def transaction(self, *, write: bool) -> AbstractContextManager[None]:
        """One transaction; with `write`, the only one among all pushes of this schema."""
        ...

    def execute(self, edit: Edit) -> None:
        """Carry out `edit`: in the open transaction, or without one if it is a build."""
        ...

    def interrupt(self) -> None:
        """Make a running call fail, from another thread."""
        ...
