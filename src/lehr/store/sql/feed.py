"""The feed: one row for each commit that changed something, with references to the records.

A commit takes the number after the newest of its partition. It holds the lock of the partition until it is
committed, so rows appear in the order of their numbers, without a gap: a reader that has seen one has missed
none before it. Pruning removes rows from the beginning, and never the newest, whose number must not be given
again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.model.asset import Partition
from lehr.model.damage import Damage
from lehr.model.feed import ChangeKind, FeedEntry, RecordChange
from lehr.sdk.watch import FeedGoneError
from lehr.store.sql.session import Session
from lehr.store.sql.tables import FEED

Changes = tuple[RecordChange, ...]

_decode = msgspec.json.Decoder(Changes).decode

_MOST = 2**62
"""Above every number there will be. SQLite sorts a damaged number that became a text behind it."""

# Not verified: a damaged row must not hold up commits, and readers verify it.
_NEWEST = f"SELECT max(number) FROM feed WHERE partition = ? AND number < {_MOST}"  # noqa: S608 - our own names
_FROM = f"SELECT {FEED.names()} FROM feed WHERE partition = ? AND number >= ? ORDER BY number LIMIT ?"  # noqa: S608


class Noted:
    """The changes of the commit under way, by partition.

    Attributes:
        rows: partitions and leases that admissions of this commit have read. No other commit changes them.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[str, Partition], Any] = {}
        self._changes: dict[Partition, list[tuple[ChangeKind, str, str]]] = {}  # fields of `RecordChange`
        self._at = -math.inf

    def add(
        self, partition: Partition, kind: ChangeKind, at: float, asset: str = "", record: str = ""
    ) -> None:
        """Report one more change. `at`: wall-clock seconds."""
        changes = self._changes.get(partition)
        if changes is None:
            changes = self._changes[partition] = []
        changes.append((kind, asset, record))
        if at > self._at:  # noqa: PLR1730 - a thousand times in a commit, `max` takes twice as long
            self._at = at

    def write(self, db: Session) -> None:
        """Append them to the feeds of their partitions."""
        for partition, changes in self._changes.items():
            number = newest_position(db, partition) + 1
            body = msgspec.json.encode(changes)
            db.execute(FEED.insert, FEED.sealed(partition, number, float(self._at), body))


def newest_position(db: Session, partition: Partition) -> int:
    """The number of the newest entry; 0 before the first."""
    return int(db.execute(_NEWEST, (partition,)).fetchone()[0] or 0)


def entries(db: Session, partition: Partition, after: int, limit: int) -> list[FeedEntry]:
    """The entries after a position.

    Raises:
        FeedGoneError: some of them are missing, or the position never existed.
        DamagedError: the first of them is damaged.
    """
    # The row of the position itself, which is never pruned before its successor, shows that it existed.
    first = max(after, 1)
    rows = db.execute(_FROM, (partition, first, limit + 1)).fetchall()
    if after and not rows:
        newest = newest_position(db, partition)
        raise FeedGoneError(after, f"the newest position is {newest}: this is another state")
    found: list[FeedEntry] = []
    for row in rows:
        number, expected = row[1], after + len(found) + 1
        if number == after:
            continue
        if number != expected:
            if found:
                return found
            raise FeedGoneError(after, f"the oldest entry that is kept has position {number}")
        if found and not FEED.is_intact(row):
            return found  # the next call raises the error
        _partition, _number, at, body = FEED.read(row)
        found.append(FeedEntry(number, at, _decode(body)))
    return found[:limit]


_OLD = """
    FROM feed WHERE partition = :partition AND number < (
        SELECT max(number) FROM feed WHERE partition = :partition AND at < :before)
"""
"""Entries before the last that is old, whatever a clock showed for those in between: there must be no gap."""


def prunable_entries(db: Session, partition: Partition, before: float) -> int:
    """The number of entries that `prune_entries` would remove in all its shares."""
    wanted = {"partition": partition, "before": before}
    return int(db.execute(f"SELECT count(*) {_OLD}", wanted).fetchone()[0])


def prune_entries(db: Session, partition: Partition, before: float, most: int) -> int:
    """Remove a share of `most` old entries, the first ones, and return their number."""
    wanted = {"partition": partition, "before": before, "most": most}
    last = f"SELECT max(number) FROM (SELECT number {_OLD} ORDER BY number LIMIT :most) share"  # noqa: S608
    [number] = db.execute(last, wanted).fetchone()
    if number is None:
        return 0
    gone = "DELETE FROM feed WHERE partition = ? AND number <= ?"
    return db.execute(gone, (partition, number)).rowcount


def check(db: Session, partition: Partition) -> Iterator[Damage]:
    """Check that no entry is missing between the oldest and the newest."""
    before: Any = None
    for (number,) in db.stream("SELECT number FROM feed WHERE partition = ? ORDER BY number", (partition,)):
        if before is not None and number != before + 1:
            yield Damage(
                f"the feed of {partition} has a gap after entry {before}",
                f"the next one is {number}: readers that have seen {before} list again",
            )
        before = number
