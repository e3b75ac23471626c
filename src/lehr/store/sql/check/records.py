"""Decisions, operations and controls: each record can be read, and agrees with its key and the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from lehr.model.asset import Partition
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control, ControlKind
from lehr.model.damage import RESTORE, Advance, Damage
from lehr.model.decision import Condition, Decision
from lehr.model.diff import Goal
from lehr.model.evidence import Evidence
from lehr.model.feed import RecordChange
from lehr.model.handle import Handle
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.outputs import Outputs
from lehr.model.release import Release
from lehr.store.sql.session import Session


class _Bounds(NamedTuple):
    """Values that records may refer to."""

    newest: int
    epoch: int
    controls: int
    releases: int


class _Table(NamedTuple):
    """A table whose rows have a body: how to read it, and what it must match.

    Attributes:
        columns: those after `body`, handed to `problems` in this order.
        key: names a row.
        problems: why a row contradicts its columns, or the rest of the state.
    """

    name: str
    columns: str
    type: Any
    key: Callable[[tuple[Any, ...]], str]
    problems: Callable[[Session, _Bounds, Any, tuple[Any, ...]], Iterator[str]]
    body: str = "body"


def check(db: Session, partition: Partition, advance: Advance) -> Iterator[Damage]:
    """All records of a partition."""
    row = db.execute("SELECT controls, releases FROM partition WHERE name = ?", (partition,)).fetchone()
    if row is None:
        yield Damage(f"partition {partition} has no row of its own", "records and incarnations name it")
    query = "SELECT coalesce(max(epoch), 0) FROM lease WHERE partition = ?"
    [epoch] = db.execute(query, (partition,)).fetchone()
    bounds = _Bounds(newest_of(db, partition), int(epoch), *(row or (0, 0)))
    for table in _TABLES:
        query = f"SELECT {table.body}, {table.columns} FROM {table.name} WHERE partition = ?"  # noqa: S608
        decoder = msgspec.json.Decoder(table.type)
        for body, *columns in db.stream(query, (partition,)):
            advance(1)
            name = f"{table.name} {table.key(tuple(columns))} of {partition}"
            try:
                found = decoder.decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                yield Damage(f"{name} cannot be read", str(error))
                continue
            if getattr(found, "partition", partition) != partition:
                yield Damage(f"{name} belongs to another row", f"it belongs to partition {found.partition}")
            for why in table.problems(db, bounds, found, tuple(columns)):
                yield Damage(f"{name} contradicts other records", why)
    yield from _control_version(db, partition, bounds)


def check_reservations(db: Session) -> Iterator[Damage]:
    """Shares held until a push ends belong to a push that is under way."""
    for key, holder in db.execute(
        "SELECT key, operation FROM reservation r WHERE until IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM operation o WHERE o.id = r.operation AND o.open = 1) ORDER BY key"
    ):
        yield Damage(
            f"a share of {key} is held by operation {holder}",
            "that operation is not running, so the share would never be released",
            RESTORE,
        )


def _control_version(db: Session, partition: Partition, bounds: _Bounds) -> Iterator[Damage]:
    given, lifted = db.execute(
        "SELECT count(*), count(lifted_at) FROM control WHERE partition = ?", (partition,)
    ).fetchone()
    if bounds.controls < given + lifted:
        yield Damage(
            f"the version of the controls of {partition} is too low",
            f"it is {bounds.controls}, and {given + lifted} controls were set or lifted",
        )


def _operation(db: Session, bounds: _Bounds, found: Operation, columns: tuple[Any, ...]) -> Iterator[str]:
    id, asset, is_open = columns
    if (found.id, found.asset) != (id, asset):
        yield f"it is operation {found.id} of asset {found.asset}"
    if found.open != bool(is_open):
        yield f"it is listed as {'open' if is_open else 'ended'}, and its result is {found.result}"
    if found.open != (found.ended_at is None):
        yield f"its result is {found.result}, and it ended at {found.ended_at}"
    if max(found.content, found.governing) > bounds.newest:
        yield f"it read incarnations {found.content} and {found.governing}; the newest is {bounds.newest}"
    if found.epoch > bounds.epoch:
        yield f"it was admitted under epoch {found.epoch}; the newest is {bounds.epoch}"


def _ledger(db: Session, bounds: _Bounds, found: LedgerEntry, columns: tuple[Any, ...]) -> Iterator[str]:
    if found.asset != columns[0]:
        yield f"it is about asset {found.asset}"
    if found.content > bounds.newest:
        yield f"its content is of incarnation {found.content}; the newest is {bounds.newest}"
    elif found.goal is not Goal.ABSENT and _is_pruned(db, found.partition, found.content):
        yield f"its content is of incarnation {found.content}, which is pruned"
    if found.operation is not None and not _has_operation(db, found.operation):
        yield f"its operation {found.operation} does not exist"


def _handle(db: Session, bounds: _Bounds, found: Handle, columns: tuple[Any, ...]) -> Iterator[str]:
    if found.asset != columns[0]:
        yield f"it is of asset {found.asset}"
    if not found:
        yield "it is empty"


def _outputs(db: Session, bounds: _Bounds, found: Outputs, columns: tuple[Any, ...]) -> Iterator[str]:
    if found.asset != columns[0]:
        yield f"they are of asset {found.asset}"
    if not found.values:
        yield "they are empty"


def _standing(db: Session, bounds: _Bounds, found: Condition, columns: tuple[Any, ...]) -> Iterator[str]:
    if found.key() != columns[1]:
        yield "the key of its condition belongs to another row"


def _decision(db: Session, bounds: _Bounds, found: Decision, columns: tuple[Any, ...]) -> Iterator[str]:
    if found.asset != columns[1]:
        yield f"it is about asset {found.asset}"
    if max(found.content, found.governing) > bounds.newest:
        yield f"it read incarnations {found.content} and {found.governing}; the newest is {bounds.newest}"


def _control(db: Session, bounds: _Bounds, found: Control, columns: tuple[Any, ...]) -> Iterator[str]:
    id, expires_at, lifted_at, changed = columns
    if changed > bounds.controls:
        yield f"it was set or lifted in version {changed} of the controls; the newest is {bounds.controls}"
    if (found.id, found.expires_at) != (id, expires_at):
        yield f"its id is {found.id}, and it expires at {found.expires_at}"
    if found.kind is ControlKind.PIN and found.incarnation is not None:
        if not 1 <= found.incarnation <= bounds.newest:
            yield f"it pins to incarnation {found.incarnation}; the newest is {bounds.newest}"
        elif lifted_at is None and expires_at is None and _is_pruned(db, found.partition, found.incarnation):
            yield f"it pins to incarnation {found.incarnation}, which is pruned"


def _release(db: Session, bounds: _Bounds, found: Release, columns: tuple[Any, ...]) -> Iterator[str]:
    id, asset, target, _withdrawn_at, changed = columns
    if changed > bounds.releases:
        yield f"its version of the releases is {changed}; the newest is {bounds.releases}"
    if (found.id, found.asset, found.target) != (id, asset, target):
        yield f"it is release {found.id} of asset {found.asset} to incarnation {found.target}"
    if target is not None and not 1 <= target <= bounds.newest:
        yield f"it is for incarnation {target}; the newest is {bounds.newest}"


def _evidence(db: Session, bounds: _Bounds, found: Evidence, columns: tuple[Any, ...]) -> Iterator[str]:
    _number, policy, rollout = columns
    if (found.policy, found.rollout) != (policy, rollout):
        yield f"it is about rollout {found.rollout} of {found.policy}"


def _attempt(db: Session, bounds: _Bounds, found: Attempt, columns: tuple[Any, ...]) -> Iterator[str]:
    if found.sequence > bounds.newest:
        yield f"incarnation {found.sequence} was in force after it; the newest is {bounds.newest}"


def _nothing(db: Session, bounds: _Bounds, found: object, columns: tuple[Any, ...]) -> Iterator[str]:
    return iter(())


def _has_operation(db: Session, id: str) -> bool:
    return db.execute("SELECT 1 FROM operation WHERE id = ?", (id,)).fetchone() is not None


def newest_of(db: Session, partition: Partition) -> int:
    """The newest incarnation in the table, independent of the partition's row; 0 for none."""
    query = "SELECT coalesce(max(sequence), 0) FROM incarnation WHERE partition = ?"
    return int(db.execute(query, (partition,)).fetchone()[0])


def _is_pruned(db: Session, partition: Partition, sequence: int) -> bool:
    """Whether an incarnation is marked as pruned; the mark is checked elsewhere."""
    query = "SELECT 1 FROM incarnation WHERE partition = ? AND sequence = ? AND pruned = 1"
    return db.execute(query, (partition, sequence)).fetchone() is not None


def _first(columns: tuple[Any, ...]) -> str:
    return str(columns[0])


_TABLES = (
    _Table("operation", "id, asset, open", Operation, _first, _operation),
    _Table("ledger", "asset", LedgerEntry, _first, _ledger),
    _Table("handle", "asset", Handle, _first, _handle),
    _Table("outputs", "asset", Outputs, _first, _outputs),
    _Table("standing", "asset, key", Condition, _first, _standing, body="condition"),
    _Table("decision", "number, asset", Decision, _first, _decision),
    _Table("control", "id, expires_at, lifted_at, changed", Control, _first, _control),
    _Table("release", "id, asset, target, withdrawn_at, changed", Release, _first, _release),
    _Table("evidence", "number, policy, rollout", Evidence, _first, _evidence),
    _Table("attempt", "partition", Attempt, _first, _attempt),
    _Table("feed", "number", tuple[RecordChange, ...], _first, _nothing, body="changes"),
    _Table("audit", "number", AuditEntry, _first, _nothing),
)
