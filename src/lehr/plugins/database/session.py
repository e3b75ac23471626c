"""What the plugin asks of a database, whichever it is."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from lehr.base.errors import TransientError
from lehr.plugins.database.catalogue import Catalogue
from lehr.plugins.database.payload import DatabaseSchema
from lehr.plugins.database.plan import Edit


class ConnectionLostError(TransientError):
    """The connection ended while something was under way: nobody knows how far it came."""


class Session(Protocol):
    """A connection to one database. All calls but `interrupt` block.

    Every call raises `TransientError` when the database is not there or busy, `StalledError` when
    it refuses, and `ConnectionLostError` when the connection ends.
    """

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
