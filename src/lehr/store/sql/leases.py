"""Leases: taken, renewed and returned, by the clock of the store."""

from __future__ import annotations

import functools

from lehr.model.asset import Partition
from lehr.model.lease import WHOLE, Lease
from lehr.model.reason import Reason
from lehr.model.writes import KeepLease, LeaseLostError, Refused, ReturnLease, TakeLease
from lehr.store.sql.partitions import know_partition
from lehr.store.sql.session import Session
from lehr.store.sql.tables import LEASE

_FIND = f"SELECT {LEASE.names()} FROM lease WHERE partition = ? AND share = ?"  # noqa: S608 - our own names
_REPLACE = (
    f"{LEASE.insert} ON CONFLICT (partition, share) DO UPDATE SET owner = excluded.owner,"
    " epoch = excluded.epoch, until = excluded.until, checksum = excluded.checksum"
)

_RENEWED_BELOW = 0.75
"""A lease is renewed when less than this share of its time is left, and not with each commit."""


def take_lease(db: Session, write: TakeLease) -> int | Refused:
    """Raise the epoch and return it, unless another owner has the lease."""
    found, now = _at(db, write.partition, write.share, write.at)
    if found.owner != write.owner and now < found.until:
        return Refused(
            Reason.LEASE_HELD,
            f"{found.owner} enforces partition {write.partition}",
            write.at + found.until - now,
        )
    know_partition(db, write.partition)
    _write(db, found._replace(owner=write.owner, epoch=found.epoch + 1, until=now + write.seconds))
    return found.epoch + 1


def keep_lease(db: Session, write: KeepLease) -> float:
    """Check that no other process has taken the lease since, renew it, and return its remaining seconds."""
    found, now = _at(db, write.partition, write.share, write.at)
    if found.epoch != write.epoch:
        raise LeaseLostError(write.partition, write.epoch, found.epoch, found.owner)
    left = found.until - now
    if not write.seconds * _RENEWED_BELOW <= left <= write.seconds:  # more is left if the clock went back
        left = write.seconds
        _write(db, found._replace(until=now + left))
    return left


def return_lease(db: Session, write: ReturnLease) -> None:
    """Let others take the lease at once."""
    found = lease(db, write.partition, write.share)
    if found.epoch == write.epoch:
        _write(db, found._replace(until=0.0))


def lease(db: Session, partition: Partition, share: int = WHOLE) -> Lease:
    """The newest lease of a share; one without an owner, with epoch 0, before the first.

    Raises:
        DamagedError: its row is damaged.
    """
    row = db.execute(_FIND, (partition, share)).fetchone()
    return Lease(partition, share) if row is None else Lease(*LEASE.read(row))


def _at(db: Session, partition: Partition, share: int, at: float) -> tuple[Lease, float]:
    """The newest lease of a share, and the time, in one round trip."""
    now, *row = db.execute(_find_at(db.now()), {"at": at, "partition": partition, "share": share}).fetchone()
    found = Lease(partition, share) if row[0] is None else Lease(*LEASE.read(tuple(row)))
    return found, now


@functools.cache
def _find_at(now: str) -> str:
    return (
        f"SELECT clock.now, {LEASE.names('lease')} FROM (SELECT {now} AS now) clock"  # noqa: S608
        " LEFT JOIN lease ON lease.partition = :partition AND lease.share = :share"
    )


def _write(db: Session, found: Lease) -> None:
    db.noted.rows.pop(("lease", found.partition), None)
    db.execute(_REPLACE, LEASE.sealed(*found))
