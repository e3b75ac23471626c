"""Events of an iCalendar file as closed times. The one module that knows the libraries.

Recurrences without an end cannot be listed, so events are expanded month by month, when a check asks.
"""

from __future__ import annotations

import datetime as dt
import re
import warnings
import zoneinfo
from collections.abc import Iterator
from typing import Any

from lehr.checks.closed_times import Closed
from lehr.checks.weekly import DAY
from lehr.model.types import TextProblem
from lehr.model.workspace_file import WorkspaceText

_MONTH = 31 * DAY
_MOST_MONTHS = 64
_TOO_OFTEN = ("SECONDLY", "MINUTELY", "HOURLY")
_DAYS_BETWEEN = {"DAILY": 1, "WEEKLY": 7}
_TOO_FINE = ("BYSECOND", "BYMINUTE", "BYHOUR")
_TZID = re.compile(r';TZID="?([^";:]+)"?[;:]', re.IGNORECASE)


class EventTimes:
    """Closed during events, or outside them."""

    def __init__(self, text: str, zone: zoneinfo.ZoneInfo, *, outside: bool = False) -> None:
        """Days and times without a time zone are those of `zone`."""
        self._text = text
        self._zone = zone
        self._outside = outside
        self._query: Any = None
        self._months: dict[int, list[tuple[float, Closed]]] = {}

    def at(self, moment: float) -> Closed | None:
        month = int(moment // _MONTH)
        events = self._month(month)
        found = [closed for start, closed in events if start <= moment < closed.until]
        if self._outside:
            # Events of the next month are looked at when it begins.
            starts = [start for start, _ in events if start > moment]
            return None if found else Closed(min([*starts, (month + 1) * _MONTH]))
        return max(found, key=lambda closed: closed.until) if found else None

    def _month(self, month: int) -> list[tuple[float, Closed]]:
        if month not in self._months:
            if len(self._months) >= _MOST_MONTHS:
                self._months.clear()
            self._months[month] = list(self._events(month * _MONTH - DAY, (month + 1) * _MONTH + DAY))
        return self._months[month]

    def _events(self, start: int, end: int) -> Iterator[tuple[float, Closed]]:
        if self._query is None:
            import recurring_ical_events  # noqa: PLC0415

            self._query = recurring_ical_events.of(_parsed(self._text))
        span = [dt.datetime.fromtimestamp(moment, self._zone) for moment in (start, end)]
        for event in self._query.between(*span):
            if str(event.get("STATUS", "")).upper() != "CANCELLED":
                closed = Closed(self._moment(event.end), str(event.get("SUMMARY", "")).strip())
                yield self._moment(event.start), closed

    def _moment(self, value: dt.date) -> float:
        if not isinstance(value, dt.datetime):
            value = dt.datetime.combine(value, dt.time())
        return (value if value.tzinfo else value.replace(tzinfo=self._zone)).timestamp()


def ical_problems(file: WorkspaceText, *, outside: bool = False) -> Iterator[TextProblem]:
    """Problems of an iCalendar file; none if its text is missing."""
    if file.text is None:
        return
    try:
        calendar = _parsed(file.text)
    except (ValueError, LookupError, TypeError) as error:
        yield TextProblem(file.file, 1, f"it is not an iCalendar file: {error}", "export the calendar again")
        return
    for line, name in _unknown_zones(file.text):
        fix = "use an IANA name, or add its VTIMEZONE"
        yield TextProblem(file.file, line, f"the time zone {name!r} is not known", fix)
    begins = [number for number, line in _lines(file.text) if line.strip().upper() == "BEGIN:VEVENT"]
    events = calendar.walk("VEVENT")
    if not events:
        yield TextProblem(file.file, 1, "it has no events", "add a VEVENT, or remove `ical`")
    for line, event in zip(begins, events, strict=False):
        for what, fix in _event_problems(event, outside=outside):
            name = str(event.get("SUMMARY", "")) or "without a summary"
            yield TextProblem(file.file, line, f"event {name!r}: {what}", fix)


def _parsed(text: str) -> Any:
    # Takes 70 ms, and most commands read no calendar.
    import icalendar  # noqa: PLC0415

    # Otherwise a VTIMEZONE would also define this name for all files that are read later.
    icalendar.timezone.tzp.use("zoneinfo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return icalendar.Calendar.from_ical(text)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Its lines, with those that continue them, and where each begins."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line[:1] in (" ", "\t") and found:
            found[-1] = (found[-1][0], found[-1][1] + line[1:])
        else:
            found.append((number, line))
    return iter(found)


def _unknown_zones(text: str) -> Iterator[tuple[int, str]]:
    """Lines and names of time zones that neither the file nor the IANA database defines."""
    import icalendar  # noqa: PLC0415

    reported = set[str]()
    for number, line in _lines(text):
        for name in _TZID.findall(line.partition(":")[0] + ":"):
            # Those that the file defines are known since it was parsed.
            if name not in reported and icalendar.timezone.tzp.timezone(name) is None:
                reported.add(name)
                yield number, name


def _event_problems(event: Any, *, outside: bool) -> Iterator[tuple[str, str]]:
    if event.errors:
        name, what = event.errors[0]
        yield f"{name} cannot be read: {what}", "correct it"
        return
    if "DTSTART" not in event:
        yield "it has no DTSTART", "add one"
        return
    try:
        length = event.end - event.start
    except ValueError as error:
        yield str(error), "correct it"
        return
    except TypeError:
        yield "only one of DTSTART and DTEND has a time zone", "write it in both"
        return
    if length < dt.timedelta(0):
        yield "it ends before it begins", "swap DTSTART and DTEND"
    elif not length:
        yield "it has no end", "add DTEND or DURATION"
    rules = event.get("RRULE", [])
    for rule in rules if isinstance(rules, list) else [rules]:
        yield from _rule_problems(rule, length, outside=outside)


def _rule_problems(rule: Any, length: dt.timedelta, *, outside: bool) -> Iterator[tuple[str, str]]:
    (often,) = {str(item).upper() for item in rule["FREQ"]}
    if often in _TOO_OFTEN or any(part in rule for part in _TOO_FINE):
        yield "it repeats more often than daily", "use a rule that repeats daily, or several events"
    days = _DAYS_BETWEEN.get(often)
    if days is not None and not outside and rule.keys() <= {"FREQ", "INTERVAL", "WKST"}:
        interval = int(rule.get("INTERVAL", [1])[0])
        if length >= dt.timedelta(days=days * interval):
            yield "it repeats before it ends, for ever: the calendar would never open", "use a lehr.Freeze"
