"""Data about a partition as a whole: one row each, read and written whole."""

from __future__ import annotations

from lehr.model.admission import PartitionRow
from lehr.model.asset import Partition
from lehr.store.sql.session import Session
from lehr.store.sql.tables import PARTITION

_FIND = f"SELECT {PARTITION.names()} FROM partition WHERE name = ?"  # noqa: S608 - our own names
_INSERT = f"{PARTITION.insert} ON CONFLICT DO NOTHING"
_UPDATE = (
    "UPDATE partition SET newest = ?, governance = ?, controls = ?, releases = ?, checksum = ? WHERE name = ?"
)


def partition_row(db: Session, partition: Partition) -> PartitionRow:
    """The row of a partition, with zeros if it does not exist.

    Raises:
        DamagedError: it is damaged.
    """
    row = db.execute(_FIND, (partition,)).fetchone()
    return PartitionRow(partition) if row is None else PartitionRow(*PARTITION.read(row))


def know_partition(db: Session, partition: Partition) -> None:
    """Create the row of a partition if it does not exist."""
    db.execute(_INSERT, PARTITION.sealed(*PartitionRow(partition)))


def write_partition(db: Session, row: PartitionRow) -> None:
    """Replace or create the row of a partition."""
    db.noted.rows.pop(("partition", row.name), None)
    know_partition(db, row.name)
    name, *values, checksum = PARTITION.sealed(*row)
    db.execute(_UPDATE, (*values, checksum, name))
