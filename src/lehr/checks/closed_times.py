"""Closed times of a calendar, and when all of them are over."""

from __future__ import annotations

import datetime as dt
import functools
import re
import zoneinfo
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Protocol

import msgspec

from lehr.checks.weekly import DAY, DAYS, WEEK, Span, Weekly, disjoint

_FURTHEST = 2 * 366 * DAY
"""How far ahead an opening is searched, in seconds."""
_MOST_STEPS = 10_000
_MOST_REASONS = 3

_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")
_TIME_OF_WEEK = re.compile(rf"({'|'.join(DAYS)}) (\S+)")


class Closed(msgspec.Struct, frozen=True):
    """A calendar is closed at the moment that was asked about.

    Attributes:
        until: wall-clock seconds, later than that moment.
        reason: empty outside a window.
    """

    until: float
    reason: str = ""


class ClosedTimes(Protocol):
    """Some times at which a calendar is closed."""

    def at(self, moment: float) -> Closed | None:
        """Until when `moment` (wall-clock seconds) is closed; None if it is not."""
        ...


class OutsideWeekly:
    """Closed outside weekly times."""

    def __init__(self, weekly: Weekly, reason: str = "") -> None:
        self._weekly = weekly
        self._reason = reason

    def at(self, moment: float) -> Closed | None:
        if self._weekly.open_at(moment):
            return None
        return Closed(self._weekly.next_opening(moment), self._reason)


class Once:
    """Closed from one moment to another."""

    def __init__(self, start: float, end: float, reason: str) -> None:
        self._start = start
        self._closed = Closed(end, reason)

    def at(self, moment: float) -> Closed | None:
        return self._closed if self._start <= moment < self._closed.until else None


class Opening(msgspec.Struct, frozen=True):
    """When a closed calendar opens.

    Attributes:
        at: wall-clock seconds. If it does not open within two years, a time after those.
        reasons: of the closed times until then, at most three.
    """

    at: float
    reasons: tuple[str, ...]


def next_opening(times: Sequence[ClosedTimes], moment: float) -> Opening | None:
    """When `times`, closed at `moment`, are all over; None if it is not closed."""
    at, reasons = moment, dict[str, None]()
    for _ in range(_MOST_STEPS):
        closed = [found for item in times if (found := item.at(at)) is not None]
        if not closed or at > moment + _FURTHEST:
            break
        reasons.update(dict.fromkeys(found.reason for found in closed if found.reason))
        at = max(found.until for found in closed)
    return None if at == moment else Opening(at, tuple(reasons)[:_MOST_REASONS])


class ClosedTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A time at which a calendar is closed, once or every week.

    Attributes:
        start: `from`: once: `2026-11-27T00:00`, on the calendar's wall clock unless it ends with an
            offset or `Z`. Every week: `fri 16:00`.
        end: `to`: the first minute after it, written like `from`.
        reason: shown for every asset that waits.
    """

    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    reason: Annotated[str, msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        if self.span() is None:
            start, end = _date_time("from", self.start), _date_time("to", self.end)
            if (start.tzinfo is None) != (end.tzinfo is None):
                raise ValueError("write an offset in both from and to, or in neither")
            if end <= start:
                raise ValueError(f"to {self.end!r} is not later than from {self.start!r}")

    def span(self) -> Span | None:
        """Its time of the week; None if it is closed once."""
        start, end = _second_of_week("from", self.start), _second_of_week("to", self.end)
        if start is None and end is None:
            return None
        if start is None or end is None:
            raise ValueError(
                f"from {self.start!r} and to {self.end!r}: write both as fri 16:00, or both as dates"
            )
        if start % WEEK == end % WEEK:
            raise ValueError(f"from and to are both {self.start}: the calendar would never open")
        return start % WEEK, end + (WEEK if end <= start % WEEK else 0)

    def times(self, zone: zoneinfo.ZoneInfo) -> ClosedTimes:
        """The moments that it closes."""
        span = self.span()
        if span is not None:
            return OutsideWeekly(Weekly(zone, complement([span])), self.reason)
        return Once(
            earliest(_date_time("from", self.start), zone),
            latest(_date_time("to", self.end), zone),
            self.reason,
        )


def complement(spans: Iterable[Span]) -> list[Span]:
    """The rest of the week."""
    merged = disjoint(spans)
    starts = [0, *(end for _, end in merged)]
    ends = [*(start for start, _ in merged), WEEK]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def earliest(moment: dt.datetime, zone: zoneinfo.ZoneInfo) -> float:
    """When a clock first shows `moment`. One that is skipped counts as before the change."""
    return min(moments_of(moment, zone))


def latest(moment: dt.datetime, zone: zoneinfo.ZoneInfo) -> float:
    """When a clock last shows `moment`. One that is skipped counts as after the change."""
    return max(moments_of(moment, zone))


def moments_of(shown: dt.datetime, zone: zoneinfo.ZoneInfo) -> Iterator[float]:
    """The two moments at which clocks show it, equal unless they repeat or skip it.

    The first of those of a skipped time is the one at which it would be if clocks had not changed.
    """
    for fold in (0, 1):
        yield (shown if shown.tzinfo else shown.replace(tzinfo=zone, fold=fold)).timestamp()


@functools.lru_cache(1024)
def seconds_of_day(name: str, text: str) -> int:
    """Seconds since midnight of `HH:MM`.

    Raises:
        ValueError: it is not a time of day.
    """
    if not _TIME_OF_DAY.fullmatch(text):
        raise ValueError(f"{name} {text!r} is not a valid time of day: write HH:MM, from 00:00 to 24:00")
    hours, minutes = text.split(":")
    return (int(hours) * 60 + int(minutes)) * 60


def _second_of_week(name: str, text: str) -> int | None:
    found = _TIME_OF_WEEK.fullmatch(text)
    return None if found is None else DAYS.index(found[1]) * DAY + seconds_of_day(name, found[2])


def _date_time(name: str, text: str) -> dt.datetime:
    problem = f"{name} {text!r} is not a valid time: write 2026-11-27T00:00 (once) or fri 16:00 (every week)"
    if "T" not in text:
        raise ValueError(problem)
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(problem) from error
