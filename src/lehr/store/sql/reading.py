"""Decisions, standings, controls, the ledger: reading them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.decision import Condition, Decision, Reservation
from lehr.model.operation import LedgerEntry, Operation
from lehr.store.interface import Standing
from lehr.store.sql.admission import usage
from lehr.store.sql.retention import prunable
from lehr.store.sql.session import Reading
from lehr.store.writes import Prune, Pruned

_operation = msgspec.json.Decoder(Operation)
_decision = msgspec.json.Decoder(Decision)
_condition = msgspec.json.Decoder(Condition)
_control = msgspec.json.Decoder(Control)
_ledger = msgspec.json.Decoder(LedgerEntry)
_attempt = msgspec.json.Decoder(Attempt)
_audit = msgspec.json.Decoder(AuditEntry)


class SqlRecords:
    """`lehr.store.Records` over sessions that `reading` opens."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def controls(self, partition: Partition, now: float) -> tuple[int, list[Control]]:
        with self._reading() as db:
            row = db.execute("SELECT controls FROM partition WHERE name = ?", (partition,)).fetchone()
            rows = db.execute(
                "SELECT body FROM control WHERE partition = ? AND lifted_at IS NULL"
                " AND (expires_at IS NULL OR expires_at > ?) ORDER BY id",
                (partition, now),
            ).fetchall()
            return (row[0] if row else 0), [_control.decode(body) for (body,) in rows]

    def open_operations(self, partition: Partition) -> list[Operation]:
        with self._reading() as db:
            rows = db.execute(
                f"SELECT body FROM operation{db.by('operation_open')}"  # noqa: S608
                " WHERE partition = ? AND open = 1 ORDER BY asset",
                (partition,),
            ).fetchall()
            return [_operation.decode(body) for (body,) in rows]

    def operations(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100
    ) -> list[Operation]:
        of_all = "SELECT body FROM operation WHERE partition = ? ORDER BY id DESC LIMIT ?"
        of_one = "SELECT body FROM operation WHERE partition = ? AND asset = ? ORDER BY id DESC LIMIT ?"
        with self._reading() as db:
            rows = (
                db.execute(of_all, (partition, limit))
                if asset is None
                else db.execute(of_one, (partition, asset, limit))
            ).fetchall()
            return [_operation.decode(body) for (body,) in rows]

    def ledger(self, key: AssetKey) -> LedgerEntry | None:
        with self._reading() as db:
            row = db.execute(
                "SELECT body FROM ledger WHERE partition = ? AND asset = ?", (key.partition, key.id)
            ).fetchone()
            return _ledger.decode(row[0]) if row else None

    def ledgers(self, partition: Partition) -> Iterator[LedgerEntry]:
        with self._reading() as db:
            rows = db.stream("SELECT body FROM ledger WHERE partition = ? ORDER BY asset", (partition,))
            yield from (_ledger.decode(body) for (body,) in rows)

    def standing(self, key: AssetKey) -> Standing | None:
        with self._reading() as db:
            row = db.execute(
                "SELECT asset, condition, since, key FROM standing WHERE partition = ? AND asset = ?",
                (key.partition, key.id),
            ).fetchone()
            return _standing(row) if row else None

    def standings(self, partition: Partition) -> Iterator[Standing]:
        with self._reading() as db:
            rows = db.stream(
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
        with self._reading() as db:
            rows = (
                db.execute(of_all, (partition, limit))
                if asset is None
                else db.execute(of_one, (partition, asset, limit))
            ).fetchall()
            return [(number, _decision.decode(body)) for number, body in rows]

    def usage(self, reservation: Reservation, now: float) -> tuple[int, float | None]:
        with self._reading() as db:
            return usage(db, reservation, now)

    def attempt(self, partition: Partition) -> Attempt | None:
        with self._reading() as db:
            row = db.execute("SELECT body FROM attempt WHERE partition = ?", (partition,)).fetchone()
            return _attempt.decode(row[0]) if row else None

    def prunable(self, write: Prune) -> Pruned:
        with self._reading() as db:
            return prunable(db, write)

    def audit(self, partition: Partition, limit: int = 100) -> list[AuditEntry]:
        with self._reading() as db:
            rows = db.execute(
                "SELECT body FROM audit WHERE partition = ? ORDER BY number DESC LIMIT ?", (partition, limit)
            ).fetchall()
            return [_audit.decode(body) for (body,) in rows]


def _standing(row: tuple[Any, ...]) -> Standing:
    return Standing(row[0], _condition.decode(row[1]), row[2], row[3])
