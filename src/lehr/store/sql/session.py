"""A connection to a database, as this package's statements need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from lehr.store.sql.feed import Noted

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
"""Values of `?` in order, or of `:name` by name."""


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows written."""
        ...

    def fetchone(self) -> Any:
        """The next row; None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Session(Protocol):
    """Runs statements one after the other, within the open transaction.

    Attributes:
        noted: the changes of the commit under way, for the feed.

    Raises: the database's own errors; the opener of the session translates them.
    """

    noted: Noted

    def execute(self, statement: str, values: Values = (), /) -> Rows:
        """Run a statement that returns few rows."""
        ...

    def stream(self, statement: str, values: Values = (), /) -> Iterator[Row]:
        """Rows of a query that may return many, read lazily."""
        ...

    def executemany(self, statement: str, values: Iterable[Values], /) -> object:
        """Run a statement for each of `values`."""
        ...

    def next_number(self, table: str) -> int:
        """A number for a new row of `table`: above every earlier one, whatever the clock shows."""
        ...

    def now(self) -> str:
        """SQL for the wall-clock seconds: a writer's own (`:at`), or those of a server that all share."""
        ...

    def number(self, column: str, field: str) -> str:
        """SQL for a number in a field of the JSON document in a column."""
        ...

    def text(self, column: str, field: str) -> str:
        """SQL for a text in a field of the JSON document in a column; `a.b` is field `b` of an object `a`."""
        ...

    def by(self, index: str) -> str:
        """The clause after a table that makes the database use an index, where it needs one."""
        ...


OpenSession = Callable[[], AbstractContextManager[Session]]
"""Opens a session for reading; errors in it are raised as `TransientError` or `StalledError`."""
