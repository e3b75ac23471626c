"""Forecasts for people. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from lehr.base.moments import span
from lehr.base.text import listed
from lehr.rollouts.forecast import Duration, Forecast, Moments, UnitForecast, WaveForecast

_UTC = ZoneInfo("UTC")
_MOST_UNITS = 50


def forecast_lines(found: Forecast, zone: ZoneInfo = _UTC) -> Iterator[str]:
    """A forecast as lines, with times in `zone`."""
    yield f"Forecast of {_moment(found.made_at, zone)} ({zone.key}), until {_moment(found.until, zone)}"
    for wave in found.waves:
        yield from _wave_lines(wave, zone)
    yield f"Rollout ends: {_range(found.ends, zone)}"
    if found.units:
        yield "Units:"
        yield from _unit_lines(found.units, zone)
    if found.following:
        yield "Closed until the rollout is over, and updated in one after it:"
        yield from _unit_lines(found.following, zone)
    if found.skipped:
        yield "Skipped:"
        width = max(map(len, found.skipped))
        yield from (f"  {id:{width}}  {why}" for id, why in found.skipped.items())
    if found.durations:
        yield "Recorded pushes:"
        width = max(map(len, found.durations))
        yield from (f"  {kind:{width}}  {_duration(item)}" for kind, item in found.durations.items())
    yield f"Recorded validations: {_duration(found.validation)}"
    yield "Assumptions:"
    yield from (f"  {item}" for item in found.assumptions)


def _unit_lines(units: Sequence[UnitForecast], zone: ZoneInfo) -> Iterator[str]:
    shown = units[:_MOST_UNITS]
    width = max(len(unit.id) for unit in shown)
    for unit in shown:
        yield (
            f"  {unit.id:{width}}  updated: {_range(unit.updated, zone)}; "
            f"validated: {_range(unit.validated, zone)}"
        )
    if len(units) > len(shown):
        yield f"  and {len(units) - len(shown):,} more"


def _wave_lines(wave: WaveForecast, zone: ZoneInfo) -> Iterator[str]:
    units = listed(wave.units) or "no units of its own"
    yield f"Wave {wave.number} of {wave.takes}, {wave.state}: {units}"
    if wave.state == "over":
        return
    yield f"  starts: {_range(wave.starts, zone)}"
    yield f"  ends:   {_range(wave.ends, zone)}"
    if wave.unknown:
        yield f"  unknown: {wave.unknown}"


def _range(found: Moments, zone: ZoneInfo) -> str:
    early, late = _moment(found.early, zone), _moment(found.late, zone)
    return early if early == late else f"{early} to {late}"


def _moment(at: float | None, zone: ZoneInfo) -> str:
    return "unknown" if at is None else f"{dt.datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M:%S}"


def _duration(found: Duration) -> str:
    if found.p50 is None or found.p95 is None:
        return "unknown, none was recorded"
    return f"{found.count} recorded, half within {span(found.p50)}, 95 % within {span(found.p95)}"
