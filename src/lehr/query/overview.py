"""An overview of the partition: unsettled assets and active controls."""

from __future__ import annotations

from collections import Counter

import msgspec

from lehr.base.moments import Moment
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import Control
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Operation
from lehr.model.selector import Selector
from lehr.query.asset_rows import Row, rows
from lehr.query.partition_view import Reading
from lehr.query.wait_conditions import HeldBack, held_back


class Group(msgspec.Struct, frozen=True):
    """Assets with the same status.

    Attributes:
        count: how many there are.
        rows: the first of them, longest in this status first.
        next_at: wall-clock seconds of the earliest turn due among all of them.
    """

    status: str
    reason: str
    count: int
    rows: tuple[Row, ...]
    next_at: Moment | None


class Overview(msgspec.Struct, frozen=True):
    """Status of a partition.

    Attributes:
        newest: the incarnation in force; None before the first.
        attempt: result of the last pass over the source; None before the first.
        counts: number of assets by status.
        groups: unsettled assets, the largest group first.
        controls: pauses, freezes, pins, approvals and overrides that are active.
        held_back: assets that pins keep at content other than the newest incarnation's.
        operations: pushes that may be changing production.
    """

    newest: Incarnation | None
    attempt: Attempt | None
    counts: dict[str, int]
    groups: tuple[Group, ...]
    controls: tuple[Control, ...]
    held_back: tuple[HeldBack, ...]
    operations: tuple[Operation, ...]

    @property
    def unsettled(self) -> int:
        """Number of unsettled assets."""
        return sum(group.count for group in self.groups)

    @property
    def not_published(self) -> bool:
        """True when the newest revision of the source is not in force."""
        attempt = self.attempt
        return attempt is not None and attempt.publication in (Publication.REFUSED, Publication.UNREADABLE)


def survey(reading: Reading, most: int = 5, only: Selector | None = None) -> Overview:
    """Status of the partition.

    Args:
        most: how many assets of a group are named.
        only: counts and names only these assets; None for all.
    """
    found = rows(reading, only)
    _version, controls = reading.records.controls(reading.partition, reading.now)
    return Overview(
        newest=reading.newest(),
        attempt=reading.records.attempt(reading.partition),
        counts=dict(sorted(Counter(row.status for row in found).items())),
        groups=_grouped([row for row in found if not row.settled], most),
        controls=tuple(controls),
        held_back=held_back(reading, found),
        operations=tuple(reading.records.open_operations(reading.partition)),
    )


def _grouped(unsettled: list[Row], most: int) -> tuple[Group, ...]:
    by_reason: dict[tuple[str, str], list[Row]] = {}
    for row in unsettled:
        by_reason.setdefault((row.status, row.reason), []).append(row)
    groups = [
        Group(
            status,
            reason,
            len(members),
            tuple(sorted(members, key=lambda row: (row.since or 0.0, row.id))[:most]),
            min((row.next_at for row in members if row.next_at is not None), default=None),
        )
        for (status, reason), members in by_reason.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.count, group.status, group.reason)))
