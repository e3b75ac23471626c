"""Rollouts next to their forecasts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from lehr.base.moments import Moment
from lehr.model.evidence import Expected, ForecastMade, Moments
from lehr.rollouts.course import Rollout
from lehr.rollouts.forecast import Forecast
from lehr.rollouts.forecast_inputs import pushed_at
from lehr.rollouts.members import Member, units_of

_MOST_UNITS = 50
"""With more units than these, only their waves are kept: evidence is read often."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A unit, or all units of a wave.

    Attributes:
        unit: its id; empty for a wave.
        wave: its number, from 1.
        units: how many there are.
        updated: when the last push ended; None if that has not happened yet.
        validated: when they were known to be good; None if they are not yet.
    """

    unit: str = ""
    wave: int
    units: int
    updated: Moment | None
    expected_updated: Moments
    validated: Moment | None
    expected_validated: Moments


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout under way, next to its forecast.

    Attributes:
        ends: when it was expected to end.
        unknown: why a time was unknown; empty if none was.
        rows: waves, each followed by its units, if there are not too many.
    """

    ends: Moments
    unknown: str
    rows: tuple[Compared, ...]


def kept(found: Forecast) -> ForecastMade:
    """The part of a forecast that is kept, in whole seconds."""
    waves = (
        Expected(wave.number, len(wave.units), _rounded(wave.updated), _rounded(wave.validated))
        for wave in found.waves
        if wave.units
    )
    units = {
        unit.id: Expected(unit.wave, 1, _rounded(unit.updated), _rounded(unit.validated))
        for unit in found.units[: _MOST_UNITS + 1]
    }
    unknown = next((wave.unknown for wave in found.waves if wave.unknown), "")
    return ForecastMade(
        _rounded(found.ends), tuple(waves), units if len(units) <= _MOST_UNITS else {}, unknown
    )


def _rounded(found: Moments) -> Moments:
    return Moments(*(None if at is None else float(round(at)) for at in (found.early, found.late)))


def compared(rollout: Rollout, members: Sequence[Member]) -> Comparison | None:
    """A rollout next to its forecast; None if it has none."""
    forecast = rollout.forecast
    if forecast is None:
        return None
    units = units_of(members)
    pushed = {unit: pushed_at(rollout, unit, units.get(unit, ())) for unit in rollout.watched}
    validated = {unit: rollout.validated.get(unit) for unit in rollout.watched}
    rows = tuple(_rows(forecast, pushed, validated))
    return Comparison(ends=forecast.ends, unknown=forecast.unknown, rows=rows)


def _rows(
    forecast: ForecastMade, pushed: dict[str, float | None], validated: dict[str, float | None]
) -> Iterator[Compared]:
    """Waves follow each other: one is updated once as many units are as it and those before have."""
    totals = list(accumulate(wave.units for wave in forecast.waves))
    updates, validations = (
        sorted(at for at in times.values() if at is not None) for times in (pushed, validated)
    )
    for wave, total in zip(forecast.waves, totals, strict=True):
        yield _row("", wave, _nth(updates, total), _nth(validations, total))
        for id, unit in forecast.units.items():
            if unit.wave == wave.wave:
                yield _row(id, unit, pushed.get(id), validated.get(id))


def _nth(times: Sequence[float], number: int) -> float | None:
    return times[number - 1] if number <= len(times) else None


def _row(id: str, expected: Expected, updated: float | None, validated: float | None) -> Compared:
    return Compared(
        unit=id,
        wave=expected.wave,
        units=expected.units,
        updated=updated,
        expected_updated=expected.updated,
        validated=validated,
        expected_validated=expected.validated,
    )
