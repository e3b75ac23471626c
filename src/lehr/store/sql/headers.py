"""Headers of incarnations, which stay when an incarnation is pruned."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from lehr.base.digest import Digest
from lehr.model.admission import PartitionRow
from lehr.model.asset import Partition
from lehr.model.feed import ChangeKind
from lehr.model.incarnation import Incarnation
from lehr.model.writes import Publish
from lehr.sdk.store import Imported
from lehr.store.sql.partitions import write_partition
from lehr.store.sql.session import Session
from lehr.store.sql.tables import IMPORTED, INCARNATION, PRUNED

# The newest is read again and again, and only its row can have changed, which is verified.
_decode = functools.lru_cache(64)(msgspec.json.Decoder(Incarnation).decode)

_FIND = f"SELECT {INCARNATION.names()} FROM incarnation WHERE partition = ? AND sequence = ?"  # noqa: S608
_FIND_NEWEST = (
    f"SELECT {INCARNATION.names()} FROM incarnation WHERE partition = ? ORDER BY sequence DESC LIMIT 1"  # noqa: S608
)
_FIND_PRUNED = f"SELECT {PRUNED.names()} FROM incarnation WHERE partition = ? AND sequence = ?"  # noqa: S608
_FIND_PRUNED_BETWEEN = (
    f"SELECT {PRUNED.names()} FROM incarnation WHERE partition = ? AND sequence > ? AND sequence < ?"  # noqa: S608
)
_INSERT = (
    "INSERT INTO incarnation (partition, sequence, header, checksum, pruned, pruned_checksum)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_MARK = "UPDATE incarnation SET pruned = ?, pruned_checksum = ? WHERE partition = ? AND sequence = ?"


def _write_header(db: Session, header: Incarnation) -> None:
    """Append the header of an incarnation that is not pruned."""
    partition, sequence = header.partition, header.sequence
    _partition, _sequence, *kept = PRUNED.sealed(partition, sequence, 0)
    db.execute(_INSERT, (*INCARNATION.sealed(partition, sequence, msgspec.json.encode(header)), *kept))


def append_header(
    db: Session,
    write: Publish,
    row: PartitionRow,
    before: Incarnation | None,
    root: Digest,
    governance: Digest,
    added: int,
) -> Incarnation:
    """Append the header of the incarnation that `write` publishes, and make it the newest of its partition.

    Args:
        row: of the partition, as before.
        before: header of the newest incarnation, as before.
        added: how many of the candidate's assets are new.
    """
    candidate = write.candidate
    incarnation = Incarnation(
        candidate.partition,
        row.newest + 1,
        root,
        governance,
        candidate.sources,
        candidate.generators,
        write.at,
        assets=(0 if before is None else before.assets) + added - len(candidate.removals),
        added=added,
        changed=len(candidate.upserts) - added,
        removed=len(candidate.removals),
        types=candidate.types,
        acknowledged=candidate.acknowledged,
    )
    _write_header(db, incarnation)
    write_partition(db, row._replace(newest=incarnation.sequence, governance=incarnation.governance))
    sequence = str(incarnation.sequence)
    db.noted.add(incarnation.partition, ChangeKind.INCARNATION, write.at, record=sequence)
    return incarnation


def header(db: Session, partition: Partition, sequence: int) -> Incarnation | None:
    """One header; None if the incarnation never existed.

    Raises:
        DamagedError: it is damaged; so do all other reads here.
    """
    return next(headers(db.execute(_FIND, (partition, sequence))), None)


def newest_header(db: Session, partition: Partition) -> Incarnation | None:
    """The newest; None before the first."""
    return next(headers(db.execute(_FIND_NEWEST, (partition,))), None)


def headers(rows: Iterable[tuple[Any, ...]]) -> Iterator[Incarnation]:
    """The headers in rows of `INCARNATION.names()`."""
    for _partition, _sequence, body in INCARNATION.read_all(rows):
        yield _decode(body)


def shows_pruned(partition: Partition, sequence: int, flag: tuple[Any, Any]) -> bool:
    """Whether an incarnation was pruned, by its columns `pruned` and `pruned_checksum`.

    Both columns are None for one that never existed.
    """
    return flag != (None, None) and PRUNED.read((partition, sequence, *flag))[2] == 1


def any_pruned(db: Session, partition: Partition, low: int, high: int) -> bool:
    """Whether an incarnation between `low` and `high`, both excluded, was pruned.

    If none is marked, all are read: a damaged one may have been.
    """
    row = db.execute(
        f"SELECT 1 FROM incarnation{db.by('incarnation_pruned')}"  # noqa: S608
        " WHERE partition = ? AND pruned = 1 AND sequence > ? AND sequence < ? LIMIT 1",
        (partition, low, high),
    ).fetchone()
    return row is not None or any(pruned_flags(db, partition, low, high))


def pruned_flags(db: Session, partition: Partition, low: int, high: int) -> Iterator[bool]:
    """Whether each incarnation between `low` and `high`, both excluded, was pruned."""
    rows = db.execute(_FIND_PRUNED_BETWEEN, (partition, low, high))
    return (pruned == 1 for _partition, _sequence, pruned in PRUNED.read_all(rows))


def is_pruned(db: Session, partition: Partition, sequence: int) -> bool:
    """Whether an incarnation was pruned."""
    row = db.execute(_FIND_PRUNED, (partition, sequence)).fetchone()
    return row is not None and PRUNED.read(row)[2] == 1


def mark_pruned(db: Session, partition: Partition, sequences: Iterable[int]) -> None:
    """Mark these as pruned."""
    sealed = (PRUNED.sealed(partition, sequence, 1) for sequence in sequences)
    db.executemany(_MARK, ((pruned, sum_, of, at) for of, at, pruned, sum_ in sealed))


def imported_headers(db: Session) -> list[Imported]:
    """Headers of imported incarnations, by name."""
    rows = db.execute(f"SELECT {IMPORTED.names()} FROM imported ORDER BY name").fetchall()  # noqa: S608
    return [Imported(_decode(body), at) for _name, at, body in IMPORTED.read_all(rows)]
