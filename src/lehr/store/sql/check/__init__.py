"""Checks a store: recomputes everything that can be recomputed, and compares it with the stored values.

In: a session that reads one snapshot of the store, and the types of the assets. Out: one `Damage` for each
problem, as it is found.

Architecture invariants: only a temporary file of this process is written, so a running program is not
disturbed; time grows with the number of rows, memory does not.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import msgspec

from lehr.model.asset import Partition
from lehr.model.damage import Advance, Damage, TypesOf
from lehr.store.sql import feed
from lehr.store.sql.check import checksums, derived, history, imported, records
from lehr.store.sql.session import Session
from lehr.store.sql.tables import TABLES

_LOOKED_AT = (
    "asset_version",
    "asset_current",
    "operation",
    "decision",
    "standing",
    "ledger",
    "handle",
    "feed",
    "outputs",
    "imported_asset",
    *(table.name for table in TABLES),
)
"""Tables, each as often as its rows are checked."""

_NAMING = (
    "asset_current",
    "asset_version",
    "attempt",
    "audit",
    "control",
    "decision",
    "feed",
    "handle",
    "incarnation",
    "lease",
    "ledger",
    "mention",
    "operation",
    "outputs",
    "standing",
)
"""Tables with data of a partition, except those derived from the current state."""

_UNREADABLE: tuple[type[Exception], ...] = (
    msgspec.MsgspecError,
    UnicodeError,
    AttributeError,
    TypeError,
    ValueError,
)
"""Exceptions that damage in a value may raise."""

Step = Callable[[], Iterator[Damage]]


def rows(db: Session) -> int:
    """The number of rows to check, each counted as often as it is read."""
    counts = (db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _LOOKED_AT)  # noqa: S608
    return sum(counts)


def check(
    db: Session, types: TypesOf, advance: Advance, failures: tuple[type[Exception], ...]
) -> Iterator[Damage]:
    """All damage in the state that `db` reads.

    Args:
        failures: exceptions of the session if the database itself is damaged.
    """
    expected = failures + _UNREADABLE

    def finished(name: str, step: Step) -> Iterator[Damage]:
        """The findings of `step`; its failure to finish is damage as well."""
        try:
            yield from step()
        except expected as error:
            yield Damage(f"the check of {name} could not be finished", f"{type(error).__name__}: {error}")

    try:
        partitions = _partitions(db)
    except failures as error:
        yield Damage("the tables could not be read", f"{type(error).__name__}: {error}")
        return
    for partition in partitions:
        with contextlib.closing(history.Replay(partition)) as replay:
            for name, step in _steps(db, replay, types, advance):
                yield from finished(f"{name} of {partition}", step)
    for table in TABLES:
        yield from finished(
            f"the rows of {table.name}", functools.partial(checksums.check, db, table, advance)
        )
    yield from finished("reservations", lambda: records.check_reservations(db))
    yield from finished("imported incarnations", lambda: imported.check(db, advance))


def _steps(
    db: Session, replay: history.Replay, types: TypesOf, advance: Advance
) -> Iterator[tuple[str, Step]]:
    partition = replay.partition
    yield "the history", lambda: history.check(db, partition, types, replay, advance)
    yield "the current state", lambda: history.check_current(db, replay)
    yield "the indexes", lambda: derived.check(db, partition, types, advance)
    yield "the records", lambda: records.check(db, partition, advance)
    yield "the feed", lambda: feed.check(db, partition)


def _partitions(db: Session) -> list[Partition]:
    """Includes partitions named only in other tables."""
    selects = [f"SELECT partition FROM {table}" for table in _NAMING]  # noqa: S608
    query = " UNION ".join(("SELECT name FROM partition", *selects))
    return [row[0] for row in db.execute(f"{query} ORDER BY 1")]
