"""Durations, counted by how long they are."""

from __future__ import annotations

import bisect
from collections.abc import Sequence


class Durations:
    """Counts durations between bounds.

    Args:
        bounds: seconds, in increasing order.

    Attributes:
        counts: how many were at most as long as each bound and longer than the one before; and at last, those
            that were longer than all.
        sum: of all.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect.bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds
