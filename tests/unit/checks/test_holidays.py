"""Public holidays as closed times."""

import datetime as dt
import subprocess
import sys
import zoneinfo

import msgspec
import pytest

from lehr.checks.calendar import Calendar
from lehr.checks.closed_times import Closed, Opening, next_opening
from lehr.checks.holidays import Holidays, HolidayTimes
from tests.unit.checks.test_closed_times import OFFICE
from tests.unit.checks.test_weekly import seconds


def opening(moment: str, country: str, subdivision: str = "", **fields: object) -> Opening | None:
    holidays = {"country": country, "subdivision": subdivision}
    raw = {"select": {"all": True}, "timezone": "Europe/Berlin", "holidays": holidays} | fields
    return next_opening(msgspec.convert(raw, Calendar).times(), seconds(moment))


@pytest.mark.parametrize(
    ("country", "subdivision", "moment", "opens", "name"),
    [
        ("DE", "", "2026-10-02T22:00Z", "2026-10-03T22:00Z", "German Unity Day"),
        ("DE", "", "2026-10-03T21:59:59Z", "2026-10-03T22:00Z", "German Unity Day"),
        ("DE", "BE", "2026-03-08T12:00Z", "2026-03-08T23:00Z", "Women's Day"),
        ("FR", "", "2026-07-14T12:00Z", "2026-07-14T22:00Z", "National Day"),
        ("US", "", "2026-11-26T12:00Z", "2026-11-26T23:00Z", "Thanksgiving Day"),
    ],
)
def test_a_holiday_is_closed_from_midnight_to_midnight(
    country: str, subdivision: str, moment: str, opens: str, name: str
) -> None:
    assert opening(moment, country, subdivision) == Opening(seconds(opens), (name,))


def test_other_days_and_other_states_are_open() -> None:
    assert opening("2026-10-02T21:59:59Z", "DE") is None
    assert opening("2026-10-03T22:00Z", "DE") is None
    assert opening("2026-03-08T12:00Z", "DE", "BY") is None


def test_holidays_weekends_and_windows_add_up() -> None:
    found = opening("2026-12-24T16:30Z", "DE", windows=[OFFICE])
    # 25 December is a Friday, and weekends have no window.
    assert found == Opening(seconds("2026-12-28T08:00Z"), ("Christmas Day", "Second Day of Christmas"))


@pytest.mark.parametrize(
    ("zone", "day", "moment", "until"),
    [
        # Clocks skip midnight of 4 November, repeat the hour before that of 18 February, and the one after
        # it on 1 November.
        ("America/Sao_Paulo", "2018-11-03", "2018-11-03T12:00Z", "2018-11-04T03:00Z"),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00Z", "2018-11-05T02:00Z"),
        ("America/Sao_Paulo", "2018-02-17", "2018-02-18T01:30Z", "2018-02-18T03:00Z"),
        ("America/Sao_Paulo", "2018-02-17", "2018-02-18T02:30Z", "2018-02-18T03:00Z"),
        ("America/Havana", "2026-10-31", "2026-10-31T12:00Z", "2026-11-01T04:00Z"),
        ("America/St_Johns", "2006-10-28", "2006-10-29T02:00Z", "2006-10-29T02:30Z"),
        ("America/St_Johns", "2006-10-28", "2006-10-29T02:45Z", "2006-10-29T03:30Z"),
        ("Pacific/Apia", "2011-12-29", "2011-12-30T09:00Z", "2011-12-30T10:00Z"),
    ],
)
def test_a_day_ends_when_clocks_show_the_next_one(zone: str, day: str, moment: str, until: str) -> None:
    times = HolidayTimes({dt.date.fromisoformat(day): "x"}, zoneinfo.ZoneInfo(zone))
    assert times.at(seconds(moment)) == Closed(seconds(until), "x")


@pytest.mark.parametrize(
    ("country", "subdivision", "says"),
    [
        ("Germany", "", "did you mean DE"),
        ("DEU", "", "did you mean DE"),
        ("de", "", "did you mean DE"),
        ("__doc__", "", "two letters"),
        ("", "", "two letters"),
        ("DE", "XX", "use one of BB, BE"),
        ("US", "XX", r"use one of AK, .*\.\.\."),
        ("SM", "XX", "leave it out"),
    ],
)
def test_an_unknown_country_or_subdivision_is_refused(country: str, subdivision: str, says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        msgspec.convert({"country": country, "subdivision": subdivision}, Holidays)


def test_names_do_not_depend_on_the_environment() -> None:
    code = (
        "import datetime as dt\n"
        "from lehr.checks.holidays import _names\n"
        "print(_names('DE', '')[dt.date(2026, 12, 25)], _names('SM', '')[dt.date(2026, 12, 25)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={"LANGUAGE": name}, capture_output=True, check=True, timeout=150
        ).stdout
        for name in ("de", "th")
    }
    assert len(printed) == 1
    assert printed.pop().startswith(b"Christmas Day")


def test_the_library_is_imported_when_a_calendar_has_holidays() -> None:
    code = (
        "import sys, lehr.checks\n"
        "assert not {'holidays', 'dateutil'} & set(sys.modules)\n"
        "lehr.checks.holidays.Holidays('DE')\n"
        "assert 'holidays' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=150)
