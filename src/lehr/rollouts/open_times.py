"""Times at which calendars are open: a timeline of moments at which they close and open. Pure."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from itertools import accumulate

from lehr.sdk.calendars import Interval

ALWAYS_CLOSED: tuple[Interval, ...] = ((-math.inf, math.inf),)
"""A calendar that cannot be read is closed."""


class Timeline:
    """Closed times, merged."""

    def __init__(self, closed: Iterable[Interval]) -> None:
        merged: list[Interval] = []
        for start, end in sorted(closed):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            elif start < end:
                merged.append((start, end))
        self._starts = [start for start, _ in merged]
        self._ends = [end for _, end in merged]
        self._before = [0.0, *accumulate(end - start for start, end in merged)]

    def opening(self, moment: float) -> float:
        """The first time from `moment` on that is open; infinite if there is none."""
        place = bisect.bisect_right(self._starts, moment) - 1
        return self._ends[place] if place >= 0 and moment < self._ends[place] else moment

    def closed_between(self, start: float, end: float) -> float:
        """Closed seconds between two moments."""
        return self._closed_until(end) - self._closed_until(start) if start < end else 0.0

    def after_open(self, moment: float, seconds: float) -> float:
        """When `seconds` of open time have passed since `moment`."""
        at = self.opening(moment)
        place = bisect.bisect_left(self._starts, at)
        while place < len(self._starts) and self._starts[place] < at + seconds:
            seconds -= self._starts[place] - at
            at = self._ends[place]
            place += 1
        return at + seconds

    def _closed_until(self, moment: float) -> float:
        place = bisect.bisect_right(self._starts, moment) - 1
        if place < 0:
            return 0.0
        if math.isinf(self._starts[place]):
            return moment  # only differences count
        return self._before[place] + min(moment, self._ends[place]) - self._starts[place]
