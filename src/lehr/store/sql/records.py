"""Decisions, standings, controls, leases, the audit trail: writing them."""

from __future__ import annotations

import msgspec

from lehr.model.asset import Partition
from lehr.store.sql.retention import is_pruned
from lehr.store.sql.session import Session
from lehr.store.writes import (
    Audit,
    KeepLease,
    LeaseLostError,
    LiftControl,
    Record,
    RecordAttempt,
    Refused,
    SetControl,
    TakeLease,
    Touch,
)


def record(db: Session, write: Record) -> None:
    """Append a decision; it is also the asset's standing now."""
    decision = write.decision
    condition = decision.condition
    db.execute(
        "INSERT INTO decision (partition, asset, body) VALUES (?, ?, ?)",
        (decision.partition, decision.asset, msgspec.json.encode(decision)),
    )
    db.execute(
        "INSERT INTO standing (partition, asset, key, since, condition) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (partition, asset) DO UPDATE SET condition = excluded.condition,"
        " since = CASE WHEN standing.key = excluded.key THEN standing.since ELSE excluded.since END,"
        " key = excluded.key",
        (
            decision.partition,
            decision.asset,
            condition.key(),
            decision.at,
            msgspec.json.encode(condition),
        ),
    )


def record_attempt(db: Session, write: RecordAttempt) -> None:
    """Replace the last attempt to publish."""
    db.execute("INSERT INTO partition (name) VALUES (?) ON CONFLICT DO NOTHING", (write.attempt.partition,))
    db.execute(
        "INSERT INTO attempt (partition, body) VALUES (?, ?)"
        " ON CONFLICT (partition) DO UPDATE SET body = excluded.body",
        (write.attempt.partition, msgspec.json.encode(write.attempt)),
    )


def touch(db: Session, write: Touch) -> None:
    """The same standing, due at another time."""
    db.execute(
        "UPDATE standing SET condition = ? WHERE partition = ? AND asset = ?",
        (msgspec.json.encode(write.condition), write.key.partition, write.key.id),
    )


def set_control(db: Session, write: SetControl) -> Refused | None:
    """Keep a person's word."""
    control = write.control
    if control.incarnation is not None and is_pruned(db, control.partition, control.incarnation):
        return Refused("Pruned", f"incarnation {control.partition}@{control.incarnation} is pruned")
    db.execute(
        "INSERT INTO control (id, partition, expires_at, body) VALUES (?, ?, ?, ?)",
        (control.id, control.partition, control.expires_at, msgspec.json.encode(control)),
    )
    _raise_version(db, control.partition)
    return None


def lift_control(db: Session, write: LiftControl) -> bool:
    """Take a person's word back; it stays in the table as history."""
    changed = db.execute(
        "UPDATE control SET lifted_at = ? WHERE id = ? AND partition = ? AND lifted_at IS NULL",
        (write.at, write.id, write.partition),
    ).rowcount
    _raise_version(db, write.partition)
    return changed > 0


def _raise_version(db: Session, partition: Partition) -> None:
    db.execute("INSERT INTO partition (name) VALUES (?) ON CONFLICT DO NOTHING", (partition,))
    db.execute("UPDATE partition SET controls = controls + 1 WHERE name = ?", (partition,))


def take_lease(db: Session, write: TakeLease) -> int:
    """Raise the epoch and return it."""
    db.execute("INSERT INTO partition (name) VALUES (?) ON CONFLICT DO NOTHING", (write.partition,))
    row = db.execute(
        "UPDATE partition SET epoch = epoch + 1 WHERE name = ? RETURNING epoch", (write.partition,)
    ).fetchone()
    return int(row[0])


def keep_lease(db: Session, write: KeepLease) -> None:
    """See that nobody has taken the lease since."""
    row = db.execute("SELECT epoch FROM partition WHERE name = ?", (write.partition,)).fetchone()
    epoch = 0 if row is None else int(row[0])
    if epoch != write.epoch:
        raise LeaseLostError(
            f"another control plane has taken over partition {write.partition}",
            why=f"its lease has epoch {epoch}, this one's had {write.epoch}",
            fix="leave it to the other one, or end that and start this one again",
        )


def audit(db: Session, write: Audit) -> None:
    """Append a command to the audit trail."""
    db.execute(
        "INSERT INTO audit (partition, body) VALUES (?, ?)",
        (write.partition, msgspec.json.encode(write.entry)),
    )
