"""Admission: the one transaction in which a push is allowed to start, and its end.

Invariants kept here: I3 (no push without admission), I5 (one push in flight per asset), I12
(a started operation is never forgotten).
"""

from __future__ import annotations

import msgspec

from lehr.model.control import Control, ControlKind
from lehr.model.decision import Reservation
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.store.sql.session import Session
from lehr.store.writes import Admit, Finish, Refused


def admit(db: Session, write: Admit) -> Refused | None:
    """Start `write.operation` if everything its verdicts rested on still holds."""
    refused = _changed_basis(db, write) or _missing_approval(db, write) or _no_room(db, write)
    if refused is not None:
        return refused
    operation = write.operation
    db.execute(
        "INSERT INTO operation (id, partition, asset, open, body) VALUES (?, ?, ?, 1, ?)",
        (operation.id, operation.partition, operation.asset, msgspec.json.encode(operation)),
    )
    for item in write.reservations:
        until = None if item.window is None else operation.started_at + item.window
        db.execute(
            "INSERT INTO reservation (key, operation, at, until) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (key, operation) DO UPDATE SET at = excluded.at, until = excluded.until",
            (item.key, _holder(item, operation), operation.started_at, until),
        )
    return None


def _changed_basis(db: Session, write: Admit) -> Refused | None:
    operation, basis = write.operation, write.basis
    state = db.execute(
        "SELECT newest, governance, controls, epoch FROM partition WHERE name = ?", (operation.partition,)
    ).fetchone()
    newest, governance, controls, epoch = state or (0, "", 0, 0)
    if epoch != operation.epoch:
        return Refused(
            "LeaseLost", f"the lease has epoch {epoch}, not {operation.epoch}: another writer took over"
        )
    if governance != basis.governance:
        return Refused("GovernanceChanged", "checks, limits or freezes were changed by a new incarnation")
    if controls != basis.controls:
        return Refused("ControlsChanged", "a person paused, froze, pinned, approved or overrode something")
    if _newest_digest(db, operation.partition, operation.asset) != basis.newest_digest:
        return Refused("Overtaken", "a new incarnation changed this asset")
    for id, expected in basis.looked_at:
        if _newest_digest(db, operation.partition, id) != expected:
            return Refused(
                "DependencyChanged", f"a new incarnation changed {id}, which this asset depends on"
            )
        if _has_open_operation(db, operation.partition, id):
            return Refused("DependencyBusy", f"{id}, which this asset depends on, is being pushed")
    if operation.goal is not Goal.PRESENT and newest != operation.governing:
        # Invariant: I4. That nothing refers to the asset was read from the governing incarnation.
        return Refused(
            "Overtaken",
            f"incarnation {newest} is newer than {operation.governing}, and may refer to this asset",
        )
    if _has_open_operation(db, operation.partition, operation.asset):
        return Refused("InFlight", "a push of this asset is under way")
    return None


def _newest_digest(db: Session, partition: str, id: str) -> str | None:
    row = db.execute(
        "SELECT digest FROM asset_current WHERE partition = ? AND id = ?", (partition, id)
    ).fetchone()
    return row[0] if row else None


def _has_open_operation(db: Session, partition: str, id: str) -> bool:
    row = db.execute(
        "SELECT 1 FROM operation WHERE partition = ? AND asset = ? AND open = 1", (partition, id)
    ).fetchone()
    return row is not None


def _missing_approval(db: Session, write: Admit) -> Refused | None:
    if not write.approval:
        return None
    operation = write.operation
    rows = db.execute(
        "SELECT body FROM control WHERE partition = ? AND lifted_at IS NULL", (operation.partition,)
    )
    for (body,) in rows:
        control = msgspec.json.decode(body, type=Control)
        if (
            control.kind is ControlKind.APPROVAL
            and control.diff_digest == operation.diff_digest
            and control.selector.ids == (operation.asset,)
            and control.stands(operation.started_at)
        ):
            return None
    return Refused("ApprovalMissing", "no approval stands for exactly this diff")


def _holder(item: Reservation, operation: Operation) -> str:
    """Whose share it is: the push's, or its asset's, which then has one however often it is tried."""
    return f"{operation.partition}:{operation.asset}" if item.once else operation.id


def _no_room(db: Session, write: Admit) -> Refused | None:
    now, operation = write.operation.started_at, write.operation
    for item in write.reservations:
        db.execute("DELETE FROM reservation WHERE key = ? AND until <= ?", (item.key, now))
        used, until = usage(db, item, now, but=_holder(item, operation))
        if used >= item.limit:
            return Refused("LimitReached", f"{used} of {item.limit} are taken of {item.key}", until)
    return None


def usage(db: Session, reservation: Reservation, now: float, but: str = "") -> tuple[int, float | None]:
    """How many count against a limit at `now`, `but` this holder, and when the oldest stops to."""
    # What was reserved more than a window ahead of now comes from a clock that was set back since:
    # it must not block for as long as the clock was wrong.
    ahead = now + 2 * (reservation.window or 0.0)
    row = db.execute(
        "SELECT count(*), min(until) FROM reservation"
        " WHERE key = ? AND operation != ? AND (until IS NULL OR (until > ? AND until <= ?))",
        (reservation.key, but, now, ahead),
    ).fetchone()
    return int(row[0]), row[1]


def finish(db: Session, write: Finish) -> None:
    """Write down how a push ended; release what it held."""
    row = db.execute("SELECT body FROM operation WHERE id = ? AND open = 1", (write.operation,)).fetchone()
    if row is None:
        return
    operation = msgspec.json.decode(row[0], type=Operation)
    unknown = write.outcome.result is Result.UNKNOWN
    ended = msgspec.structs.replace(
        operation,
        result=write.outcome.result,
        message=write.outcome.message,
        ended_at=None if unknown else write.at,
    )
    db.execute(
        "UPDATE operation SET open = ?, body = ? WHERE id = ?",
        (int(unknown), msgspec.json.encode(ended), operation.id),
    )
    if not unknown:
        db.execute("DELETE FROM reservation WHERE operation = ? AND until IS NULL", (operation.id,))
    if write.ledger is not None:
        enter(db, write.ledger)


def enter(db: Session, entry: LedgerEntry) -> None:
    """Replace an asset's entry in the ledger."""
    db.execute(
        "INSERT INTO ledger (partition, asset, body) VALUES (?, ?, ?)"
        " ON CONFLICT (partition, asset) DO UPDATE SET body = excluded.body",
        (entry.partition, entry.asset, msgspec.json.encode(entry)),
    )
