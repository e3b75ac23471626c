"""Calendar: pushes start in weekly windows; an emergency override may let them through."""

from __future__ import annotations

import bisect
import datetime as dt
import difflib
import math
import re
import zoneinfo
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

import msgspec

from lehr.checks.governing_assets import Governing, active_controls
from lehr.model.asset import AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Verdict
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

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
        self._spans = _disjoint(spans)
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

    def local(self, moment: float) -> dt.datetime:
        """`moment` as the time zone's wall clock shows it."""
        return dt.datetime.fromtimestamp(moment, self._zone)

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


def _disjoint(spans: Iterable[Span]) -> list[Span]:
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


Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


_DAYS: tuple[str, ...] = get_args(Day)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A time window on some days of the week.

    Attributes:
        days: `mon` to `sun`, the days on which it begins.
        start: `from`: `HH:MM` on the time zone's wall clock.
        end: `to`: `HH:MM`, not included; `24:00` is the end of the day. Before `from`, it lies
            on the next day.
    """

    days: tuple[Day, ...]
    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")

    def __post_init__(self) -> None:
        if not self.days:
            raise ValueError(f"a window without days never opens: add some of {', '.join(_DAYS)}")
        start, end = _minutes("from", self.start), _minutes("to", self.end)
        if start == end:
            raise ValueError(f"from and to are both {self.start}: a whole day is 00:00 to 24:00")
        if self.start == "24:00":
            raise ValueError("a window cannot begin at 24:00: use 00:00 of the next day")

    def spans(self) -> Iterator[Span]:
        """Its times, in seconds since Monday 00:00."""
        start, end = _minutes("from", self.start) * 60, _minutes("to", self.end) * 60
        for day in self.days:
            midnight = _DAYS.index(day) * DAY
            yield midnight + start, midnight + end + (DAY if end < start else 0)


class Calendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Push the selected assets only within these windows.

    Where several calendars select one asset, all of them must be open.

    Attributes:
        select: which assets.
        timezone: IANA name (`Europe/Berlin`, `UTC`).
        windows: when pushes may start, at least one.
        override: whether an emergency override lets pushes through outside the windows.
    """

    select: Selector
    timezone: str
    windows: tuple[Window, ...]
    override: bool = False

    def __post_init__(self) -> None:
        _zone(self.timezone)
        if not self.windows:
            raise ValueError(
                "a calendar without windows would never allow a push: use a lehr.Freeze for that"
            )

    def weekly(self) -> Weekly:
        """Its windows, to compute the next opening."""
        return Weekly(_zone(self.timezone), [span for window in self.windows for span in window.spans()])


CALENDAR_TYPE = AssetType("lehr.Calendar", Calendar, governs=True)


class _Prepared(msgspec.Struct, frozen=True):
    select: Selector
    calendar: Calendar
    weekly: Weekly


class CalendarCheck(CheckPlugin):
    """Waits outside the windows of every `lehr.Calendar` that selects the asset."""

    name = "calendar"

    def __init__(self) -> None:
        self._calendars = Governing(
            CALENDAR_TYPE, Calendar, lambda payload: _Prepared(payload.select, payload, payload.weekly())
        )

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return [
            _verdict(asset.id, prepared, request, read)
            for asset, prepared in self._calendars.selecting(request, read)
        ]


def _verdict(id: AssetId, prepared: _Prepared, request: CheckRequest, read: CheckReader) -> Verdict:
    check = f"{CalendarCheck.name}/{id}"
    if prepared.weekly.open_at(request.now):
        return Verdict(check, allow=True)
    override = _override(id, request, read)
    if override is not None and prepared.calendar.override:
        message = f"{id} is closed; override {override.id} by {override.actor}: {override.reason}"
        return Verdict(check, allow=True, reason=Reason.OVERRIDDEN, message=message, overridden=override.id)
    until = prepared.weekly.next_opening(request.now)
    local = prepared.weekly.local(until)
    zone = prepared.calendar.timezone
    opens = f"{_DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M} ({zone})"
    refused = f"; override {override.id} by {override.actor} does not apply here" if override else ""
    allowed = (
        "in an emergency, use lehr override --check"
        if prepared.calendar.override
        else "no override is allowed by"
    )
    return Verdict(
        check,
        allow=False,
        reason=Reason.OUTSIDE_WINDOW,
        message=f"{id} is closed until {opens}{refused}",
        unblock=f"wait for the window; {allowed} {id}",
        until=until,
    )


def _override(id: AssetId, request: CheckRequest, read: CheckReader) -> Control | None:
    """The first active override of this calendar; overrides of others do not count."""
    overrides = (item for item in active_controls(ControlKind.OVERRIDE, request, read) if item.check == id)
    # The operator saw the assets that it selects now, and no others.
    return next((item for item in overrides if item.selector.matches(request.newest)), None)


def _minutes(name: str, text: str) -> int:
    if not _TIME.fullmatch(text):
        raise ValueError(f"{name} {text!r} is not a valid time of day: write HH:MM, from 00:00 to 24:00")
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        known = {zone.lower(): zone for zone in zoneinfo.available_timezones()}
        # People often write only the city, without the region.
        known |= {zone.rpartition("/")[2].lower(): zone for zone in known.values() if "/" in zone}
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = (
            f"did you mean {known[close[0]]}?" if close else "use an IANA name such as Europe/Berlin or UTC"
        )
        raise ValueError(f"unknown time zone {name!r}: {hint}") from error
