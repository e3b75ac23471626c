"""Closed times of calendars from now on: to the second, and closed where a calendar cannot be read."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec

from lehr.checks.calendar import Calendar
from lehr.checks.closed_spans import closed_spans
from lehr.model.workspace_file import WorkspaceText

MONDAY = dt.datetime(2026, 11, 23, tzinfo=dt.UTC).timestamp()
DAY, HOUR = 86_400.0, 3600.0
OFFICE = [{"days": ["mon", "tue", "wed", "thu", "fri"], "from": "08:00", "to": "18:00"}]
EVENT = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:1
SUMMARY:fair
DTSTART:20261125T100000Z
DTEND:20261125T103000Z
END:VEVENT
END:VCALENDAR
"""


def calendar(**fields: Any) -> Calendar:
    return msgspec.convert({"select": {"ids": ["a"]}, "timezone": "UTC", **fields}, Calendar)


def hours(found: Any) -> list[tuple[float, float]]:
    return [((start - MONDAY) / HOUR, (end - MONDAY) / HOUR) for start, end in found]


def test_nights_and_weekends_are_closed() -> None:
    found = closed_spans(calendar(windows=OFFICE), MONDAY, MONDAY + 7 * DAY)
    nights = [(day * 24 + 18.0, day * 24 + 32.0) for day in range(4)]
    assert hours(found) == [(0, 8), *nights, (4 * 24 + 18, 7 * 24 + 8)]


def test_a_span_may_begin_within_a_minute_and_before_the_start() -> None:
    odd = MONDAY + 10 * HOUR + 17.5
    once = [{"from": "2026-11-23T12:00:30", "to": "2026-11-23T13:00:30", "reason": "fair"}]
    found = closed_spans(calendar(closed=once), odd, odd + DAY)
    assert hours(found) == [(12 + 30 / 3600, 13 + 30 / 3600)]
    assert closed_spans(calendar(windows=OFFICE), MONDAY + HOUR, MONDAY + 2 * HOUR) == [
        (MONDAY + HOUR, MONDAY + 8 * HOUR)
    ]


def test_events_of_an_icalendar_file_are_closed() -> None:
    given = msgspec.structs.replace(calendar(windows=OFFICE), ical=WorkspaceText("fair.ics", text=EVENT))
    found = closed_spans(given, MONDAY + 2 * DAY + 9 * HOUR, MONDAY + 2 * DAY + 12 * HOUR)
    assert hours(found) == [(58, 58.5)]


def test_a_calendar_that_cannot_be_read_has_no_open_times() -> None:
    for text in (None, "BEGIN:NOTHING", "", "\0"):
        given = msgspec.structs.replace(calendar(windows=OFFICE), ical=WorkspaceText("fair.ics", text=text))
        assert closed_spans(given, MONDAY, MONDAY + DAY) is None
