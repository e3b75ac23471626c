"""Calendar: pushes start in weekly windows, and not at closed times.

Rollbacks pass, and an emergency override may let other pushes through.
"""

from __future__ import annotations

import datetime as dt
import difflib
import functools
import zoneinfo
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from lehr.checks.closed_times import (
    ClosedTime,
    ClosedTimes,
    Opening,
    OutsideWeekly,
    complement,
    next_opening,
    seconds_of_day,
)
from lehr.checks.governing_assets import Governing, active_controls
from lehr.checks.holidays import Holidays
from lehr.checks.ical import EventTimes, ical_problems
from lehr.checks.weekly import DAY, DAYS, WEEK, Day, Span, Weekly
from lehr.model.asset import AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Verdict
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import AssetType, TextProblem
from lehr.model.workspace_file import WorkspaceText
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest


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
            raise ValueError(f"a window without days never opens: add some of {', '.join(DAYS)}")
        start, end = seconds_of_day("from", self.start), seconds_of_day("to", self.end)
        if start == end:
            raise ValueError(f"from and to are both {self.start}: a whole day is 00:00 to 24:00")
        if self.start == "24:00":
            raise ValueError("a window cannot begin at 24:00: use 00:00 of the next day")

    def spans(self) -> Iterator[Span]:
        """Its times, in seconds since Monday 00:00."""
        start, end = seconds_of_day("from", self.start), seconds_of_day("to", self.end)
        for day in self.days:
            midnight = DAYS.index(day) * DAY
            yield midnight + start, midnight + end + (DAY if end < start else 0)


class Calendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Push the selected assets only within these windows, and not at closed times.

    Where several calendars select one asset, all of them must be open. Rollbacks are never delayed.

    Attributes:
        select: which assets.
        timezone: IANA name (`Europe/Berlin`, `UTC`).
        windows: when pushes may start; without any, always.
        override: whether an emergency override lets pushes through while the calendar is closed.
        closed: when pushes may not start, although a window is open.
        holidays: days on which pushes may not start.
        ical: iCalendar file of the workspace. A text is short for the mapping with that `file`.
        events: whether the calendar is `closed` during the events of that file, or `open` only during
            them.
    """

    select: Selector
    timezone: str
    windows: tuple[Window, ...] = ()
    override: bool = False
    closed: tuple[ClosedTime, ...] = ()
    holidays: Holidays | None = None
    ical: WorkspaceText | str | None = None
    events: Literal["closed", "open"] = "closed"

    def __post_init__(self) -> None:
        if isinstance(self.ical, str):
            msgspec.structs.force_setattr(self, "ical", WorkspaceText(self.ical))
        zone_of(self.timezone)
        if not (self.windows or self.closed or self.holidays or self.ical):
            raise ValueError(
                "a calendar without windows, closed times, holidays and ical never closes: "
                "add one of them, or use a lehr.Freeze"
            )
        if not _ever_opens(self.windows, self.closed):
            raise ValueError("the closed times cover every window: use a lehr.Freeze to stop pushes")

    def times(self) -> list[ClosedTimes]:
        """When it is closed."""
        zone = zone_of(self.timezone)
        windows = [OutsideWeekly(Weekly(zone, _open_spans(self.windows)))] if self.windows else []
        holidays = [self.holidays.times(zone)] if self.holidays else []
        file, outside = self.ical_file(), self.events == "open"
        events = [EventTimes(file.text or "", zone, outside=outside)] if file else []
        return [*windows, *(item.times(zone) for item in self.closed), *holidays, *events]

    def ical_file(self) -> WorkspaceText | None:
        """The iCalendar file."""
        assert not isinstance(self.ical, str)
        return self.ical


def _open_spans(windows: tuple[Window, ...]) -> list[Span]:
    return [span for window in windows for span in window.spans()] or [(0, WEEK)]


@functools.lru_cache(256)  # a calendar is decoded each time it is read, and checked each time
def _ever_opens(windows: tuple[Window, ...], closed: tuple[ClosedTime, ...]) -> bool:
    weekly = [span for item in closed if (span := item.span()) is not None]
    return bool(complement([*complement(_open_spans(windows)), *weekly]))


def _text_problems(calendar: Calendar) -> Iterable[TextProblem]:
    file = calendar.ical_file()
    return () if file is None else ical_problems(file, outside=calendar.events == "open")


CALENDAR_TYPE = AssetType("lehr.Calendar", Calendar, governs=True, text_problems=_text_problems)


class _Prepared(msgspec.Struct, frozen=True):
    select: Selector
    calendar: Calendar
    times: Sequence[ClosedTimes]


class CalendarCheck(CheckPlugin):
    """Waits while a `lehr.Calendar` that selects the asset is closed."""

    name = "calendar"

    def __init__(self) -> None:
        self._calendars = Governing(
            CALENDAR_TYPE, Calendar, lambda payload: _Prepared(payload.select, payload, payload.times())
        )

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return [
            _verdict(asset.id, prepared, request, read)
            for asset, prepared in self._calendars.selecting(request, read)
        ]


def _verdict(id: AssetId, prepared: _Prepared, request: CheckRequest, read: CheckReader) -> Verdict:
    check = f"{CalendarCheck.name}/{id}"
    opening = next_opening(prepared.times, request.now)
    if opening is None:
        return Verdict(check, allow=True)
    if request.purpose is Purpose.ROLLBACK:
        # The newer content may be what is broken.
        return Verdict(check, allow=True, message=f"{id} is closed, but does not delay rollbacks")
    override = _override(id, request, read)
    if override is not None and prepared.calendar.override:
        message = f"{id} is closed; override {override.id} by {override.actor}: {override.reason}"
        return Verdict(check, allow=True, reason=Reason.OVERRIDDEN, message=message, overridden=override.id)
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
        message=f"{id} is closed until {_shown(opening, prepared.calendar.timezone)}{refused}",
        unblock=f"wait for the window; {allowed} {id}",
        until=opening.at,
    )


def _shown(opening: Opening, timezone: str) -> str:
    local = dt.datetime.fromtimestamp(opening.at, zone_of(timezone))
    why = f": {'; '.join(opening.reasons)}" if opening.reasons else ""
    return f"{DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M} ({timezone}){why}"


def _override(id: AssetId, request: CheckRequest, read: CheckReader) -> Control | None:
    """The first active override of this calendar; overrides of others do not count."""
    overrides = (item for item in active_controls(ControlKind.OVERRIDE, request, read) if item.check == id)
    # The operator saw the assets that it selects now, and no others.
    return next((item for item in overrides if item.selector.matches(request.newest)), None)


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """The time zone with this IANA name.

    Raises:
        ValueError: there is none.
    """
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
