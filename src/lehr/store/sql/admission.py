"""Admission: the one transaction in which a push is allowed to start, and the one that ends it.

Invariants kept here: I3 (no push without admission), I5 (one push in flight per asset), I12
(a started operation is never forgotten).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lehr.base.digest import Digest
from lehr.model.admission import PartitionRow, holder, refusal
from lehr.model.asset import AssetId, Partition
from lehr.model.control import Control
from lehr.model.damage import DamagedError
from lehr.model.decision import Reservation
from lehr.model.feed import ChangeKind
from lehr.model.lease import Lease
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Finish, Refused
from lehr.store.sql.leases import lease
from lehr.store.sql.partitions import partition_row
from lehr.store.sql.releases import released_since
from lehr.store.sql.session import Session
from lehr.store.sql.tables import CONTROL, CURRENT, LEDGER, OPERATION, RESERVATION

_FIND_CURRENT = f"SELECT {CURRENT.names()} FROM asset_current WHERE partition = ? AND id = ?"  # noqa: S608
_FIND_OPERATION = f"SELECT {OPERATION.names()} FROM operation WHERE id = ?"  # noqa: S608
_FIND_NEWEST = f"""
    SELECT {OPERATION.names()} FROM operation WHERE partition = :partition AND asset = :asset AND open = 1
  UNION ALL
    SELECT * FROM (SELECT {OPERATION.names()} FROM operation WHERE partition = :partition AND asset = :asset
                   ORDER BY number DESC LIMIT 1) newest
"""  # noqa: S608
_FIND_SHARES = f"SELECT {RESERVATION.names()} FROM reservation WHERE key = ?"  # noqa: S608
_FIND_HELD = f"SELECT {RESERVATION.names()} FROM reservation WHERE operation = ? AND until IS NULL"  # noqa: S608
_FIND_CONTROLS = f"SELECT {CONTROL.names()} FROM control ORDER BY number"  # noqa: S608
_FIND_CHANGED_CONTROLS = f"SELECT {CONTROL.names()} FROM control WHERE partition = ? AND changed > ?"  # noqa: S608
_ENTER = (
    f"{LEDGER.insert} ON CONFLICT (partition, asset) DO UPDATE SET content = excluded.content,"
    " goal = excluded.goal, body = excluded.body, checksum = excluded.checksum"
)

_control = msgspec.json.Decoder(Control).decode


def admit(db: Session, write: Admit) -> Refused | None:
    """Start `write.operation` if everything that its verdicts relied on still holds."""
    try:
        refused = refusal(write, _Rows(db))
    except DamagedError as error:
        # What this push relies on cannot be read: it does not start, and no other is held up.
        refused = Refused(Reason.DAMAGED, str(error))
    if refused is not None:
        return refused
    operation, body = write.operation, msgspec.json.encode(write.operation)
    number = db.next_number("operation")
    db.execute(
        OPERATION.insert,
        OPERATION.sealed(number, operation.id, operation.partition, operation.asset, 1, body),
    )
    at = float(operation.started_at)
    db.noted.add(operation.partition, ChangeKind.OPERATION_STARTED, at, operation.asset, operation.id)
    for item in write.reservations:
        # All shares of the key were verified: one that seems to be over is removed only after it was read.
        db.execute("DELETE FROM reservation WHERE key = ? AND until <= ?", (item.key, at))
        until = None if item.window is None else at + item.window
        db.execute(
            f"{RESERVATION.insert} ON CONFLICT (key, operation) DO UPDATE SET at = excluded.at,"
            " until = excluded.until, checksum = excluded.checksum",
            RESERVATION.sealed(item.key, holder(item, operation), at, until),
        )
    return None


class _Rows:
    """`lehr.model.admission.Grounds`: the rows of a transaction."""

    def __init__(self, db: Session) -> None:
        self._db = db

    def partition(self, name: Partition) -> PartitionRow:
        row: PartitionRow = self._once("partition", partition_row, name)
        return row

    def epoch(self, partition: Partition) -> int:
        found: Lease = self._once("lease", lease, partition)
        return found.epoch

    def _once(self, table: str, read: Callable[[Session, Partition], Any], partition: Partition) -> Any:
        """Read once for all admissions of a commit, until a write to the table forgets it."""
        rows = self._db.noted.rows
        found = rows.get((table, partition))
        if found is None:
            found = rows[table, partition] = read(self._db, partition)
        return found

    def newest_digest(self, partition: Partition, id: AssetId) -> Digest | None:
        row = self._db.execute(_FIND_CURRENT, (partition, id)).fetchone()
        return None if row is None else Digest(CURRENT.read(row)[3])

    def is_being_pushed(self, partition: Partition, id: AssetId) -> bool:
        """Only the newest can be under way, so it is read even if it seems to have ended.

        Raises:
            DamagedError: it is damaged, and may be under way.
        """
        rows = self._db.execute(_FIND_NEWEST, {"partition": partition, "asset": id}).fetchall()
        return any(is_open == 1 for *_key, is_open, _body in OPERATION.read_all(rows))

    def controls(self, partition: Partition, now: float) -> list[Control]:
        return active_controls(self._db, partition, now)

    def controls_changed_since(self, partition: Partition, version: int) -> list[Control]:
        rows = self._db.execute(_FIND_CHANGED_CONTROLS, (partition, version)).fetchall()
        return [_control(body) for *_columns, body in CONTROL.read_all(rows)]

    def released_since(self, partition: Partition, version: int) -> frozenset[AssetId]:
        return released_since(self._db, partition, version)

    def usage(self, limit: Reservation, now: float, but: str) -> tuple[int, float | None]:
        return usage(self._db, limit, now, but)


_LONGEST_TURN = 60.0
"""Seconds for which a turn may have lasted when its push is admitted: `now` is when it began."""


def usage(db: Session, reservation: Reservation, now: float, but: str = "") -> tuple[int, float | None]:
    """How many count against a limit at `now`, except holder `but`, and when the oldest stops counting."""
    shares = [
        at
        for _key, holder, at, until in RESERVATION.read_all(db.execute(_FIND_SHARES, (reservation.key,)))
        if holder != but and (until is None or until > now)
    ]
    if reservation.window is None:
        return len(shares), None
    # By the limit's own window: a share may count against several limits, each for its own time. A share
    # reserved further ahead of now than a turn takes comes from a clock that was set back since: it must not
    # block for as long as the clock was wrong.
    latest = now + reservation.window + max(reservation.window, _LONGEST_TURN)
    ends = [end for at in shares if now < (end := at + reservation.window) <= latest]
    return len(ends), min(ends, default=None)


def finish(db: Session, write: Finish) -> Refused | None:
    """Record how a push ended, and release what it held."""
    unknown = write.outcome.result is Result.UNKNOWN
    row = db.execute(_FIND_OPERATION, (write.operation,)).fetchone()
    if row is None:
        return Refused(Reason.DAMAGED, "no row of table operation has this id")
    if not OPERATION.is_intact(row):
        if not unknown:
            # The push is certainly over: a limit that it counted against must not hold others up.
            _release(db, write.operation)
        return Refused(Reason.DAMAGED, OPERATION.damaged(row[:-1]).why)
    number, id, partition, asset, is_open, body = row[:-1]
    if partition != write.partition:
        return Refused(Reason.DAMAGED, f"its row of table operation belongs to partition {partition}")
    if not is_open:
        return None
    operation = msgspec.json.decode(body, type=Operation)
    ended = msgspec.structs.replace(
        operation,
        result=write.outcome.result,
        message=write.outcome.message,
        ended_at=None if unknown else write.at,
        steps=operation.steps + write.steps,
    )
    values = OPERATION.sealed(number, id, partition, asset, int(unknown), msgspec.json.encode(ended))
    db.execute(
        "UPDATE operation SET open = ?, body = ?, checksum = ? WHERE number = ?", (*values[4:], number)
    )
    if not unknown:
        _release(db, operation.id)
    if write.ledger is not None:
        enter(db, write.ledger)
    kind = ChangeKind.OPERATION_UNKNOWN if unknown else ChangeKind.OPERATION_ENDED
    db.noted.add(partition, kind, write.at, asset, id)
    return None


def _release(db: Session, operation: str) -> None:
    """Release the shares that an operation held until its end.

    A damaged share may count for longer: it stays, and its limit reports it at the next admission.
    """
    held = [row for row in db.execute(_FIND_HELD, (operation,)) if RESERVATION.is_intact(row)]
    if held:
        db.executemany(
            "DELETE FROM reservation WHERE key = ? AND operation = ?", [(row[0], row[1]) for row in held]
        )


def enter(db: Session, entry: LedgerEntry) -> None:
    """Replace an asset's entry in the ledger."""
    body = msgspec.json.encode(entry)
    db.execute(_ENTER, LEDGER.sealed(entry.partition, entry.asset, entry.content, str(entry.goal), body))


def active_controls(db: Session, partition: Partition, now: float) -> list[Control]:
    """The controls active at `now`, in the order in which they were set.

    All are read, even those that seem to have ended: a damaged one may be active.

    Raises:
        DamagedError: one of them is damaged.
    """
    return [
        _control(body)
        for _number, _id, of, lifted_at, until, _changed, body in CONTROL.read_all(db.execute(_FIND_CONTROLS))
        if of == partition and lifted_at is None and (until is None or until > now)
    ]


def past_controls(db: Session, partition: Partition, at: float) -> list[Control]:
    """As `active_controls`, for those that were active at `at` and are kept."""
    found = [
        _control(body)
        for _number, _id, of, lifted_at, until, _changed, body in CONTROL.read_all(db.execute(_FIND_CONTROLS))
        if of == partition and (lifted_at is None or lifted_at > at) and (until is None or until > at)
    ]
    return [control for control in found if control.at <= at]
