"""What remains of a difference without its outliers: one replica, and one burst of another.

A bad version is bad in all of its replicas. One replica that is worse may run on a bad machine, and bursts of
errors hit any replica. How often they do is not known in advance, and the first two may both hit canaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lehr.canary.spread import ReplicaTotals

_BURST = 2
"""Blocks that a burst covers at most."""

_FEWEST = 3
"""Replicas without which bursts are not left out: too little would remain."""


class Remaining(NamedTuple):
    """A group without its outliers.

    Attributes:
        replica: the one that was left out; empty if there is only one.
        events: of what remains.
        baseline: what the other group would have had in its place.
    """

    replica: str
    events: float
    baseline: float


def without_outliers(blocks: Sequence[Mapping[str, ReplicaTotals]], *, higher: bool) -> Remaining:
    """Leave out the worst replica, and the worst burst of another.

    Args:
        blocks: the replicas of a group in successive parts of the time.
        higher: whether more events are worse.
    """
    sign = 1 if higher else -1
    names = {name: None for block in blocks for name, item in block.items() if item.exposure > 0}
    rows = {name: [block.get(name) or ReplicaTotals() for block in blocks] for name in names}
    surplus = {name: [sign * (item.events - item.baseline) for item in row] for name, row in rows.items()}
    worst, burst = "", ("", 0)
    if len(rows) > 1:
        worst = max(surplus, key=lambda name: sum(surplus[name]))
    if len(rows) >= _FEWEST:
        burst = _worst_burst({name: row for name, row in surplus.items() if name != worst})
    events = baseline = 0.0
    for name, row in rows.items():
        for number, item in enumerate(row):
            if name != worst and not (name == burst[0] and burst[1] <= number < burst[1] + _BURST):
                events += item.events
                baseline += item.baseline
    return Remaining(worst, events, baseline)


def _worst_burst(surplus: Mapping[str, Sequence[float]]) -> tuple[str, int]:
    """The replica, and the block in which its burst begins."""
    bursts = (
        (sum(row[begin : begin + _BURST]), name, begin)
        for name, row in surplus.items()
        for begin in range(max(1, len(row) - _BURST + 1))
    )
    return max(bursts)[1:]
