"""Calendar: pushes start in weekly windows; an emergency override may let them through."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from lehr.checks.governing_assets import Governing, standing
from lehr.checks.weekly import DAY, Span, Weekly
from lehr.model.asset import AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Verdict
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


_DAYS: tuple[str, ...] = get_args(Day)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stretch of time on some days of the week.

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
            raise ValueError(f"a window without days never opens: name some of {', '.join(_DAYS)}")
        start, end = _minutes("from", self.start), _minutes("to", self.end)
        if start == end:
            raise ValueError(
                f"from and to are both {self.start}, which says nothing: a whole day is 00:00 to 24:00"
            )
        if self.start == "24:00":
            raise ValueError("a window cannot begin at 24:00: write 00:00 and the day after")

    def spans(self) -> Iterator[Span]:
        """Its times, in seconds since Monday 00:00."""
        start, end = _minutes("from", self.start) * 60, _minutes("to", self.end) * 60
        for day in self.days:
            midnight = _DAYS.index(day) * DAY
            yield midnight + start, midnight + end + (DAY if end < start else 0)


class Calendar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Push the assets selected within these windows only.

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
            raise ValueError("a calendar without windows would never allow a push: that is a lehr.Freeze")

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
    refused = f"; override {override.id} by {override.actor} does not count here" if override else ""
    allowed = "give an emergency override of" if prepared.calendar.override else "no override is allowed by"
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
    overrides = (item for item in standing(ControlKind.OVERRIDE, request, read) if item.check == id)
    # The operator was shown the assets that it selects now, and no others.
    return next((item for item in overrides if item.selector.matches(request.newest)), None)


def _minutes(name: str, text: str) -> int:
    if not _TIME.fullmatch(text):
        raise ValueError(f"{name} {text!r} is no time of day: write HH:MM, from 00:00 to 24:00")
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        known = {zone.lower(): zone for zone in zoneinfo.available_timezones()}
        # People often know the city, not the region, and write the city.
        known |= {zone.rpartition("/")[2].lower(): zone for zone in known.values() if "/" in zone}
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = (
            f"did you mean {known[close[0]]}?" if close else "use an IANA name such as Europe/Berlin or UTC"
        )
        raise ValueError(f"time zone {name!r} is not known: {hint}") from error
