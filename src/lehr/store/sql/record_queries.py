"""Reads decisions, standings, controls and the ledger."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.decision import SETTLED, Condition, Decision, Reservation, Status, Verdict
from lehr.model.evidence import Evidence
from lehr.model.feed import FeedEntry
from lehr.model.handle import Handle
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.release import Release, Released
from lehr.model.writes import Prune, Pruned
from lehr.sdk.store import DamagedOperation, Head, Standing, StandingCount, Unsettled
from lehr.store.sql.admission import active_controls, past_controls, usage
from lehr.store.sql.evidence import evidence
from lehr.store.sql.feed import entries, newest_position
from lehr.store.sql.partitions import partition_row
from lehr.store.sql.releases import released, releases
from lehr.store.sql.retention import prunable
from lehr.store.sql.rows import heads_of
from lehr.store.sql.session import OpenSession, Session
from lehr.store.sql.tables import (
    ATTEMPT,
    AUDIT,
    CONDITION,
    CURRENT,
    DECISION,
    HANDLE,
    LEDGER,
    OPERATION,
    OUTPUTS,
    STANDING,
    Table,
)


class _Waits(msgspec.Struct, frozen=True):
    """The part of a decision that names the things that the asset waits for."""

    awaits: tuple[AssetId, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


_operation = msgspec.json.Decoder(Operation)
_decision = msgspec.json.Decoder(Decision)
_waits = msgspec.json.Decoder(_Waits)
_condition = msgspec.json.Decoder(Condition)
_ledger = msgspec.json.Decoder(LedgerEntry)
_handle = msgspec.json.Decoder(Handle)
_outputs = msgspec.json.Decoder(Outputs)
_attempt = msgspec.json.Decoder(Attempt)
_audit = msgspec.json.Decoder(AuditEntry)

_FIND_LEDGER = f"SELECT {LEDGER.names()} FROM ledger WHERE partition = ? AND asset = ?"  # noqa: S608
_FIND_LEDGERS = f"SELECT {LEDGER.names()} FROM ledger WHERE partition = ? ORDER BY asset"  # noqa: S608
_FIND_HANDLE = f"SELECT {HANDLE.names()} FROM handle WHERE partition = ? AND asset = ?"  # noqa: S608
_FIND_HANDLES = f"SELECT {HANDLE.names()} FROM handle WHERE partition = ? ORDER BY asset"  # noqa: S608
_FIND_OUTPUTS_OF = f"SELECT {OUTPUTS.names()} FROM outputs WHERE partition = ? AND asset = ?"  # noqa: S608
_FIND_OUTPUTS = f"SELECT {OUTPUTS.names()} FROM outputs WHERE partition = ? ORDER BY asset"  # noqa: S608
_FIND_ATTEMPT = f"SELECT {ATTEMPT.names()} FROM attempt WHERE partition = ?"  # noqa: S608
_FIND_NUMBER = "SELECT number FROM operation WHERE partition = ? AND id = ?"
_FIND_OPERATION = f"SELECT {OPERATION.names()} FROM operation WHERE partition = ? AND id = ?"  # noqa: S608
_FIND_DECISION = f"SELECT {DECISION.names()} FROM decision WHERE partition = ? AND number = ?"  # noqa: S608
_STANDS = f"SELECT {STANDING.names()}, {CONDITION.names()} FROM standing WHERE partition = ?"  # noqa: S608
_FIND_STANDING = f"{_STANDS} AND asset = ?"
_FIND_STANDINGS = f"{_STANDS} ORDER BY asset"

# By the first bytes of the document, which is many times faster than reading it.
_SETTLED = tuple(f'{{"status":"{status}",'.encode() for status in SETTLED)
_HELD_BACK = f'{{"status":"{Status.CONVERGED}","reason":"{Reason.AWAITING_RELEASE}",'.encode()
_BEGIN_LENGTH = 80
_BEGIN = re.compile(r'\{"status":"(\w+)","reason":"([^"]*)')
_BEGINS = "substr(s.condition, 1, {length}) = ?"
_NOT_SETTLED = " AND ".join(f"NOT {_BEGINS.format(length=len(begin))}" for begin in _SETTLED)
_FIND_UNSETTLED = f"""
    SELECT {STANDING.names("s")}, {CONDITION.names("s")}, {DECISION.names("d")}
      FROM standing s
      LEFT JOIN decision d ON d.number = (
           SELECT max(number) FROM decision WHERE partition = s.partition AND asset = s.asset)
     WHERE s.partition = ? AND (({_NOT_SETTLED}) OR {_BEGINS.format(length=len(_HELD_BACK))})
     ORDER BY s.asset
"""  # noqa: S608 - our own names
# Counted here: for SQL to group them, it would sort them first.
_FIND_BEGINS = f"SELECT substr(condition, 1, {_BEGIN_LENGTH}) FROM standing WHERE partition = ?"  # noqa: S608
_FIND_WITHOUT_TURN = f"""
    SELECT {CURRENT.names("c")} FROM asset_current c
     WHERE c.partition = ?
       AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.partition = c.partition AND s.asset = c.id)
     ORDER BY c.id
"""  # noqa: S608 - our own names


class SqlRecords:
    """`lehr.sdk.store.Records` over sessions that `reading` opens."""

    def __init__(self, reading: OpenSession) -> None:
        self._reading = reading

    def controls(self, partition: Partition, now: float) -> tuple[int, list[Control]]:
        with self._reading() as db:
            return partition_row(db, partition).controls, active_controls(db, partition, now)

    def past_controls(self, partition: Partition, at: float) -> list[Control]:
        with self._reading() as db:
            return past_controls(db, partition, at)

    def released(self, partition: Partition, since: int = 0) -> tuple[int, list[Released]]:
        with self._reading() as db:
            return partition_row(db, partition).releases, released(db, partition, since)

    def releases(self, key: AssetKey, limit: int = 100) -> list[Release]:
        with self._reading() as db:
            return releases(db, key, limit)

    def evidence(self, partition: Partition, after: int = 0, limit: int = 1000) -> list[Evidence]:
        with self._reading() as db:
            return evidence(db, partition, after, limit)

    def damaged_operations(self, partition: Partition) -> list[DamagedOperation]:
        with self._reading() as db:
            rows = db.stream(_maybe_open(db), {"partition": partition})
            return [_damaged(row) for row in rows if not OPERATION.is_intact(row)]

    def open_operations(self, partition: Partition) -> list[Operation]:
        with self._reading() as db:
            rows = db.execute(
                f"SELECT {OPERATION.names()} FROM operation{db.by('operation_open')}"  # noqa: S608
                " WHERE partition = ? AND open = 1 ORDER BY asset",
                (partition,),
            ).fetchall()
            return [_operation.decode(row[5]) for row in rows if OPERATION.is_intact(row)]

    def operation(self, partition: Partition, id: str) -> Operation | None:
        with self._reading() as db:
            row = db.execute(_FIND_OPERATION, (partition, id)).fetchone()
            return None if row is None else _operation.decode(OPERATION.read(row)[5])

    def operations(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100, before: str = ""
    ) -> list[Operation]:
        with self._reading() as db:
            number = None
            if before:
                row = db.execute(_FIND_NUMBER, (partition, before)).fetchone()
                if row is None:
                    return []
                [number] = row
            rows = _newest(db, OPERATION, partition, asset, limit, number)
            return [_operation.decode(row[5]) for row in rows]

    def ledger(self, key: AssetKey) -> LedgerEntry | None:
        with self._reading() as db:
            row = db.execute(_FIND_LEDGER, (key.partition, key.id)).fetchone()
            return None if row is None else _ledger.decode(LEDGER.read(row)[4])

    def ledgers(self, partition: Partition) -> Iterator[LedgerEntry]:
        with self._reading() as db:
            rows = db.stream(_FIND_LEDGERS, (partition,))
            yield from (_ledger.decode(row[4]) for row in LEDGER.read_all(rows))

    def handle(self, key: AssetKey) -> Handle | None:
        with self._reading() as db:
            row = db.execute(_FIND_HANDLE, (key.partition, key.id)).fetchone()
            return None if row is None else _handle.decode(HANDLE.read(row)[2])

    def handles(self, partition: Partition) -> Iterator[Handle]:
        with self._reading() as db:
            rows = db.stream(_FIND_HANDLES, (partition,))
            yield from (_handle.decode(row[2]) for row in HANDLE.read_all(rows))

    def outputs_of(self, key: AssetKey) -> Outputs | None:
        with self._reading() as db:
            row = db.execute(_FIND_OUTPUTS_OF, (key.partition, key.id)).fetchone()
            return None if row is None else _outputs.decode(OUTPUTS.read(row)[2])

    def outputs(self, partition: Partition) -> Iterator[Outputs]:
        with self._reading() as db:
            rows = db.stream(_FIND_OUTPUTS, (partition,))
            yield from (_outputs.decode(row[2]) for row in OUTPUTS.read_all(rows))

    def standing(self, key: AssetKey) -> Standing | None:
        with self._reading() as db:
            row = db.execute(_FIND_STANDING, (key.partition, key.id)).fetchone()
            return _standing(row) if row else None

    def standings(self, partition: Partition) -> Iterator[Standing]:
        with self._reading() as db:
            yield from map(_standing, db.stream(_FIND_STANDINGS, (partition,)))

    def standing_counts(self, partition: Partition) -> list[StandingCount]:
        with self._reading() as db:
            begins = Counter(bytes(begin) for (begin,) in db.stream(_FIND_BEGINS, (partition,)))
        found: Counter[tuple[str, str]] = Counter()
        for begin, count in begins.items():
            if match := _BEGIN.match(begin.decode(errors="replace")):
                found[match[1], match[2]] += count
        ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [StandingCount(Status(status), reason, count) for (status, reason), count in ordered]

    def unsettled(self, partition: Partition) -> Iterator[Unsettled]:
        with self._reading() as db:
            yield from map(_unsettled, db.stream(_FIND_UNSETTLED, (partition, *_SETTLED, _HELD_BACK)))

    def without_turn(self, partition: Partition) -> list[Head]:
        with self._reading() as db:
            return list(heads_of(db.stream(_FIND_WITHOUT_TURN, (partition,))))

    def decisions(
        self, partition: Partition, asset: AssetId | None = None, limit: int = 100, before: int = 0
    ) -> list[tuple[int, Decision]]:
        with self._reading() as db:
            rows = _newest(db, DECISION, partition, asset, limit, before or None)
            return [(row[0], _decision.decode(row[3])) for row in rows]

    def decision(self, partition: Partition, number: int) -> tuple[Decision, bytes] | None:
        with self._reading() as db:
            row = db.execute(_FIND_DECISION, (partition, number)).fetchone()
            if row is None:
                return None
            _number, _partition, _asset, body, inputs = DECISION.read(row)
            return _decision.decode(body), bytes(inputs)

    def usage(self, reservation: Reservation, now: float, but: str = "") -> tuple[int, float | None]:
        with self._reading() as db:
            return usage(db, reservation, now, but)

    def position(self, partition: Partition) -> int:
        with self._reading() as db:
            return newest_position(db, partition)

    def feed(self, partition: Partition, after: int, limit: int = 100) -> list[FeedEntry]:
        with self._reading() as db:
            return entries(db, partition, after, limit)

    def attempt(self, partition: Partition) -> Attempt | None:
        with self._reading() as db:
            row = db.execute(_FIND_ATTEMPT, (partition,)).fetchone()
            return None if row is None else _attempt.decode(ATTEMPT.read(row)[1])

    def prunable(self, write: Prune) -> Pruned:
        with self._reading() as db:
            return prunable(db, write)

    def audit(
        self, partition: Partition, limit: int = 100, before: int | None = None
    ) -> list[tuple[int, AuditEntry]]:
        with self._reading() as db:
            rows = _newest(db, AUDIT, partition, None, limit, before)
            return [(row[0], _audit.decode(row[2])) for row in rows]


def _newest(
    db: Session,
    table: Table,
    partition: Partition,
    asset: AssetId | None,
    limit: int,
    before: int | None = None,
) -> list[tuple[Any, ...]]:
    """The rows that were written last, newest first: by the store's own numbers, never by a clock."""
    bounds = {" AND asset = ?": asset, " AND number < ?": before}
    given = {clause: value for clause, value in bounds.items() if value is not None}
    rows = db.execute(
        f"SELECT {table.names()} FROM {table.name} WHERE partition = ?{''.join(given)}"  # noqa: S608
        " ORDER BY number DESC LIMIT ?",
        (partition, *given.values(), limit),
    ).fetchall()
    return list(table.read_all(rows))


def _maybe_open(db: Session) -> str:
    """The newest operation of each asset, and those marked as open."""
    return f"""
    SELECT {OPERATION.names()} FROM operation WHERE number IN (
        SELECT max(number) FROM operation WHERE partition = :partition GROUP BY asset
      UNION ALL
        SELECT number FROM operation{db.by("operation_open")} WHERE partition = :partition AND open = 1)
"""  # noqa: S608 - our own names


def _damaged(row: tuple[Any, ...]) -> DamagedOperation:
    """The damaged part may be the asset's id: the body holds it as well."""
    found = [AssetId(row[3])]
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, TypeError):
        found.append(_operation.decode(row[5]).asset)
    return DamagedOperation(tuple(dict.fromkeys(found)), OPERATION.damaged(row[:-1]))


def _standing(row: tuple[Any, ...]) -> Standing:
    _partition, asset, key, since = STANDING.read(row[:5])
    return Standing(asset, _condition.decode(CONDITION.read(row[5:9])[2]), since, key)


def _unsettled(row: tuple[Any, ...]) -> Unsettled:
    standing = _standing(row)
    if standing.condition.status is not Status.WAITING or row[9] is None:
        return Unsettled(standing)
    waits = _waits.decode(DECISION.read(row[9:])[3])
    return Unsettled(standing, waits.awaits, tuple(item for item in waits.verdicts if not item.allow))
