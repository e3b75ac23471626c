"""Closed times of calendars: what they close, and when all of them are over."""

import datetime as dt
import zoneinfo

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lehr.checks.calendar import Calendar
from lehr.checks.closed_times import Opening, next_opening
from lehr.checks.weekly import DAYS
from tests.unit.checks.test_weekly import ZONES, seconds

BERLIN = "Europe/Berlin"
ALL = {"all": True}
OFFICE = {"days": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "17:00"}
WEEKEND = {"from": "fri 16:00", "to": "mon 06:00", "reason": "weekend"}


def calendar(**fields: object) -> Calendar:
    return msgspec.convert({"select": ALL, "timezone": BERLIN} | fields, Calendar)


def opening(moment: str, **fields: object) -> Opening | None:
    return next_opening(calendar(**fields).times(), seconds(moment))


def once(start: str, end: str, reason: str = "sale") -> dict[str, str]:
    return {"from": start, "to": end, "reason": reason}


def test_a_weekly_closed_time_runs_over_the_end_of_the_week() -> None:
    assert opening("2026-01-02T14:59Z", closed=[WEEKEND]) is None
    for moment in ("2026-01-02T15:00Z", "2026-01-04T12:00Z", "2026-01-05T04:59Z"):
        assert opening(moment, closed=[WEEKEND]) == Opening(seconds("2026-01-05T05:00Z"), ("weekend",))
    assert opening("2026-01-05T05:00Z", closed=[WEEKEND]) is None


def test_a_closed_time_overrules_a_window() -> None:
    found = opening("2026-01-02T15:00Z", windows=[OFFICE], closed=[WEEKEND])
    assert found == Opening(seconds("2026-01-05T08:00Z"), ("weekend",))


@pytest.mark.parametrize(
    ("start", "end", "first", "after"),
    [
        ("2026-11-27T00:00", "2026-11-30T09:00", "2026-11-26T23:00Z", "2026-11-30T08:00Z"),
        ("2026-11-27T00:00Z", "2026-11-30T09:00+02:00", "2026-11-27T00:00Z", "2026-11-30T07:00Z"),
        # Clocks show 02:30 twice, and then never: the longer time is closed.
        ("2026-10-25T02:30", "2026-10-25T05:00", "2026-10-25T00:30Z", "2026-10-25T04:00Z"),
        ("2026-10-25T00:00", "2026-10-25T02:30", "2026-10-24T22:00Z", "2026-10-25T01:30Z"),
        ("2026-03-29T02:30", "2026-03-29T05:00", "2026-03-29T00:30Z", "2026-03-29T03:00Z"),
        ("2026-03-29T00:00", "2026-03-29T02:30", "2026-03-28T23:00Z", "2026-03-29T01:30Z"),
    ],
)
def test_a_closed_time_may_happen_once(start: str, end: str, first: str, after: str) -> None:
    times = calendar(closed=[once(start, end)]).times()
    assert next_opening(times, seconds(first) - 1) is None
    for moment in (seconds(first), seconds(after) - 1):
        assert next_opening(times, moment) == Opening(seconds(after), ("sale",))
    assert next_opening(times, seconds(after)) is None


def test_the_opening_is_after_every_closed_time_on_the_way() -> None:
    times = [
        once("2026-01-05T00:00", "2026-01-06T10:00", "move"),
        once("2026-01-06T10:00", "2026-01-06T18:00", "audit"),
        once("2026-01-09T10:00", "2026-01-09T11:00", "later"),
    ]
    found = opening("2026-01-05T06:00Z", windows=[OFFICE], closed=times)
    assert found == Opening(seconds("2026-01-07T08:00Z"), ("move", "audit"))


def test_an_opening_is_searched_for_two_years() -> None:
    found = opening("2026-01-01T00:00Z", closed=[once("2025-01-01T00:00", "2099-01-01T00:00")])
    assert found == Opening(seconds("2098-12-31T23:00Z"), ("sale",))


def closed_by_the_wall(zone: str, closed: list[tuple[int, int]], moment: int) -> bool:
    """Times of the week in minutes since Monday 00:00, as a clock on the wall shows them."""
    local = dt.datetime.fromtimestamp(moment, zoneinfo.ZoneInfo(zone))
    minute = local.weekday() * 1440 + local.hour * 60 + local.minute
    return any(start <= minute < end or start <= minute + 10_080 < end for start, end in closed)


def text(minute: int) -> str:
    day, rest = divmod(minute % 10_080, 1440)
    return f"{DAYS[day]} {rest // 60:02}:{rest % 60:02}"


@given(
    st.sampled_from([zone for zone in ZONES if zone != "Pacific/Apia"]),
    st.lists(
        st.tuples(st.integers(0, 7 * 96 - 1), st.integers(1, 4 * 96)).map(
            lambda item: (item[0] * 15, (item[0] + item[1]) * 15)
        ),
        min_size=1,
        max_size=2,
    ),
    st.integers(0, 366 * 24 * 4),
)
@example("Europe/Berlin", [(6 * 1440 + 120, 6 * 1440 + 180)], 87 * 96)
def test_weekly_closed_times_are_over_at_the_first_minute_at_which_no_clock_is_inside(
    zone: str, closed: list[tuple[int, int]], quarter: int
) -> None:
    moment = seconds("2026-01-01T00:00Z") + quarter * 900
    items = [once(text(start), text(end), "x") for start, end in closed]
    try:
        times = calendar(timezone=zone, closed=items).times()
    except msgspec.ValidationError:  # both together may cover the week
        return
    found = next_opening(times, moment)
    quarters = range(moment, moment + 8 * 86_400, 900)
    expected = next(at for at in quarters if not closed_by_the_wall(zone, closed, at))
    assert (moment if found is None else found.at) == expected


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "use a lehr.Freeze"),
        ({"closed": [once("fri 16:00", "2026-11-30T09:00")]}, "write both"),
        ({"closed": [once("fri 16:00", "fri 16:00")]}, "never open"),
        ({"closed": [once("mon 00:00", "sun 24:00")]}, "never open"),
        ({"closed": [once("fri 25:00", "mon 06:00")]}, "write HH:MM"),
        ({"closed": [once("2026-11-30T09:00", "2026-11-27T00:00")]}, "is not later"),
        ({"closed": [once("2026-11-27T00:00Z", "2026-11-30T09:00")]}, "an offset in both"),
        ({"closed": [once("2026-11-27", "2026-11-30")]}, "is not a valid time"),
        ({"closed": [once("friTday", "mon")]}, "is not a valid time"),
        ({"closed": [once("fri 16:00", "mon 06:00", "")]}, ">= 1"),
        ({"windows": [OFFICE], "closed": [once("mon 09:00", "sat 00:00")]}, "cover every window"),
        (
            {"closed": [once("mon 00:00", "thu 12:00"), once("thu 12:00", "mon 00:00")]},
            "cover every window",
        ),
    ],
)
def test_closed_times_that_cannot_be_meant_are_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        calendar(**fields)
