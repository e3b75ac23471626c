"""Forecasts: when the waves of a rollout start and end, if pushes take as long as they did before. Pure.

The selection runs forward in virtual time, once with the median of recorded durations and once with their
95th percentile. An unknown time is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lehr.base.text import listed
from lehr.rollouts.forecast_run import Run, Times, UnitWork
from lehr.rollouts.open_times import ALWAYS_CLOSED, Interval, Timeline
from lehr.rollouts.waves import TargetSelection, assigned, in_order

__all__ = ["Duration", "Forecast", "ForecastInputs", "Moments", "UnitWork", "WaveForecast", "forecast"]

_DAY = 86_400.0
_FEW = 10
"""With fewer recorded pushes, the sample is named as small."""


class Duration(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded duration.

    Attributes:
        count: size of the sample.
        p50, p95: seconds, half and 95 % of which took no longer; None without a sample.
    """

    count: int
    p50: float | None = None
    p95: float | None = None


class Moments(msgspec.Struct, frozen=True):
    """A range of moments, in seconds since the epoch; None for unknown."""

    early: float | None = None
    late: float | None = None


class WaveForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A wave.

    Attributes:
        number: from 1.
        takes: its units, in words.
        units: ids of those that it updates, as far as that is known now.
        state: whether it is over, under way or ahead.
        unknown: why a time is unknown; empty if none is.
    """

    number: int
    takes: str
    units: tuple[str, ...]
    state: str
    starts: Moments
    ends: Moments
    unknown: str = ""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast.

    Attributes:
        made_at: in seconds since the epoch.
        until: later times are unknown.
        ends: when the last wave is over.
        durations: of pushes, by kind.
        skipped: units that cannot be pushed, by id, with their reasons.
        assumptions: in words.
    """

    made_at: float
    until: float
    waves: tuple[WaveForecast, ...]
    ends: Moments
    durations: dict[str, Duration]
    validation: Duration
    skipped: dict[str, str]
    assumptions: tuple[str, ...]


class ForecastInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a forecast.

    Attributes:
        pushes: recorded durations of pushes, in seconds, by kind.
        validations: recorded times from the end of a push to the verdict.
        calendars: closed times until the end of the forecast, by name; None for one that cannot be read.
        horizon_seconds: how far it looks ahead.
    """

    selection: TargetSelection
    works: tuple[UnitWork, ...]
    now: float
    pushes: Mapping[str, Sequence[float]] = {}
    validations: Sequence[float] = ()
    calendars: Mapping[str, Sequence[Interval] | None] = {}
    horizon_seconds: float = 14 * _DAY


def forecast(inputs: ForecastInputs) -> Forecast:
    """When each wave starts and ends.

    Raises:
        ValueError: the order of the selection cannot be used.
    """
    until = inputs.now + inputs.horizon_seconds
    kinds = sorted({kind for work in inputs.works for kind in work.pushes})
    durations = {kind: duration(inputs.pushes.get(kind, ())) for kind in kinds}
    validation = duration(inputs.validations)
    timelines = {names: _timeline(inputs, names) for names in {work.calendars for work in inputs.works}}
    runs = [
        Run(
            inputs.selection,
            inputs.works,
            timelines,
            lambda kind, at=at: getattr(durations[kind], at),  # type: ignore[misc]
            getattr(validation, at),
            inputs.now,
            until,
        )
        for at in ("p50", "p95")
    ]
    return Forecast(
        made_at=inputs.now,
        until=until,
        waves=tuple(_waves(inputs, runs, durations, validation)),
        ends=_moments([_end(run) for run in runs]),
        durations=durations,
        validation=validation,
        skipped={
            work.unit.id: work.unit.held
            for work in sorted(inputs.works, key=lambda work: work.unit.id)
            if work.unit.held and not work.unit.updated
        },
        assumptions=tuple(_assumptions(inputs, durations, validation)),
    )


def duration(sample: Sequence[float]) -> Duration:
    """Median and 95th percentile of a sample, by nearest rank. Other values than durations are left out."""
    values = sorted(value for value in sample if value >= 0 and math.isfinite(value))
    if not values:
        return Duration(count=0)

    def at(share: float) -> float:
        return values[max(1, math.ceil(share * len(values))) - 1]

    return Duration(count=len(values), p50=at(0.5), p95=at(0.95))


def _timeline(inputs: ForecastInputs, names: Sequence[str]) -> Timeline:
    closed: list[Interval] = []
    for name in names:
        times = inputs.calendars.get(name)
        closed += ALWAYS_CLOSED if times is None else times
    return Timeline(closed)


def _waves(
    inputs: ForecastInputs, runs: Sequence[Run], durations: Mapping[str, Duration], validation: Duration
) -> Iterator[WaveForecast]:
    units = in_order(inputs.selection, [work.unit for work in inputs.works])
    before = runs[0].first_wave or 0
    for item in assigned(inputs.selection, units):
        times = [run.times[item.number] for run in runs]
        over = before == 0 or item.number < before
        begun = [unit.updated_at for unit in item.units if unit.updated_at is not None]
        starts = [min(begun)] * len(runs) if begun else [_first(found) for found in times]
        ends = [None if over else found.ends for found in times]
        missing = not over and None in (*starts, *ends)
        yield WaveForecast(
            number=item.number,
            takes=str(item.wave),
            units=tuple(unit.id for unit in item.units),
            state="over" if over else "under way" if begun else "ahead",
            starts=_moments(starts),
            ends=_moments(ends),
            unknown=_cause(inputs, runs, durations, validation) if missing else "",
        )


def _first(found: Times) -> float | None:
    """When a wave starts. One that has no units of its own starts as it ends."""
    return found.ends if found.starts is None else found.starts


def _cause(
    inputs: ForecastInputs, runs: Sequence[Run], durations: Mapping[str, Duration], validation: Duration
) -> str:
    """Why a time is unknown."""
    unread = sorted(
        {name for work in inputs.works for name in work.calendars if inputs.calendars.get(name) is None}
    )
    if unread:
        return f"closed, because they cannot be read: {listed(unread)}"
    unmeasured = [kind for kind, found in durations.items() if not found.count]
    if unmeasured:
        return f"no push was recorded of {listed(unmeasured)}"
    if not validation.count:
        return "no validation was recorded"
    hold = next((run.last.hold for run in runs if run.last.hold), "")
    return hold or f"it is later than {inputs.horizon_seconds / _DAY:g} days from now"


def _end(run: Run) -> float | None:
    return run.at if run.last.done else None


def _moments(found: Sequence[float | None]) -> Moments:
    """Earliest and latest. If one of the runs has no time, the late end is unknown."""
    known = [at for at in found if at is not None]
    if not known:
        return Moments()
    return Moments(min(known), max(known) if len(known) == len(found) else None)


def _assumptions(
    inputs: ForecastInputs, durations: Mapping[str, Duration], validation: Duration
) -> Iterator[str]:
    yield "early: each push and validation takes the median of those recorded; late: their 95th percentile"
    for kind, found in durations.items():
        if 0 < found.count < _FEW:
            yield f"of {kind}, only {found.count} pushes were recorded"
    if 0 < validation.count < _FEW:
        yield f"only {validation.count} validations were recorded"
    yield "every push succeeds, and every validation passes"
    yield "assets of a unit are pushed one after the other, units of a wave at the same time"
    yield "only calendars delay pushes, and closed times pause soaks"
    if any(times is None for times in inputs.calendars.values()):
        yield "a calendar that cannot be read is closed"
    yield "no newer content is committed, and no control changes"
