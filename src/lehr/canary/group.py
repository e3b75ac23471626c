"""The counts of one metric in a group of replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lehr.canary.definition import Columns
from lehr.canary.look import ReplicaCounts
from lehr.canary.spread import ReplicaTotals
from lehr.canary.verdict import GroupTotals

_INEXACT = 1.01

_STALE_AFTER = 2
"""Looks without data of one group while the other has some, and samples that it could have had."""


class Row(NamedTuple):
    """The metric of one replica in one look."""

    replica: str
    seconds: float
    events: float
    exposure: float


class Group:
    """Totals of a group.

    Attributes:
        last: when replicas that are not gone had data.
        most: replicas that had data in one look.
        unseen: looks since any had data while the other group had some.
        recent: rows of looks in which the other group had no data yet, and when that was.
    """

    __slots__ = (
        "_at",
        "_seconds",
        "events",
        "exposure",
        "last",
        "most",
        "recent",
        "replicas",
        "seconds",
        "unseen",
    )

    def __init__(self) -> None:
        self.events = self.exposure = self.seconds = 0.0
        self.replicas: dict[str, ReplicaTotals] = {}
        self.last: dict[str, float] = {}
        self.unseen = self.most = 0
        self.recent: list[tuple[float, Row]] = []
        self._at = self._seconds = 0.0

    def see(self, rows: Sequence[Row], at: float, others: bool, gap: float) -> None:
        """Notice which replicas have data in a look.

        Args:
            others: whether the other group has some.
            gap: those without data for longer are gone.
        """
        self.unseen = 0 if rows else self.unseen + others
        if rows:
            self._at, self._seconds = at, max(row.seconds for row in rows)
        now = {row.replica: at for row in rows}
        self.last = {name: seen for name, seen in self.last.items() if seen >= at - gap} | now
        self.most = max(self.most, len(now))
        # Looks may be more frequent than samples, and samples of the groups need not be at the same time.
        self.recent = [item for item in self.recent if at - item[0] < self._seconds]
        self.recent += [(at, row) for row in rows]

    def stale(self, at: float) -> bool:
        """Whether no replica had data for two looks and two samples, while the other group had some."""
        return self.unseen >= _STALE_AFTER and at - self._at >= _STALE_AFTER * self._seconds

    def taken(self) -> list[Row]:
        """Take the recent rows, to compare them."""
        rows, self.recent = [row for _, row in self.recent], []
        return rows

    def add(self, rows: Sequence[Row], events: float, exposure: float, other_rate: float) -> None:
        """Take a look in which both groups have data."""
        self.events += events
        self.exposure += exposure
        self.seconds += max(row.seconds for row in rows)
        for row in rows:
            totals = self.replicas.setdefault(row.replica, ReplicaTotals())
            totals.events += row.events
            totals.expected += events * row.exposure / exposure
            totals.exposure += row.exposure
            totals.baseline += row.exposure * other_rate

    def copy(self) -> dict[str, ReplicaTotals]:
        return {name: item.copy() for name, item in self.replicas.items()}

    def since(self, former: dict[str, ReplicaTotals]) -> list[ReplicaTotals]:
        return [item.since(former.get(name)) for name, item in self.replicas.items()]

    def totals(self) -> GroupTotals:
        rate = self.events / self.exposure if self.exposure else None
        return GroupTotals(len(self.replicas), self.events, self.exposure, self.seconds, rate)


def row_of(item: ReplicaCounts, columns: Columns) -> Row | None:
    """The metric of a replica; None if one of its counters was not measured."""
    counts = item.counts
    exposure = counts.get(columns.of)
    if exposure is None:
        return None
    if columns.events is not None:
        events = counts.get(columns.events)
    else:
        below = counts.get(columns.below or "")
        # A bucket may be read before the total: the little that it lacks is not negative.
        known = below is not None and below <= exposure * _INEXACT + 1
        events = max(0.0, exposure - below) if known and below is not None else None
    return None if events is None else Row(item.replica, item.seconds, events, exposure)
