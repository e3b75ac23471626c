"""Public holidays as closed times. The one module that knows the library `holidays`."""

from __future__ import annotations

import datetime as dt
import difflib
import zoneinfo
from collections.abc import Mapping

import msgspec

from lehr.checks.closed_times import Closed, moments_of

_LANGUAGE = "en_US"
"""Of the names, where the library has them in it."""
_MOST_LISTED = 20


class Holidays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Public holidays of a country, from midnight to midnight.

    Attributes:
        country: two letters of ISO 3166 (`DE`).
        subdivision: state, province or region, as in ISO 3166-2 without the country (`BE`).
            Without it, holidays of the whole country.
    """

    country: str
    subdivision: str = ""

    def __post_init__(self) -> None:
        _names(self.country, self.subdivision)

    def times(self, zone: zoneinfo.ZoneInfo) -> HolidayTimes:
        """The days that they close in `zone`."""
        return HolidayTimes(_names(self.country, self.subdivision), zone)


class HolidayTimes:
    """Closed on days that have a name."""

    def __init__(self, names: Mapping[dt.date, str], zone: zoneinfo.ZoneInfo) -> None:
        self._names = names
        self._zone = zone

    def at(self, moment: float) -> Closed | None:
        day = dt.datetime.fromtimestamp(moment, self._zone).date()
        if (name := self._names.get(day)) is None:
            return None
        midnight = dt.datetime.combine(day + dt.timedelta(days=1), dt.time())
        # Clocks that are set back may show midnight twice, and the day that it ends in between.
        until = next(found for found in moments_of(midnight, self._zone) if found > moment)
        return Closed(until, name)


def _names(country: str, subdivision: str) -> Mapping[dt.date, str]:
    """Names of holidays, which the library computes for each year when asked.

    Raises:
        ValueError: there is no such country or subdivision.
    """
    # Takes 60 ms, and most commands read no calendar.
    import holidays  # noqa: PLC0415
    from holidays.registry import COUNTRIES  # noqa: PLC0415

    codes = {code for _, code, *_ in COUNTRIES.values()}
    if country not in codes:
        named = {name.replace("_", " "): item[1] for name, item in COUNTRIES.items()}
        named |= {code.lower(): item[1] for item in COUNTRIES.values() for code in item[1:]}
        close = difflib.get_close_matches(country.lower(), named, n=1)
        hint = f"did you mean {named[close[0]]}?" if close else "use two letters of ISO 3166, such as DE"
        raise ValueError(f"holidays of the country {country!r} are not known: {hint}")
    try:
        found = holidays.country_holidays(country, subdiv=subdivision or None)
    except NotImplementedError as error:
        known = getattr(holidays, country).subdivisions
        listed = ", ".join(known[:_MOST_LISTED]) + (", ..." if len(known) > _MOST_LISTED else "")
        hint = f"use one of {listed}" if known else "leave it out"
        raise ValueError(f"unknown subdivision {subdivision!r} of {country}: {hint}") from error
    # Otherwise the environment would choose the language.
    language = _LANGUAGE if _LANGUAGE in found.supported_languages else found.default_language
    return holidays.country_holidays(country, subdiv=subdivision or None, language=language)
