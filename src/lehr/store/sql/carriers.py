"""The functions that carry out each kind of write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lehr.model.asset import Partition
from lehr.model.feed import ChangeKind
from lehr.model.handle import Handle
from lehr.model.incarnation import Incarnation
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.writes import (
    Admit,
    Adopt,
    Audit,
    Finish,
    Import,
    KeepHandle,
    KeepLease,
    KeepOutputs,
    LiftControl,
    Prune,
    Publish,
    RecordAttempt,
    RecordDecision,
    Refused,
    Reschedule,
    ReturnLease,
    SetControl,
    TakeLease,
    Write,
    WriteReleases,
)
from lehr.store.sql import admission, leases, releases, retention
from lehr.store.sql.feed import Noted
from lehr.store.sql.headers import is_pruned
from lehr.store.sql.partitions import know_partition, partition_row, write_partition
from lehr.store.sql.session import Session
from lehr.store.sql.tables import (
    ATTEMPT,
    AUDIT,
    CONDITION,
    CONTROL,
    DECISION,
    HANDLE,
    OUTPUTS,
    STANDING,
    Table,
)

CarryOut = Callable[[Any, Any], Any]
"""Carries out one write in a session; returns the answer."""


def carriers(publish: CarryOut) -> Mapping[type, CarryOut]:
    """The function for each type of write, in a database that publishes with `publish`."""
    return {
        Publish: publish,
        Admit: _admit,
        Finish: admission.finish,
        Adopt: _adopt,
        RecordDecision: record_decision,
        RecordAttempt: record_attempt,
        Reschedule: reschedule,
        SetControl: set_control,
        LiftControl: lift_control,
        WriteReleases: releases.write_releases,
        KeepHandle: keep_handle,
        KeepOutputs: keep_outputs,
        TakeLease: leases.take_lease,
        KeepLease: leases.keep_lease,
        ReturnLease: leases.return_lease,
        Audit: audit,
        Prune: retention.prune,
        Import: _import,
    }


def carry_out(db: Session, carriers: Mapping[type, CarryOut], writes: Sequence[Write]) -> list[Any]:
    """Carry out the writes of one commit, and append what they have changed to the feed."""
    db.noted = Noted()
    answers = [carriers[type(write)](db, write) for write in writes]
    db.noted.write(db)
    return answers


def _admit(db: Session, write: Admit) -> Refused | None:
    refused = admission.admit(db, write)
    if refused is None and write.decision is not None:
        record_decision(db, RecordDecision(write.decision, write.inputs))
    return refused


def _adopt(db: Session, write: Adopt) -> None:
    admission.enter(db, write.ledger)


def _import(db: Session, write: Import) -> Incarnation | Refused:
    from lehr.store.sql.imports import import_incarnation  # noqa: PLC0415 - start-up counts

    return import_incarnation(db, write)


# --- decisions, standings, controls and the audit trail ------------------

_STAND = """
    INSERT INTO standing (partition, asset, key, since, checksum, condition, condition_checksum)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (partition, asset) DO UPDATE SET
        condition = excluded.condition,
        condition_checksum = excluded.condition_checksum,
        since = CASE WHEN standing.key = excluded.key THEN standing.since ELSE excluded.since END,
        checksum = CASE WHEN standing.key = excluded.key THEN standing.checksum ELSE excluded.checksum END,
        key = excluded.key
"""
_FIND_CONTROL = f"""
    SELECT {CONTROL.names()} FROM control WHERE id = ? AND partition = ? AND lifted_at IS NULL
"""  # noqa: S608 - our own names


def record_decision(db: Session, write: RecordDecision) -> None:
    """Append a decision, which also becomes the asset's current one."""
    decision = write.decision
    condition = decision.condition
    number = db.next_number("decision")
    body = msgspec.json.encode(decision)
    values = number, decision.partition, decision.asset, body, write.inputs
    db.execute(DECISION.insert, DECISION.sealed(*values))
    since = STANDING.sealed(decision.partition, decision.asset, condition.key(), float(decision.at))
    _of, _asset, *kept = CONDITION.sealed(decision.partition, decision.asset, msgspec.json.encode(condition))
    db.execute(_STAND, (*since, *kept))
    db.noted.add(decision.partition, ChangeKind.DECISION, decision.at, decision.asset, str(number))


def keep_handle(db: Session, write: KeepHandle) -> None:
    """Replace or forget an asset's handle."""
    _keep(db, HANDLE, write.handle, bool(write.handle))


def keep_outputs(db: Session, write: KeepOutputs) -> None:
    """Replace or forget an asset's outputs."""
    _keep(db, OUTPUTS, write.outputs, bool(write.outputs.values))


def _keep(db: Session, table: Table, item: Handle | Outputs, has_content: bool) -> None:
    """Replace an asset's row of `table`, or delete it if `item` has no content."""
    if not has_content:
        db.execute(f"DELETE FROM {table.name} WHERE partition = ? AND asset = ?", item.key)  # noqa: S608
        return
    db.execute(
        f"{table.insert} ON CONFLICT (partition, asset) DO UPDATE SET body = excluded.body,"
        " checksum = excluded.checksum",
        table.sealed(item.partition, item.asset, msgspec.json.encode(item)),
    )


def record_attempt(db: Session, write: RecordAttempt) -> None:
    """Replace the last attempt to publish."""
    know_partition(db, write.attempt.partition)
    db.execute(
        f"{ATTEMPT.insert} ON CONFLICT (partition) DO UPDATE SET body = excluded.body,"
        " checksum = excluded.checksum",
        ATTEMPT.sealed(write.attempt.partition, msgspec.json.encode(write.attempt)),
    )


def reschedule(db: Session, write: Reschedule) -> None:
    """The same standing, due at another time."""
    partition, id, *kept = CONDITION.sealed(
        write.key.partition, write.key.id, msgspec.json.encode(write.condition)
    )
    db.execute(
        "UPDATE standing SET condition = ?, condition_checksum = ? WHERE partition = ? AND asset = ?",
        (*kept, partition, id),
    )
    db.noted.add(partition, ChangeKind.RESCHEDULED, write.at, id)


def set_control(db: Session, write: SetControl) -> Refused | None:
    """Store a control."""
    control = write.control
    if control.incarnation is not None and is_pruned(db, control.partition, control.incarnation):
        return Refused(Reason.PRUNED, f"incarnation {control.partition}@{control.incarnation} is pruned")
    until = None if control.expires_at is None else float(control.expires_at)
    number, body = db.next_number("control"), msgspec.json.encode(control)
    version = _raise_version(db, control.partition)
    values = number, control.id, control.partition, None, until, version, body
    db.execute(CONTROL.insert, CONTROL.sealed(*values))
    db.noted.add(control.partition, ChangeKind.CONTROL_SET, control.at, record=control.id)
    return None


def lift_control(db: Session, write: LiftControl) -> bool:
    """Lift a control; it stays in the table as history."""
    version = _raise_version(db, write.partition)
    row = db.execute(_FIND_CONTROL, (write.id, write.partition)).fetchone()
    if row is not None:
        number, id, partition, _lifted_at, until, _changed, body = CONTROL.read(row)
        lifted = CONTROL.sealed(number, id, partition, float(write.at), until, version, body)
        db.execute(
            "UPDATE control SET lifted_at = ?, changed = ?, checksum = ? WHERE number = ?",
            (float(write.at), version, lifted[-1], number),
        )
        db.noted.add(partition, ChangeKind.CONTROL_LIFTED, write.at, record=id)
    return row is not None


def _raise_version(db: Session, partition: Partition) -> int:
    """Returns the new version of the controls."""
    row = partition_row(db, partition)
    version = row.controls + 1
    write_partition(db, row._replace(controls=version))
    return version


def audit(db: Session, write: Audit) -> None:
    """Append a command to the audit trail."""
    number = db.next_number("audit")
    db.execute(AUDIT.insert, AUDIT.sealed(number, write.partition, msgspec.json.encode(write.entry)))
