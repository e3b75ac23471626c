"""Checking a state file: everything that can be recomputed is, and compared with what is stored.

In: a connection that reads one moment of the file, and the types of the assets. Out: `Damage`, one
for each thing that is wrong, as it is found.

Architecture invariants: nothing is written but temporary tables, so a running program is not
disturbed; time grows with the number of rows, memory does not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import msgspec

from lehr.model.asset import Partition
from lehr.store.damage import RESTORE, Advance, Damage, TypesOf
from lehr.store.sqlite.check import derived, history, imported, records

_PROBLEMS = 1000
"""Of the file's own structure; with more, the rest says nothing new."""

_TABLES = ("asset_version", "asset_current", "operation", "decision", "standing", "ledger", "imported_asset")

Step = Callable[[], Iterator[Damage]]


def rows(db: sqlite3.Connection) -> int:
    """How many rows there are to look at."""
    counts = (db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _TABLES)  # noqa: S608
    return sum(counts)


def check(db: sqlite3.Connection, types: TypesOf, advance: Advance) -> Iterator[Damage]:
    """Everything that is wrong with the state that `db` reads."""
    yield from _finished("the structure of the file", lambda: _structure(db))
    for partition in _partitions(db):
        for name, step in _steps(db, partition, types, advance):
            yield from _finished(f"{name} of {partition}", step)
    yield from _finished("reservations", lambda: records.check_reservations(db))
    yield from _finished("what was imported", lambda: imported.check(db, advance))


def _steps(
    db: sqlite3.Connection, partition: Partition, types: TypesOf, advance: Advance
) -> Iterator[tuple[str, Step]]:
    replay = history.Replay(db, partition)
    yield "the history", lambda: history.check(db, partition, types, replay, advance)
    yield "the current state", lambda: history.check_current(db, replay)
    yield "the indexes", lambda: derived.check(db, partition, types, advance)
    yield "the records", lambda: records.check(db, partition, advance)


def _finished(name: str, step: Step) -> Iterator[Damage]:
    """What `step` finds; that it could not come to its end is damage, too."""
    try:
        yield from step()
    except (sqlite3.Error, msgspec.MsgspecError, UnicodeError, TypeError, ValueError) as error:
        yield Damage(f"the check of {name} could not be finished", f"{type(error).__name__}: {error}")


def _structure(db: sqlite3.Connection) -> Iterator[Damage]:
    for (said,) in db.execute(f"PRAGMA integrity_check({_PROBLEMS})"):
        if said != "ok":
            yield Damage("the state file is damaged", said.replace("\n", "; "), RESTORE)


def _partitions(db: sqlite3.Connection) -> list[Partition]:
    """Also those that are only named in other tables."""
    tables = ("partition", "incarnation", "asset_version", "asset_current", "operation", "ledger", "standing")
    columns = ["name" if table == "partition" else "partition" for table in tables]
    selects = [f"SELECT {column} FROM {table}" for column, table in zip(columns, tables, strict=True)]  # noqa: S608
    try:
        return [row[0] for row in db.execute(f"{' UNION '.join(selects)} ORDER BY 1")]
    except sqlite3.Error:
        return []  # the structure of the file has been found to be damaged
