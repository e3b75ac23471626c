"""Forecasts: when the waves of a rollout start and end, if pushes take as long as they did before. Pure.

The selection runs forward in virtual time, once with the median of recorded durations and once with their
95th percentile. An unknown time is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from lehr.base.moments import Moment
from lehr.base.text import listed
from lehr.model.evidence import Moments
from lehr.rollouts.forecast_run import Run, Times, UnitWork
from lehr.rollouts.open_times import ALWAYS_CLOSED, Timeline
from lehr.rollouts.units import Unit
from lehr.rollouts.waves import TargetSelection, assigned, in_order
from lehr.sdk.calendars import Interval

__all__ = [
    "Duration",
    "Forecast",
    "ForecastInputs",
    "Moments",
    "UnitForecast",
    "UnitWork",
    "WaveForecast",
    "forecast",
]

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


class WaveForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A wave.

    Attributes:
        number: from 1.
        takes: its units, in words.
        units: ids of those that it updates, as far as that is known now.
        state: whether it is over, under way or ahead.
        updated: when the last push of its units ends.
        validated: when all of its units are known to be good.
        ends: when each of its units has had its soak as well.
        unknown: why a time is unknown; empty if none is.
    """

    number: int
    takes: str
    units: tuple[str, ...]
    state: str
    starts: Moments
    updated: Moments
    validated: Moments
    ends: Moments
    unknown: str = ""


class UnitForecast(msgspec.Struct, frozen=True, kw_only=True):
    """A unit.

    Attributes:
        wave: number of the wave that updates it.
        updated: when its last push ends.
        validated: when it is known to be good.
    """

    id: str
    wave: int
    updated: Moments
    validated: Moments


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast.

    Attributes:
        made_at: in wall-clock seconds, as are all times here.
        until: later times are unknown.
        ends: when the last wave is over.
        units: of all waves, in their order.
        following: units that are closed until the rollout is over, and are updated in one after it. Their
            waves are of that one; 0 if it is unknown.
        durations: of pushes, by kind.
        skipped: units that cannot be pushed, by id, with their reasons.
        assumptions: in words.
    """

    made_at: Moment
    until: Moment
    waves: tuple[WaveForecast, ...]
    ends: Moments
    units: tuple[UnitForecast, ...]
    durations: dict[str, Duration]
    validation: Duration
    skipped: dict[str, str]
    assumptions: tuple[str, ...]
    following: tuple[UnitForecast, ...] = ()


class ForecastInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a forecast.

    Attributes:
        pushes: recorded durations of pushes, in seconds, by kind.
        validations: recorded times from the end of a push to the verdict.
        calendars: closed times until the end of the forecast, by name; None for one that cannot be read.
        horizon_seconds: how far it looks ahead.
        hold: why no further unit is updated until a person decides; empty if that is not so.
        closed_pauses: whether closed times also pause soaks and deadlines.
    """

    selection: TargetSelection
    works: tuple[UnitWork, ...]
    now: float
    pushes: Mapping[str, Sequence[float]] = {}
    validations: Sequence[float] = ()
    calendars: Mapping[str, Sequence[Interval] | None] = {}
    horizon_seconds: float = 14 * _DAY
    hold: str = ""
    closed_pauses: bool = True


def forecast(inputs: ForecastInputs, check_time: Callable[[], None] = lambda: None) -> Forecast:
    """When each wave starts and ends.

    Args:
        check_time: called again and again; it may raise to end this.

    Raises:
        ValueError: the order of the selection cannot be used.
    """
    until = inputs.now + inputs.horizon_seconds
    kinds = sorted({kind for work in inputs.works for kind in work.pushes})
    durations = {kind: duration(inputs.pushes.get(kind, ())) for kind in kinds}
    validation = duration(inputs.validations)
    timelines = {names: _timeline(inputs, names) for names in {work.calendars for work in inputs.works}}
    chains = [
        _rollouts(
            inputs,
            timelines,
            lambda kind, at=at: getattr(durations[kind], at),  # type: ignore[misc]
            getattr(validation, at),
            check_time,
        )
        for at in ("p50", "p95")
    ]
    runs = [chain[0] for chain in chains]
    waves = tuple(_waves(inputs, chains, durations, validation))
    return Forecast(
        made_at=inputs.now,
        until=until,
        waves=waves,
        ends=_moments([_end(run) for run in runs]),
        units=tuple(_unit(id, wave.number, chains) for wave in waves for id in wave.units),
        durations=durations,
        validation=validation,
        skipped={
            work.unit.id: work.unit.held
            for work in sorted(inputs.works, key=lambda work: work.unit.id)
            if work.unit.held and not work.unit.updated
        },
        assumptions=tuple(_assumptions(inputs, durations, validation)),
        following=tuple(_unit(id, _wave_of(id, chains[0][1:]), chains) for id in _following(runs[0])),
    )


def _rollouts(
    inputs: ForecastInputs,
    timelines: Mapping[tuple[str, ...], Timeline],
    seconds: Callable[[str], float | None],
    validation: float | None,
    check_time: Callable[[], None],
) -> list[Run]:
    """The rollout, and those after it that update the units that were closed until it was over."""

    def run(works: Sequence[UnitWork], now: float) -> Run:
        return Run(
            inputs.selection,
            works,
            timelines,
            seconds,
            validation,
            now,
            inputs.now + inputs.horizon_seconds,
            holds=bool(inputs.hold),
            closed_pauses=inputs.closed_pauses,
            check_time=check_time,
        )

    found = [run(inputs.works, inputs.now)]
    while found[-1].opens_at <= inputs.now + inputs.horizon_seconds:
        found.append(run(found[-1].left, found[-1].opens_at))
    return found


def _following(run: Run) -> list[str]:
    """The units that were closed until a rollout was over."""
    return sorted(work.unit.id for work in run.left if not work.unit.held)


def _wave_of(id: str, chain: Sequence[Run]) -> int:
    """The number of the wave that updates a unit; 0 if it is unknown."""
    return next((run.wave_of[id] for run in chain if id in run.wave_of), 0)


def _unit_times(id: str, chain: Sequence[Run]) -> tuple[float | None, float | None]:
    """When a unit is updated and validated, by the rollout that does so; None for unknown."""
    return next((run.unit_times(id) for run in chain if run.updates(id)), (None, None))


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
    inputs: ForecastInputs,
    chains: Sequence[Sequence[Run]],
    durations: Mapping[str, Duration],
    validation: Duration,
) -> Iterator[WaveForecast]:
    runs = [chain[0] for chain in chains]
    given = _in_place(inputs)
    following = set(_following(runs[0]))
    before = runs[0].first_wave or 0
    for item in assigned(inputs.selection, in_order(inputs.selection, runs[0].units)):
        mine = {unit.id for unit in item.units} - following
        units = [unit for unit in given if unit.id in mine]
        times = [run.times[item.number] for run in runs]
        over = before == 0 or item.number < before
        begun = [unit.updated_at for unit in units if unit.updated_at is not None]
        starts = [min(begun)] * len(runs) if begun else [_first(found) for found in times]
        ends = [None if over else found.ends for found in times]
        missing = not over and None in (*starts, *ends)
        each = [[_unit_times(unit.id, chain) for unit in units] for chain in chains]
        yield WaveForecast(
            number=item.number,
            takes=str(item.wave),
            units=tuple(unit.id for unit in units),
            state="over" if over else "under way" if begun else "ahead",
            starts=_moments(starts),
            updated=_moments([_last(updated for updated, _ in of_chain) for of_chain in each]),
            validated=_moments([_last(validated for _, validated in of_chain) for of_chain in each]),
            ends=_moments(ends),
            unknown=_cause(inputs, runs, durations, validation) if missing else "",
        )


def _in_place(inputs: ForecastInputs) -> list[Unit]:
    """The units as they are now: updated ones first, the others in their order."""
    ordered = in_order(inputs.selection, [work.unit for work in inputs.works])
    return sorted(ordered, key=lambda unit: (not unit.updated, unit.updated_at or 0.0))


def _unit(id: str, wave: int, chains: Sequence[Sequence[Run]]) -> UnitForecast:
    times = [_unit_times(id, chain) for chain in chains]
    updated, validated = (_moments([of_chain[place] for of_chain in times]) for place in (0, 1))
    return UnitForecast(id=id, wave=wave, updated=updated, validated=validated)


def _last(times: Iterable[float | None]) -> float | None:
    """The last of some times; None if one is unknown, or there are none."""
    found = list(times)
    known = [at for at in found if at is not None]
    return max(known) if known and len(known) == len(found) else None


def _first(found: Times) -> float | None:
    """When a wave starts. One that has no units of its own starts as it ends."""
    return found.ends if found.starts is None else found.starts


def _cause(
    inputs: ForecastInputs, runs: Sequence[Run], durations: Mapping[str, Duration], validation: Duration
) -> str:
    """Why a time is unknown."""
    if inputs.hold:
        return inputs.hold
    causes = list(_causes(inputs, durations, validation))
    held = next((run for run in runs if run.last.hold), None)
    if held is not None and not (causes and held.is_closed):
        causes.append(held.last.hold)
    return "; ".join(causes) or f"it is later than {inputs.horizon_seconds / _DAY:g} days from now"


def _causes(inputs: ForecastInputs, durations: Mapping[str, Duration], validation: Duration) -> Iterator[str]:
    used = sorted({name for work in inputs.works for name in work.calendars})
    if unread := [name for name in used if inputs.calendars.get(name) is None]:
        yield f"closed, because they cannot be read: {listed(unread)}"
    if shut := [name for name in used if name not in unread and _is_shut(inputs, name)]:
        yield f"closed for longer than {inputs.horizon_seconds / _DAY:g} days: {listed(shut)}"
    if unmeasured := [kind for kind, found in durations.items() if not found.count]:
        yield f"no push was recorded of {listed(unmeasured)}"
    if not validation.count:
        yield "no validation was recorded"


def _is_shut(inputs: ForecastInputs, name: str) -> bool:
    """Whether a calendar is closed during the whole forecast."""
    return _timeline(inputs, [name]).opening(inputs.now) > inputs.now + inputs.horizon_seconds


def _end(run: Run) -> float | None:
    return run.at if run.last.done else None


def _recorded(count: int, one: str, several: str) -> str:
    return f"{count} recorded {one if count == 1 else several}"


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
            yield f"only {_recorded(found.count, 'push', 'pushes')} of {kind}"
    if 0 < validation.count < _FEW:
        yield f"only {_recorded(validation.count, 'validation', 'validations')}"
    yield "every push succeeds, and every validation passes before its deadline"
    if inputs.selection.deadline_seconds is not None:
        yield "the deadline of a wave counts from the last push of a unit, not from its release"
    yield "assets of a unit are pushed one after the other, units of a wave at the same time"
    yield "only calendars and freezes delay pushes" + (
        ", and closed times pause soaks" if inputs.closed_pauses else "; they do not pause soaks"
    )
    if any(times is None or times for times in inputs.calendars.values()):
        yield (
            "closed units take no place, so others go first; they join once they are open, or are updated in "
            "a rollout after this one"
        )
    if any(times is None for times in inputs.calendars.values()):
        yield "a calendar that cannot be read is closed"
    yield "no newer content is committed, and no control is set, lifted or ends"
