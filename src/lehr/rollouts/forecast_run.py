"""A rollout in virtual time: every push and every validation takes as long as assumed. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from lehr.base.clock import iso
from lehr.rollouts.open_times import Timeline
from lehr.rollouts.selection import Selection, select
from lehr.rollouts.units import Unit
from lehr.rollouts.waves import TargetSelection

_MOST_STEPS = 100_000
_NO_PAUSES = Timeline(())
_ROUNDING = 1e-4
"""Seconds: more than sums of wall-clock times are inexact by."""


class UnitWork(msgspec.Struct, frozen=True):
    """A unit, and the work of updating it.

    Attributes:
        pushes: kinds of its pushes, one after the other, such as the types of its assets.
        calendars: names of those that its pushes wait for. While one is closed, the unit is held.
        pushed_at: when the last of these pushes has ended; None for an updated unit that is still pushed.
    """

    unit: Unit
    pushes: tuple[str, ...] = ()
    calendars: tuple[str, ...] = ()
    pushed_at: float | None = None


class Times(msgspec.Struct):
    """When a wave starts and ends in a run; None for unknown."""

    starts: float | None = None
    ends: float | None = None


class _Progress(msgspec.Struct):
    """How far a unit is.

    Attributes:
        pushed_at: when its last push ends; None if that is unknown.
        validated_at: None if that is unknown.
        since: from when on its exposure grows.
    """

    updated_at: float
    pushed_at: float | None
    validated_at: float | None
    since: float
    exposure: float = 0.0
    paused: float = 0.0


class Run:
    """A rollout that is run forward from `now` to `end`.

    Attributes:
        times: by wave.
        last: the last answer of the selection.
        at: its time.
        units: as they were then.
        wave_of: numbers of the waves that updated units, by id.
        first_wave: number of the wave under way at `now`; 0 if all are over.
    """

    def __init__(
        self,
        selection: TargetSelection,
        works: Sequence[UnitWork],
        timelines: Mapping[tuple[str, ...], Timeline],
        seconds: Callable[[str], float | None],
        validation: float | None,
        now: float,
        end: float,
        *,
        holds: bool,
        closed_pauses: bool,
        check_time: Callable[[], None],
    ) -> None:
        """A run in which a push of a kind takes `seconds`, and validation `validation`; None if unknown.

        Args:
            holds: no further unit is updated.
            closed_pauses: closed times pause soaks and deadlines.
            check_time: called again and again; it may raise to end this.
        """
        self._selection = selection
        self._works = {work.unit.id: work for work in works}
        self._timelines = timelines
        self._seconds = seconds
        self._validation = validation
        self._now = self.at = now
        self._end = end
        self._holds = holds
        self._closed_pauses = closed_pauses
        self._check_time = check_time
        self._progress = {id: found for id in self._works if (found := self._begun(id)) is not None}
        self._longest_soak = max(wave.soak_seconds for wave in selection.waves)
        self._settled: dict[str, Unit] = {}
        self._closed: Mapping[tuple[str, ...], float] = {}
        self._held: dict[tuple[str, float], Unit] = {}
        self.units: list[Unit] = []
        self.wave_of: dict[str, int] = {}
        self.first_wave: int | None = None
        self.times = {number: Times() for number in range(1, len(selection.waves) + 1)}
        self.last = self._run()

    @property
    def left(self) -> list[UnitWork]:
        """The units that get nothing in this rollout, which is done; none if it is not."""
        if not self.last.done:
            return []
        return [work for id, work in self._works.items() if not self.updates(id)]

    @property
    def opens_at(self) -> float:
        """When the first unit that is left can be pushed; infinite if that is unknown, or there is none."""
        free = [work for work in self.left if not work.unit.held]
        return min((self._timelines[work.calendars].opening(self.at) for work in free), default=math.inf)

    @property
    def is_closed(self) -> bool:
        """Whether a unit was still closed at the end."""
        waiting = (unit for unit in self.units if not unit.updated)
        return any(unit.held and not self._works[unit.id].unit.held for unit in waiting)

    def updates(self, id: str) -> bool:
        """Whether a unit gets the content in this rollout."""
        return id in self._progress

    def unit_times(self, id: str) -> tuple[float | None, float | None]:
        """When a unit is updated and validated; None for unknown."""
        found = self._progress.get(id)
        return (
            (None, None) if found is None else (self._known(found.pushed_at), self._known(found.validated_at))
        )

    def _known(self, at: float | None) -> float | None:
        return None if at is None or at > self._end else at

    def _run(self) -> Selection:
        for _ in range(_MOST_STEPS):
            self._check_time()
            self._closed = self._closed_now()
            self.units = [self._unit(id) for id in self._works]
            answer = select(self._selection, self.units, self.at, self._check_time)
            if self.first_wave is None:
                self.first_wave = answer.wave
            self._note(answer)
            update = () if self._holds else answer.update
            for id in update:
                self._push(id, answer.wave)
            if any(self._progress[id].validated_at == self.at for id in update):
                continue  # at once, so that the next ones may follow at the same time
            following = min((at for at in self._events(answer) if at > self.at), default=None)
            if answer.done or answer.overdue or following is None or following > self._end:
                break
            self.at = following
        return answer

    def _closed_now(self) -> dict[tuple[str, ...], float]:
        """When calendars open that are closed now and hold units that are not updated yet."""
        waiting = {work.calendars for id, work in self._works.items() if id not in self._progress}
        opening = ((names, self._timelines[names].opening(self.at)) for names in waiting)
        return {names: at for names, at in opening if at > self.at}

    def _timeline(self, id: str) -> Timeline:
        return self._timelines[self._works[id].calendars]

    def _pauses(self, id: str) -> Timeline:
        """When soaks pause."""
        return self._timeline(id) if self._closed_pauses else _NO_PAUSES

    def _begun(self, id: str) -> _Progress | None:
        """The progress of a unit that is updated already."""
        unit, pushed = self._works[id].unit, self._works[id].pushed_at
        if unit.updated_at is None:
            return None
        if pushed is None:
            pushed = _finite(max(self._now, self._pushed(id, unit.updated_at)[1]))
        passed = unit.validated_at
        if passed is None and self._validation is not None and pushed is not None:
            passed = max(self._now, pushed + self._validation)
        since = self._now if unit.validated else passed or self._now
        return _Progress(unit.updated_at, pushed, passed, since, unit.exposure_seconds, unit.paused_seconds)

    def _pushed(self, id: str, at: float) -> tuple[float, float]:
        """When the pushes of a unit that is released at `at` start and end; infinite if that is unknown.

        Each asset is pushed as soon as its calendars are open.
        """
        timeline = self._timeline(id)
        starts: float | None = None
        for kind in self._works[id].pushes:
            at = timeline.opening(at)
            starts = at if starts is None else starts
            took = self._seconds(kind)
            at = math.inf if took is None else at + took
        return at if starts is None else starts, at

    def _push(self, id: str, wave: int) -> None:
        self.wave_of[id] = wave
        starts, ends = self._pushed(id, self.at)
        found = self.times[wave]
        if starts < math.inf and (found.starts is None or starts < found.starts):
            found.starts = starts
        pushed = _finite(ends)
        passed = None if self._validation is None or pushed is None else pushed + self._validation
        updated_at = self.at if pushed is None else pushed
        exposure = self._works[id].unit.exposure_seconds  # infinite if it needs no soak
        self._progress[id] = _Progress(updated_at, pushed, passed, passed or updated_at, exposure)

    def _unit(self, id: str) -> Unit:
        """A unit as it is now."""
        if id in self._settled:
            return self._settled[id]
        unit, progress = self._works[id].unit, self._progress.get(id)
        if progress is None:
            return self._waiting(id)
        passed = progress.validated_at is not None and progress.validated_at <= self.at
        timeline = self._pauses(id)
        grown = max(0.0, self.at - progress.since) - timeline.closed_between(progress.since, self.at)
        counted = max(progress.updated_at, self._now)
        found = replace(
            unit,
            updated_at=progress.updated_at,
            validated_at=progress.validated_at if passed else None,
            exposure_seconds=progress.exposure + (grown + _ROUNDING if passed else 0.0),
            paused_seconds=progress.paused + timeline.closed_between(counted, self.at),
        )
        if passed and found.exposure_seconds >= self._longest_soak:
            self._settled[id] = found  # nothing that happens later makes a difference
        return found

    def _waiting(self, id: str) -> Unit:
        """A unit that is not updated: held while a calendar of it is closed, as in a rollout."""
        unit, until = self._works[id].unit, self._closed.get(self._works[id].calendars)
        if until is None or unit.held:
            return unit
        if (id, until) not in self._held:
            why = f"closed until {iso(until)}" if until < math.inf else "closed"
            self._held[id, until] = replace(unit, held=why)
        return self._held[id, until]

    def _events(self, answer: Selection) -> Iterator[float]:
        """When something changes: a unit opens, is validated or soaked, or is past its deadline."""
        yield from self._closed.values()
        soak = self._selection.waves[answer.wave - 1].soak_seconds if answer.wave else 0.0
        deadline = self._selection.deadline_seconds
        for id, progress in self._progress.items():
            if id in self._settled:
                continue
            timeline = self._pauses(id)
            if progress.validated_at is not None:
                yield progress.validated_at
                yield timeline.after_open(progress.since, soak - progress.exposure)
            if deadline is not None:
                late = soak + deadline - progress.paused
                yield timeline.after_open(progress.updated_at, late) + _ROUNDING

    def _note(self, answer: Selection) -> None:
        """Record which waves are over. One is under way again once a unit opens that it had skipped."""
        for number, times in self.times.items():
            if not (answer.done or number < answer.wave):
                times.ends = None
            elif times.ends is None:
                times.ends = self.at


def _finite(at: float) -> float | None:
    return at if at < math.inf else None
