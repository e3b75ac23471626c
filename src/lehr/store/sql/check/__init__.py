"""Checking a store: everything that can be recomputed is, and compared with what is stored.

In: a session that reads one moment of the store, and the types of the assets. Out: `Damage`, one
for each thing that is wrong, as it is found.

Architecture invariants: nothing is written but a temporary file of this process, so a running program
is not disturbed; time grows with the number of rows, memory does not.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator

import msgspec

from lehr.model.asset import Partition
from lehr.model.damage import Advance, Damage, TypesOf
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
    "imported_asset",
    *(table.name for table in TABLES),
)
"""Tables, as often as each of their rows is looked at."""

_NAMING = (
    "asset_current",
    "asset_version",
    "attempt",
    "audit",
    "control",
    "decision",
    "incarnation",
    "ledger",
    "mention",
    "operation",
    "standing",
)
"""Tables of what belongs to a partition, but for those that follow from the current state."""

_UNREADABLE: tuple[type[Exception], ...] = (
    msgspec.MsgspecError,
    UnicodeError,
    AttributeError,
    TypeError,
    ValueError,
)
"""What damage in a value may raise."""

Step = Callable[[], Iterator[Damage]]


def rows(db: Session) -> int:
    """How many rows there are to look at, each as often as it is."""
    counts = (db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _LOOKED_AT)  # noqa: S608
    return sum(counts)


def check(
    db: Session, types: TypesOf, advance: Advance, failures: tuple[type[Exception], ...]
) -> Iterator[Damage]:
    """Everything that is wrong with the state that `db` reads.

    Args:
        failures: what the session raises where the database itself is damaged.
    """
    expected = failures + _UNREADABLE

    def finished(name: str, step: Step) -> Iterator[Damage]:
        """What `step` finds; that it could not come to its end is damage, too."""
        try:
            yield from step()
        except expected as error:
            yield Damage(f"the check of {name} could not be finished", f"{type(error).__name__}: {error}")

    try:
        partitions = _partitions(db)
    except failures as error:
        yield Damage("the tables could not be looked at", f"{type(error).__name__}: {error}")
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
    yield from finished("what was imported", lambda: imported.check(db, advance))


def _steps(
    db: Session, replay: history.Replay, types: TypesOf, advance: Advance
) -> Iterator[tuple[str, Step]]:
    partition = replay.partition
    yield "the history", lambda: history.check(db, partition, types, replay, advance)
    yield "the current state", lambda: history.check_current(db, replay)
    yield "the indexes", lambda: derived.check(db, partition, types, advance)
    yield "the records", lambda: records.check(db, partition, advance)


def _partitions(db: Session) -> list[Partition]:
    """Also those that are only named in other tables."""
    selects = [f"SELECT partition FROM {table}" for table in _NAMING]  # noqa: S608
    query = " UNION ".join(("SELECT name FROM partition", *selects))
    return [row[0] for row in db.execute(f"{query} ORDER BY 1")]
