"""Times of the week on a wall clock: is one of them now, and when does the next begin?"""

from __future__ import annotations

import bisect
import datetime as dt
import math
import zoneinfo
from collections.abc import Iterable
from typing import Literal, get_args

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[str, ...] = get_args(Day)

Span = tuple[int, int]
"""From, to (exclusive), in seconds since Monday 00:00 on the wall; from < to."""

DAY = 86_400
WEEK = 7 * DAY

_MONDAY = 4 * DAY  # 5 January 1970, the first Monday of the epoch
_STRIDE = DAY  # no zone has ever changed its offset twice within three days


class Weekly:
    """Spans of the week in a time zone. Spans may overlap, and run over the end of the week.

    The rule is that of a wall clock: a window is open at every moment at which a clock in that time zone
    shows a time within it. So when clocks go forward, a window within the skipped hour does not open that
    day, and when they go back, one in the repeated hour opens twice.

    Works on whole seconds: windows begin at whole minutes, and zones are whole seconds from UTC.
    """

    def __init__(self, zone: zoneinfo.ZoneInfo, spans: Iterable[Span]) -> None:
        """Windows at `spans`, at least one, in `zone`."""
        self._zone = zone
        self._spans = disjoint(spans)
        self._starts = [start for start, _ in self._spans]

    def open_at(self, moment: float) -> bool:
        """True when a window is open at `moment` (wall-clock seconds since the epoch)."""
        return self._delay(math.floor(moment)) == 0

    def next_opening(self, moment: float) -> float:
        """The first time from `moment` on at which a window is open, in wall-clock seconds."""
        at = math.floor(moment)
        while delay := self._delay(at):
            change = self._offset_change(at, at + delay)
            if change is None:
                return float(at + delay)
            # Nothing opens before the change; from then on the wall clock shows another time.
            at = change
        return max(moment, float(at))

    def _delay(self, at: int) -> int:
        """Seconds from `at` to the next opening if the offset stayed as it is; 0 when open."""
        shown = (at + self._offset(at) - _MONDAY) % WEEK
        place = bisect.bisect_right(self._starts, shown)
        if place and shown < self._spans[place - 1][1]:
            return 0
        following = self._starts[place] if place < len(self._starts) else self._starts[0] + WEEK
        return following - shown

    def _offset(self, at: int) -> int:
        offset = dt.datetime.fromtimestamp(at, self._zone).utcoffset()
        return int(offset.total_seconds()) if offset else 0

    def _offset_change(self, after: int, until: int) -> int | None:
        """The first second in (`after`, `until`] at which the offset differs; None if it never does."""
        before = self._offset(after)
        low = after
        while low < until:
            high = min(low + _STRIDE, until)
            if self._offset(high) != before:
                steps = range(low + 1, high + 1)
                return steps[bisect.bisect_left(steps, True, key=lambda at: self._offset(at) != before)]
            low = high
        return None


def disjoint(spans: Iterable[Span]) -> list[Span]:
    """The same seconds of the week as sorted, disjoint spans within [0, WEEK)."""
    within: list[Span] = []
    for start, end in spans:
        within.append((start, min(end, WEEK)))
        if end > WEEK:
            within.append((0, end - WEEK))
    merged: list[Span] = []
    for start, end in sorted(within):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
