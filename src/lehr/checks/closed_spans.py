"""The closed times of a calendar from now on, for forecasts."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence

from lehr.checks.calendar import Calendar
from lehr.checks.closed_times import ClosedTimes, next_opening

_PROBE_SECONDS = 60.0


def closed_spans(calendar: Calendar, start: float, end: float) -> list[tuple[float, float]] | None:
    """The times between two moments at which a calendar is closed; None if it cannot be read.

    It is asked once a minute while it is open, so a closed time of less than that may be left out.
    """
    file = calendar.ical_file()
    if file is not None and file.text is None:
        return None
    try:
        return list(_spans(calendar.times(), start, end))
    except Exception:
        return None


def _spans(times: Sequence[ClosedTimes], start: float, end: float) -> Iterator[tuple[float, float]]:
    at, seen_open = start, -math.inf
    while at < end:
        opening = next_opening(times, at)
        if opening is None:
            seen_open, at = at, at + _PROBE_SECONDS
            continue
        yield _first_closed(times, seen_open, at), opening.at
        seen_open = at = opening.at


def _first_closed(times: Sequence[ClosedTimes], low: float, high: float) -> float:
    """The first whole second after `low`, which is open, that is closed; `high` is."""
    if math.isinf(low):
        return high
    first = math.floor(low) + 1
    seconds = range(first, math.ceil(high))
    place = bisect.bisect_left(seconds, True, key=lambda at: any(item.at(at) is not None for item in times))
    return min(float(first + place), high)
