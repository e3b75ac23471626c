"""A connection to a database, as the statements in this package need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
"""Of `?` in order, or of `:name` by name."""


class Rows(Protocol):
    """What a statement came to."""

    @property
    def rowcount(self) -> int:
        """How many rows were written."""
        ...

    def fetchone(self) -> Any:
        """The next row; None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Session(Protocol):
    """Carries out statements, one after the other, within the transaction that stands.

    Raises: the database's own errors; whoever opens the session puts them in our words.
    """

    def execute(self, statement: str, values: Values = (), /) -> Rows:
        """Carry out a statement that answers few rows."""
        ...

    def stream(self, statement: str, values: Values = (), /) -> Iterator[Row]:
        """Rows of a query that may be many, read as they are asked for."""
        ...

    def executemany(self, statement: str, values: Iterable[Values], /) -> object:
        """Carry out a statement for each of `values`."""
        ...

    def next_number(self, table: str) -> int:
        """A number for a new row of `table`: above all that its rows had before, whatever the clock says."""
        ...

    def number(self, column: str, field: str) -> str:
        """How a number is named that is a field of the JSON document in a column."""
        ...

    def text(self, column: str, field: str) -> str:
        """How a text is named that is a field of the JSON document in a column."""
        ...

    def by(self, index: str) -> str:
        """What follows a table that is to be read by an index, where that has to be said."""
        ...


Reading = Callable[[], AbstractContextManager[Session]]
"""Opens a session for reading; in it, what goes wrong is raised as `TransientError` or `StalledError`."""
