"""The functions that carry out each kind of write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lehr.model.incarnation import Incarnation
from lehr.model.writes import (
    Admit,
    Adopt,
    Audit,
    Finish,
    Import,
    KeepLease,
    LiftControl,
    Prune,
    Publish,
    Record,
    RecordAttempt,
    Refused,
    SetControl,
    TakeLease,
    Touch,
)
from lehr.store.sql import admission, records, retention
from lehr.store.sql.session import Session

CarryOut = Callable[[Any, Any], Any]
"""Carries out one write in a session; returns the answer."""


def carriers(publish: CarryOut) -> Mapping[type, CarryOut]:
    """The function for each type of write, in a database that publishes with `publish`."""
    return {
        Publish: publish,
        Admit: _admit,
        Finish: admission.finish,
        Adopt: _adopt,
        Record: records.record,
        RecordAttempt: records.record_attempt,
        Touch: records.touch,
        SetControl: records.set_control,
        LiftControl: records.lift_control,
        TakeLease: records.take_lease,
        KeepLease: records.keep_lease,
        Audit: records.audit,
        Prune: retention.prune,
        Import: _import,
    }


def _admit(db: Session, write: Admit) -> Refused | None:
    refused = admission.admit(db, write)
    if refused is None and write.decision is not None:
        records.record(db, Record(write.decision))
    return refused


def _adopt(db: Session, write: Adopt) -> None:
    admission.enter(db, write.ledger)


def _import(db: Session, write: Import) -> Incarnation | Refused:
    from lehr.store.sql.importing import import_incarnation  # noqa: PLC0415 - start-up counts

    return import_incarnation(db, write)
