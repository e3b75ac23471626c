"""Resources of pushes, and of the commands that people gave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from lehr.http.parameters import continued
from lehr.http.problems import ProblemError
from lehr.http.questions import (
    PARTITION_PATH,
    Catalogue,
    CursorText,
    Id,
    Limit,
    OfPartition,
    Question,
    Representation,
)
from lehr.model.asset import AssetId
from lehr.model.operation import Operation
from lehr.query.explanation import NumberedAuditEntry, audit_entry
from lehr.query.list_cursor import list_cursor

OPERATIONS = Catalogue()


class OfOperations(OfPartition, frozen=True):
    """Which of them, and which page."""

    asset: Id = ""
    open: Annotated[
        bool, Meta(description="Only those that may be changing production: all of them, by asset.")
    ] = False
    limit: Limit = 100
    cursor: CursorText = ""


class ReportedOperation(Operation, frozen=True):
    """A push.

    Attributes:
        progress: its last report while it is under way; empty if none is known.
    """

    progress: str = ""


class OperationPage(msgspec.Struct, frozen=True):
    """Pushes, newest first.

    Attributes:
        cursor: where the next page begins; empty if this is the last.
    """

    operations: list[ReportedOperation]
    cursor: str = ""


@OPERATIONS.answered_by(
    "operations",
    "Pushes, newest first, with the progress of those under way.",
    OfOperations,
    OperationPage,
)
def _operations(question: Question, asked: OfOperations) -> Representation:
    reading = question.reading(asked.partition)
    name = f"operations of {asked.asset or 'all assets'}"
    place = continued(asked.cursor, name, reading.partition)

    def make() -> OperationPage:
        if asked.open:
            found = reading.records.open_operations(reading.partition)
            among = (item for item in found if asked.asset in ("", item.asset))
            return OperationPage(_reported(question, among))
        before = "" if place is None else place[1]
        asset = AssetId(asked.asset) or None
        found = reading.records.operations(reading.partition, asset, asked.limit + 1, before)
        shown = found[: asked.limit]
        more = len(found) > len(shown)
        cursor = list_cursor(name, reading.partition, 0, shown[-1].id) if more else ""
        return OperationPage(_reported(question, shown), cursor)

    return Representation(make)


class OfOperation(OfPartition, frozen=True):
    """Which of them."""

    operation: Annotated[str, Meta(description="The id of a push.", max_length=100)]


@OPERATIONS.answered_by(
    f"{PARTITION_PATH}/operations/{{operation}}",
    "One push, with what its plugin reported at each step.",
    OfOperation,
    ReportedOperation,
    name="operation",
)
def _one_operation(question: Question, asked: OfOperation) -> Representation:
    reading = question.reading(asked.partition)
    found = reading.records.operation(reading.partition, asked.operation)
    if found is None:
        raise ProblemError(
            "NotFound",
            f"there is no push {asked.operation[:100]} in {reading.partition}",
            code="HTP141",
            fix="list them at `operations`; old ones are pruned",
        )
    [reported] = _reported(question, [found])
    return Representation(lambda: reported)


def _reported(question: Question, operations: Iterable[Operation]) -> list[ReportedOperation]:
    found = list(operations)
    under_way = any(item.result is None for item in found)
    progress = question.progress() if under_way else {}
    return [ReportedOperation(**asdict(item), progress=progress.get(item.id, "")) for item in found]


class OfAudit(OfPartition, frozen=True):
    """Which page."""

    limit: Limit = 100
    cursor: CursorText = ""


class AuditPage(msgspec.Struct, frozen=True):
    """Commands that people gave, newest first.

    Attributes:
        cursor: where the next page begins; empty if this is the last.
    """

    commands: list[NumberedAuditEntry]
    cursor: str = ""


@OPERATIONS.answered_by("audit", "Commands that people gave, newest first.", OfAudit, AuditPage)
def _audit(question: Question, asked: OfAudit) -> Representation:
    reading = question.reading(asked.partition)
    place = continued(asked.cursor, "audit", reading.partition)

    def make() -> AuditPage:
        before = None if place is None else place[0]
        found = reading.records.audit(reading.partition, asked.limit + 1, before)
        shown = found[: asked.limit]
        more = len(found) > len(shown)
        cursor = list_cursor("audit", reading.partition, shown[-1][0]) if more else ""
        return AuditPage([audit_entry(*item) for item in shown], cursor)

    return Representation(make)
