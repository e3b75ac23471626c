import datetime as dt
import zoneinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lehr.checks.weekly import DAY, WEEK, Span, Weekly

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",  # changed at midnight
    "Asia/Kathmandu",  # +05:45
    "Australia/Lord_Howe",  # by half an hour
    "Africa/Casablanca",  # around Ramadan
    "Pacific/Apia",  # left out 30 December 2011
]
CHANGES = {  # a few minutes before something happens there
    "Europe/Berlin": ["2026-03-29T00:55Z", "2026-10-25T00:00Z"],
    "America/New_York": ["2026-03-08T06:55Z", "2026-11-01T05:00Z"],
    "America/Sao_Paulo": ["2018-11-04T02:55Z", "2018-02-18T01:00Z"],
    "Australia/Lord_Howe": ["2026-10-03T15:25Z", "2026-04-04T14:30Z"],
    "Pacific/Apia": ["2011-12-30T09:55Z"],
}


def seconds(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp())


def shown(zone: zoneinfo.ZoneInfo, moment: int) -> int:
    """Seconds since Monday 00:00 that a clock on the wall shows."""
    local = dt.datetime.fromtimestamp(moment, zone)
    return local.weekday() * DAY + local.hour * 3600 + local.minute * 60 + local.second


def open_by_the_wall(zone: zoneinfo.ZoneInfo, spans: list[Span], moment: int) -> bool:
    at = shown(zone, moment)
    return any(start <= at < end or start <= at + WEEK < end for start, end in spans)


@st.composite
def spans(draw: st.DrawFn) -> list[Span]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        day = draw(st.sampled_from([5, 6, 6, 6, 0, 3]))  # most changes are on Sundays
        start = day * DAY + draw(st.integers(0, 24 * 4 - 1)) * 900
        found.append((start, start + draw(st.integers(1, 16)) * 900))
    return found


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, int]:
    name = draw(st.sampled_from(ZONES))
    if name in CHANGES and draw(st.booleans()):
        near = seconds(draw(st.sampled_from(CHANGES[name])))
        return name, near + draw(st.integers(-2 * 24 * 60, 120)) * 60
    return name, draw(st.integers(seconds("2011-12-01T00:00Z"), seconds("2037-01-01T00:00Z")))


@given(moments(), spans())
@example(("Europe/Berlin", seconds("2026-03-29T00:30Z")), [(6 * DAY + 7200, 6 * DAY + 9000)])
@example(("Europe/Berlin", seconds("2026-10-25T00:30Z")), [(6 * DAY + 7200, 6 * DAY + 9000)])
@example(("Pacific/Apia", seconds("2011-12-30T09:55Z")), [(4 * DAY, 5 * DAY)])
def test_the_next_opening_is_the_first_minute_at_which_a_clock_on_the_wall_is_inside(
    where: tuple[str, int], windows: list[Span]
) -> None:
    name, moment = where
    zone = zoneinfo.ZoneInfo(name)
    weekly = Weekly(zone, windows)
    found = weekly.next_opening(moment)

    assert weekly.open_at(moment) == open_by_the_wall(zone, windows, moment)
    assert weekly.open_at(found)
    if weekly.open_at(moment):
        assert found == moment
        return
    # Windows begin, and zones change, at whole minutes.
    minutes = range(moment - moment % 60 + 60, int(found) + 1, 60)
    assert found % 60 == 0
    assert open_by_the_wall(zone, windows, int(found))
    assert not any(open_by_the_wall(zone, windows, minute) for minute in minutes[:-1])


@pytest.mark.parametrize(
    ("zone", "span", "now", "opens"),
    [
        ("UTC", (8 * 3600, 9 * 3600), "2026-01-05T07:00Z", "2026-01-05T08:00Z"),
        ("UTC", (8 * 3600, 9 * 3600), "2026-01-05T09:00Z", "2026-01-12T08:00Z"),
        ("Europe/Berlin", (8 * 3600, 9 * 3600), "2026-03-28T12:00Z", "2026-03-30T06:00Z"),
        # 02:00 to 02:30 does not exist on 29 March 2026: the window opens a week later.
        ("Europe/Berlin", (6 * DAY + 7200, 6 * DAY + 9000), "2026-03-29T00:00Z", "2026-04-05T00:00Z"),
        # 02:30 to 04:00 begins with the hour after the one left out.
        ("Europe/Berlin", (6 * DAY + 9000, 6 * DAY + 14400), "2026-03-29T00:00Z", "2026-03-29T01:00Z"),
        # 02:00 to 02:30 comes twice on 25 October 2026.
        ("Europe/Berlin", (6 * DAY + 7200, 6 * DAY + 9000), "2026-10-24T23:00Z", "2026-10-25T00:00Z"),
        ("Europe/Berlin", (6 * DAY + 7200, 6 * DAY + 9000), "2026-10-25T00:30Z", "2026-10-25T01:00Z"),
        ("Europe/Berlin", (6 * DAY + 7200, 6 * DAY + 9000), "2026-10-25T01:30Z", "2026-11-01T01:00Z"),
    ],
)
def test_openings_around_changes_of_the_clock(zone: str, span: Span, now: str, opens: str) -> None:
    found = Weekly(zoneinfo.ZoneInfo(zone), [span]).next_opening(seconds(now))
    assert found == seconds(opens)


def test_a_window_over_the_end_of_the_week_is_open_on_monday_morning() -> None:
    weekly = Weekly(zoneinfo.ZoneInfo("UTC"), [(6 * DAY + 22 * 3600, 7 * DAY + 6 * 3600)])
    assert weekly.open_at(seconds("2026-01-05T05:59:59Z"))
    assert not weekly.open_at(seconds("2026-01-05T06:00Z"))


def test_a_fraction_of_a_second_before_the_opening_is_closed() -> None:
    weekly = Weekly(zoneinfo.ZoneInfo("UTC"), [(8 * 3600, 9 * 3600)])
    opening = seconds("2026-01-05T08:00Z")
    assert not weekly.open_at(opening - 0.001)
    assert weekly.next_opening(opening - 0.001) == opening
    assert weekly.next_opening(opening + 0.5) == opening + 0.5
