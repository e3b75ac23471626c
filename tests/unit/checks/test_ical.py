"""Events of iCalendar files as closed times, compared with what clocks show."""

import datetime as dt
import subprocess
import sys
import zoneinfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.checks.calendar import Calendar
from lehr.checks.closed_times import Closed, Opening, next_opening
from lehr.checks.ical import EventTimes, ical_problems
from lehr.model.workspace_file import WorkspaceText
from tests.unit.checks.test_weekly import seconds

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
OURS = """\
BEGIN:VTIMEZONE
TZID:Ours
BEGIN:STANDARD
DTSTART:20001029T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:20000326T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
END:VTIMEZONE"""


def ical(*events: str, before: str = "") -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//example//EN", *before.splitlines()]
    for number, event in enumerate(events):
        uid = [] if "UID:" in event else [f"UID:{number}"]
        lines += ["BEGIN:VEVENT", *uid, *event.split(" | "), "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR", ""])


def closed(text: str, first: str, last: str, zone: zoneinfo.ZoneInfo = BERLIN) -> list[str]:
    """The times at which it is closed, looked at every quarter of an hour."""
    times, found, start = EventTimes(text, zone), [], None
    for moment in range(seconds(first), seconds(last), 900):
        is_closed = times.at(moment) is not None
        if is_closed != (start is not None):
            if start is not None:
                found.append(f"{shown(start)}/{shown(moment)}")
            start = moment if is_closed else None
    assert start is None
    return found


def shown(moment: int) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%m-%dT%H:%M")


def test_an_event_closes_and_says_why() -> None:
    times = EventTimes(ical("SUMMARY:sale | DTSTART:20261127T000000Z | DURATION:PT9H"), BERLIN)
    assert times.at(seconds("2026-11-26T23:59:59Z")) is None
    for moment in ("2026-11-27T00:00Z", "2026-11-27T08:59:59Z"):
        assert times.at(seconds(moment)) == Closed(seconds("2026-11-27T09:00Z"), "sale")
    assert times.at(seconds("2026-11-27T09:00Z")) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        # Two o'clock does not exist on 29 March 2026.
        (
            (
                "DTSTART;TZID=Europe/Berlin:20260328T030000 | DTEND;TZID=Europe/Berlin:20260328T040000"
                " | RRULE:FREQ=DAILY;COUNT=3"
            ),
            ["03-28T02:00/03-28T03:00", "03-29T01:00/03-29T02:00", "03-30T01:00/03-30T02:00"],
        ),
        # Without a time zone: that of the calendar.
        (
            "DTSTART:20260328T100000 | DTEND:20260328T110000 | RRULE:FREQ=DAILY;COUNT=2",
            ["03-28T09:00/03-28T10:00", "03-29T08:00/03-29T09:00"],
        ),
        # EXDATE in UTC and in a zone whose clocks have changed already.
        (
            (
                "DTSTART;TZID=Europe/Berlin:20260327T100000 | DTEND;TZID=Europe/Berlin:20260327T110000"
                " | EXDATE:20260328T090000Z | EXDATE;TZID=America/New_York:20260329T040000"
                " | RRULE:FREQ=DAILY;UNTIL=20260331T080000Z"
            ),
            ["03-27T09:00/03-27T10:00", "03-30T08:00/03-30T09:00", "03-31T08:00/03-31T09:00"],
        ),
        # Whole days: midnight to midnight of the calendar's zone, over the change of clocks.
        ("DTSTART;VALUE=DATE:20260328 | DTEND;VALUE=DATE:20260330", ["03-27T23:00/03-29T22:00"]),
        ("DTSTART;VALUE=DATE:20260329", ["03-28T23:00/03-29T22:00"]),
        ("DTSTART:20260328T100000Z | DTEND:20260328T110000Z | STATUS:CANCELLED", []),
        (
            "DTSTART:20260328T100000Z | DTEND:20260328T110000Z | RDATE:20260330T120000Z",
            ["03-28T10:00/03-28T11:00", "03-30T12:00/03-30T13:00"],
        ),
    ],
)
def test_rules_of_an_event(event: str, expected: list[str]) -> None:
    assert closed(ical(event), "2026-03-26T00:00Z", "2026-04-05T00:00Z") == expected


def test_one_event_of_a_series_is_moved_and_another_cancelled() -> None:
    series = "UID:a | DTSTART:20260302T100000Z | DTEND:20260302T110000Z | RRULE:FREQ=WEEKLY;COUNT=4"
    moved = "UID:a | RECURRENCE-ID:20260309T100000Z | DTSTART:20260310T120000Z | DTEND:20260310T130000Z"
    off = (
        "UID:a | RECURRENCE-ID:20260316T100000Z | DTSTART:20260316T100000Z | DTEND:20260316T110000Z"
        " | STATUS:CANCELLED"
    )
    assert closed(ical(series, moved, off), "2026-03-01T00:00Z", "2026-04-01T00:00Z") == [
        "03-02T10:00/03-02T11:00",
        "03-10T12:00/03-10T13:00",
        "03-23T10:00/03-23T11:00",
    ]


def test_a_file_may_define_its_time_zone() -> None:
    event = "DTSTART;TZID=Ours:20260320T100000 | DTEND;TZID=Ours:20260320T110000 | RRULE:FREQ=WEEKLY;COUNT=3"
    text = ical(event, before=OURS)
    assert closed(text, "2026-03-01T00:00Z", "2026-04-30T00:00Z") == [
        "03-20T09:00/03-20T10:00",
        "03-27T09:00/03-27T10:00",
        "04-03T08:00/04-03T09:00",
    ]
    assert list(problems(text)) == []


def test_a_time_zone_of_one_file_is_not_that_of_another() -> None:
    event = "DTSTART;TZID=Ours:20260720T100000 | DTEND;TZID=Ours:20260720T110000"
    first, last = "2026-07-20T00:00Z", "2026-07-21T00:00Z"
    assert closed(ical(event, before=OURS), first, last) == ["07-20T08:00/07-20T09:00"]
    other = OURS.replace("+0200", "+0500").replace("+0100", "+0400")
    assert closed(ical(event, before=other), first, last) == ["07-20T05:00/07-20T06:00"]
    assert [what for _line, what in problems(ical(event))] == ["the time zone 'Ours' is not known"]


def test_an_event_longer_than_a_month_is_closed_throughout() -> None:
    text = ical("DTSTART:20260101T000000Z | DTEND:20270101T000000Z")
    times = EventTimes(text, BERLIN)
    for month in range(1, 13):
        assert times.at(seconds(f"2026-{month:02}-15T00:00Z")) == Closed(seconds("2027-01-01T00:00Z"), "")


def test_a_calendar_may_be_open_during_events_only() -> None:
    text = ical("DTSTART:20260107T100000Z | DURATION:PT2H | RRULE:FREQ=MONTHLY;INTERVAL=3;BYDAY=1WE")
    raw = {"select": {"all": True}, "timezone": "UTC", "ical": {"file": "a", "text": text}}
    times = msgspec.convert(raw | {"events": "open"}, Calendar).times()
    for before, opens in (
        ("2026-01-01T00:00Z", "2026-01-07T10:00Z"),
        ("2026-01-07T12:00Z", "2026-04-01T10:00Z"),
        ("2026-04-01T12:00Z", "2026-07-01T10:00Z"),
    ):
        assert next_opening(times, seconds(before)) == Opening(seconds(opens), ())
        assert next_opening(times, seconds(opens)) is None
        assert next_opening(times, seconds(opens) + 7199) is None


def test_no_event_in_two_years_does_not_open() -> None:
    text = ical("DTSTART:20260107T100000Z | DURATION:PT2H")
    found = next_opening([EventTimes(text, BERLIN, outside=True)], seconds("2026-02-01T00:00Z"))
    assert found is not None
    assert found.at > seconds("2028-02-01T00:00Z")


def test_an_event_that_never_ends_may_keep_a_calendar_open() -> None:
    text = ical("DTSTART;VALUE=DATE:20260101 | RRULE:FREQ=DAILY")
    assert list(ical_problems(WorkspaceText("a.ics", text=text), outside=True)) == []


@settings(max_examples=30)
@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    st.dates(dt.date(2025, 1, 1), dt.date(2026, 12, 31)),
    st.integers(0, 23),
    st.integers(1, 30),
    st.integers(1, 9),
    st.integers(0, 800),
)
def test_a_daily_event_is_at_the_same_time_on_the_wall(
    name: str, first: dt.date, hour: int, hours: int, step: int, later: int
) -> None:
    zone = zoneinfo.ZoneInfo(name)
    start = dt.datetime.combine(first, dt.time(hour))
    end = start + dt.timedelta(hours=hours)
    event = f"DTSTART;TZID={name}:{start:%Y%m%dT%H%M%S} | DTEND;TZID={name}:{end:%Y%m%dT%H%M%S}"
    times = EventTimes(ical(f"{event} | RRULE:FREQ=DAILY;INTERVAL={step}"), BERLIN)
    moment = dt.datetime.combine(first + dt.timedelta(days=later), dt.time(12), zone).timestamp()
    spans = []
    for day in range(0, later + 3, step):
        begins = (start + dt.timedelta(days=day)).replace(tzinfo=zone)
        if (begins.astimezone(dt.UTC).astimezone(zone)).hour != hour:
            return  # a time that clocks skip: RFC 5545 and programs differ
        ends = (end + dt.timedelta(days=day)).replace(tzinfo=zone)
        if ends.astimezone(dt.UTC).astimezone(zone).hour != ends.hour or hours < 3:
            return
        spans.append((begins.timestamp(), ends.timestamp()))
    expected = [ends for begins, ends in spans if begins <= moment < ends]
    found = times.at(moment)
    assert (None if found is None else found.until) == max(expected, default=None)


def problems(text: str) -> list[tuple[int, str]]:
    return [(item.line, item.what) for item in ical_problems(WorkspaceText("a.ics", text=text))]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("garbage", 1, "not an iCalendar file"),
        ("", 1, "not an iCalendar file"),
        ("BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n", 1, "no events"),
        (ical("DTSTART:20260101T000000Z"), 4, "no end"),
        (ical("DTSTART:20260101T000000Z | DTEND:20250101T000000Z"), 4, "ends before it begins"),
        (ical("DTSTART;VALUE=DATE:20260101 | DTEND:20260102T000000Z"), 4, "must be of the same type"),
        (ical("DTSTART:20260101T000000 | DTEND:20260102T000000Z"), 4, "only one of DTSTART and DTEND"),
        (ical("DTSTART;VALUE=DATE:20260101 | RRULE:FREQ=DAILY"), 4, "never open"),
        (ical("SUMMARY:x"), 4, "no DTSTART"),
        (ical("DTSTART:2026 | DTEND:20260102T000000Z"), 4, "DTSTART cannot be read"),
        (ical("DTSTART:20260101T000000Z | DURATION:PT1H | RRULE:FREQ=SOMETIMES"), 4, "RRULE cannot be read"),
        (
            ical("DTSTART:20260101T000000Z | DURATION:PT1M | RRULE:FREQ=MINUTELY"),
            4,
            "more often than daily",
        ),
        (
            ical("DTSTART:20260101T000000Z | DURATION:PT1M | RRULE:FREQ=DAILY;BYMINUTE=1,2"),
            4,
            "more often than daily",
        ),
        (ical("DTSTART;TZID=Mars/Olympus:20260101T000000 | DURATION:PT1M"), 6, "'Mars/Olympus' is not known"),
        (ical("DTSTART;TZID=Mars/Oly\r\n mpus:20260101T000000 | DURATION:PT1M"), 6, "'Mars/Olympus'"),
    ],
)
def test_what_cannot_be_meant_is_reported_with_its_line(text: str, line: int, says: str) -> None:
    assert [(at, says in what) for at, what in problems(text)] == [(line, True)]


def test_a_missing_text_is_reported_elsewhere() -> None:
    assert list(ical_problems(WorkspaceText("a.ics"))) == []


def test_the_libraries_are_imported_when_a_calendar_has_a_file() -> None:
    code = (
        "import sys, lehr.checks\n"
        "assert not {'icalendar', 'recurring_ical_events', 'dateutil'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=150)
