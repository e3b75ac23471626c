"""Decisions, standings, controls, the ledger: writing and reading."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.decision import Condition, Decision, Reservation
from lehr.model.operation import LedgerEntry, Operation
from lehr.store.interface import Standing
from lehr.store.sqlite.admission import usage
from lehr.store.sqlite.connection import translated
from lehr.store.sqlite.retention import is_pruned, prunable
from lehr.store.writes import (
    Audit,
    KeepLease,
    LeaseLostError,
    LiftControl,
    Prune,
    Pruned,
    Record,
    RecordAttempt,
    Refused,
    SetControl,
    TakeLease,
    Touch,
)

_operation = msgspec.json.Decoder(Operation)
_decision = msgspec.json.Decoder(Decision)
_condition = msgspec.json.Decoder(Condition)
_control = msgspec.json.Decoder(Control)
_ledger = msgspec.json.Decoder(LedgerEntry)
_attempt = msgspec.json.Decoder(Attempt)
_audit = msgspec.json.Decoder(AuditEntry)


def record(db: sqlite3.Connection, write: Record) -> None:
    """Append a decision; it is also the asset's standing now."""
    decision = write.decision
    condition = decision.condition
    db.execute(
        "INSERT INTO decision (partition, asset, body) VALUES (?, ?, ?)",
        (decision.partition, decision.asset, msgspec.json.encode(decision)),
    )
    db.execute(
        "INSERT INTO standing (partition, asset, key, since, condition) VALUES (?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT DO UPDATE SET condition = ?5,"
        " since = CASE WHEN key = ?3 THEN since ELSE ?4 END, key = ?3",
        (
            decision.partition,
            decision.asset,
            condition.key(),
            decision.at,
            msgspec.json.encode(condition),
        ),
    )


def record_attempt(db: sqlite3.Connection, write: RecordAttempt) -> None:
    """Replace the last attempt to publish."""
    db.execute("INSERT OR IGNORE INTO partition (name) VALUES (?)", (write.attempt.partition,))
    db.execute(
        "INSERT OR REPLACE INTO attempt (partition, body) VALUES (?, ?)",
        (write.attempt.partition, msgspec.json.encode(write.attempt)),
    )


def touch(db: sqlite3.Connection, write: Touch) -> None:
    """The same standing, due at another time."""
    db.execute(
        "UPDATE standing SET condition = ? WHERE partition = ? AND asset = ?",
        (msgspec.json.encode(write.condition), write.key.partition, write.key.id),
    )


def set_control(db: sqlite3.Connection, write: SetControl) -> Refused | None:
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


def lift_control(db: sqlite3.Connection, write: LiftControl) -> bool:
    """Take a person's word back; it stays in the table as history."""
    changed = db.execute(
        "UPDATE control SET lifted_at = ? WHERE id = ? AND partition = ? AND lifted_at IS NULL",
        (write.at, write.id, write.partition),
    ).rowcount
    _raise_version(db, write.partition)
    return changed > 0


def _raise_version(db: sqlite3.Connection, partition: Partition) -> None:
    db.execute("INSERT OR IGNORE INTO partition (name) VALUES (?)", (partition,))
    db.execute("UPDATE partition SET controls = controls + 1 WHERE name = ?", (partition,))


def take_lease(db: sqlite3.Connection, write: TakeLease) -> int:
    """Raise the epoch and return it."""
    db.execute("INSERT OR IGNORE INTO partition (name) VALUES (?)", (write.partition,))
    row = db.execute(
        "UPDATE partition SET epoch = epoch + 1 WHERE name = ? RETURNING epoch", (write.partition,)
    ).fetchone()
    return int(row[0])


def keep_lease(db: sqlite3.Connection, write: KeepLease) -> None:
    """See that nobody has taken the lease since."""
    row = db.execute("SELECT epoch FROM partition WHERE name = ?", (write.partition,)).fetchone()
    epoch = 0 if row is None else int(row[0])
    if epoch != write.epoch:
        raise LeaseLostError(
            f"another control plane has taken over partition {write.partition}",
            why=f"its lease has epoch {epoch}, this one's had {write.epoch}",
            fix="leave it to the other one, or end that and start this one again",
        )


def audit(db: sqlite3.Connection, write: Audit) -> None:
    """Append a command to the audit trail."""
    db.execute(
        "INSERT INTO audit (partition, body) VALUES (?, ?)",
        (write.partition, msgspec.json.encode(write.entry)),
    )


class SqliteRecords:
    """`lehr.store.Records` over a connection of its own."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def controls(self, partition: Partition, now: float) -> tuple[int, list[Control]]:
        with translated(self._path):
            row = self._db.execute("SELECT controls FROM partition WHERE name = ?", (partition,)).fetchone()
            rows = self._db.execute(
                "SELECT body FROM control WHERE partition = ? AND lifted_at IS NULL"
                " AND (expires_at IS NULL OR expires_at > ?) ORDER BY id",
                (partition, now),
            ).fetchall()
            return (row[0] if row else 0), [_control.decode(body) for (body,) in rows]

    def open_operations(self, partition: Partition) -> list[Operation]:
        with translated(self._path):
            rows = self._db.execute(
                "SELECT body FROM operation WHERE partition = ? AND open = 1 ORDER BY asset", (partition,)
            ).fetchall()
            return [_operation.decode(body) for (body,) in rows]

    def operations(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100
    ) -> list[Operation]:
        of_all = "SELECT body FROM operation WHERE partition = ? ORDER BY id DESC LIMIT ?"
        of_one = "SELECT body FROM operation WHERE partition = ? AND asset = ? ORDER BY id DESC LIMIT ?"
        with translated(self._path):
            rows = (
                self._db.execute(of_all, (partition, limit))
                if asset is None
                else self._db.execute(of_one, (partition, asset, limit))
            ).fetchall()
            return [_operation.decode(body) for (body,) in rows]

    def ledger(self, key: AssetKey) -> LedgerEntry | None:
        with translated(self._path):
            row = self._db.execute(
                "SELECT body FROM ledger WHERE partition = ? AND asset = ?", (key.partition, key.id)
            ).fetchone()
            return _ledger.decode(row[0]) if row else None

    def ledgers(self, partition: Partition) -> Iterator[LedgerEntry]:
        with translated(self._path):
            rows = self._db.execute(
                "SELECT body FROM ledger WHERE partition = ? ORDER BY asset", (partition,)
            )
            yield from (_ledger.decode(body) for (body,) in rows)

    def standing(self, key: AssetKey) -> Standing | None:
        with translated(self._path):
            row = self._db.execute(
                "SELECT asset, condition, since, key FROM standing WHERE partition = ? AND asset = ?",
                (key.partition, key.id),
            ).fetchone()
            return _standing(row) if row else None

    def standings(self, partition: Partition) -> Iterator[Standing]:
        with translated(self._path):
            rows = self._db.execute(
                "SELECT asset, condition, since, key FROM standing WHERE partition = ? ORDER BY asset",
                (partition,),
            )
            yield from map(_standing, rows)

    def decisions(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100
    ) -> list[tuple[int, Decision]]:
        of_all = "SELECT number, body FROM decision WHERE partition = ? ORDER BY number DESC LIMIT ?"
        of_one = (
            "SELECT number, body FROM decision WHERE partition = ? AND asset = ? ORDER BY number DESC LIMIT ?"
        )
        with translated(self._path):
            rows = (
                self._db.execute(of_all, (partition, limit))
                if asset is None
                else self._db.execute(of_one, (partition, asset, limit))
            ).fetchall()
            return [(number, _decision.decode(body)) for number, body in rows]

    def usage(self, reservation: Reservation, now: float) -> tuple[int, float | None]:
        with translated(self._path):
            return usage(self._db, reservation, now)

    def attempt(self, partition: Partition) -> Attempt | None:
        with translated(self._path):
            row = self._db.execute("SELECT body FROM attempt WHERE partition = ?", (partition,)).fetchone()
            return _attempt.decode(row[0]) if row else None

    def prunable(self, write: Prune) -> Pruned:
        with translated(self._path):
            return prunable(self._db, write)

    def audit(self, partition: Partition, limit: int = 100) -> list[AuditEntry]:
        with translated(self._path):
            rows = self._db.execute(
                "SELECT body FROM audit WHERE partition = ? ORDER BY number DESC LIMIT ?", (partition, limit)
            ).fetchall()
            return [_audit.decode(body) for (body,) in rows]


def _standing(row: tuple[AssetId, bytes, float, Digest]) -> Standing:
    return Standing(row[0], _condition.decode(row[1]), row[2], row[3])
