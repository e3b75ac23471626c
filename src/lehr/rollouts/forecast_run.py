"""A rollout in virtual time: every push and every validation takes as long as assumed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from lehr.rollouts.open_times import Timeline
from lehr.rollouts.selection import Selection, select
from lehr.rollouts.units import Unit
from lehr.rollouts.waves import TargetSelection

_MOST_STEPS = 100_000


class UnitWork(msgspec.Struct, frozen=True):
    """A unit, and the work of updating it.

    Attributes:
        pushes: kinds of its pushes, one after the other, such as the types of its assets.
        calendars: names of those that its pushes wait for. Closed times also pause its soak.
    """

    unit: Unit
    pushes: tuple[str, ...] = ()
    calendars: tuple[str, ...] = ()


class Times(msgspec.Struct):
    """When a wave starts and ends in a run; None for unknown."""

    starts: float | None = None
    ends: float | None = None


class _Progress(msgspec.Struct):
    """How far a unit is.

    Attributes:
        validated_at: None if that is unknown.
        since: from when on its exposure grows.
    """

    updated_at: float
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
    ) -> None:
        """A run in which a push of a kind takes `seconds`, and validation `validation`; None if unknown."""
        self._selection = selection
        self._works = {work.unit.id: work for work in works}
        self._timelines = timelines
        self._seconds = seconds
        self._validation = validation
        self._now = self.at = now
        self._progress = {id: found for id in self._works if (found := self._begun(id)) is not None}
        self._longest_soak = max(wave.soak_seconds for wave in selection.waves)
        self._settled: dict[str, Unit] = {}
        self.first_wave: int | None = None
        self.times = {number: Times() for number in range(1, len(selection.waves) + 1)}
        self.last = self._run(end)

    def _run(self, end: float) -> Selection:
        for _ in range(_MOST_STEPS):
            answer = select(self._selection, [self._unit(id) for id in self._works], self.at)
            if self.first_wave is None:
                self.first_wave = answer.wave
            self._note(answer)
            for id in answer.update:
                self._push(id, answer.wave)
            if any(self._progress[id].validated_at == self.at for id in answer.update):
                continue  # at once, so that the next ones may follow at the same time
            following = min((at for at in self._events(answer) if at > self.at), default=None)
            if answer.done or answer.overdue or following is None or following > end:
                break
            self.at = following
        return answer

    def _timeline(self, id: str) -> Timeline:
        return self._timelines[self._works[id].calendars]

    def _begun(self, id: str) -> _Progress | None:
        """The progress of a unit that is updated already."""
        unit = self._works[id].unit
        if unit.updated_at is None:
            return None
        passed = unit.validated_at
        if passed is None and self._validation is not None:
            passed = max(self._now, unit.updated_at + self._validation)
        since = self._now if unit.validated else passed or self._now
        return _Progress(unit.updated_at, passed, since, unit.exposure_seconds, unit.paused_seconds)

    def _push(self, id: str, wave: int) -> None:
        """Push all assets of a unit, each as soon as its calendars are open."""
        timeline, at = self._timeline(id), self.at
        starts: float | None = None
        for kind in self._works[id].pushes:
            at = timeline.opening(at)
            starts = at if starts is None else starts
            took = self._seconds(kind)
            at = float("inf") if took is None else at + took
        found = self.times[wave]
        starts = at if starts is None else starts
        if starts < float("inf") and (found.starts is None or starts < found.starts):
            found.starts = starts
        passed = None if self._validation is None or at == float("inf") else at + self._validation
        updated_at = self.at if at == float("inf") else at
        self._progress[id] = _Progress(updated_at, passed, passed or updated_at)

    def _unit(self, id: str) -> Unit:
        """A unit as it is now."""
        if id in self._settled:
            return self._settled[id]
        unit, progress = self._works[id].unit, self._progress.get(id)
        if progress is None:
            return unit
        passed = progress.validated_at is not None and progress.validated_at <= self.at
        timeline = self._timeline(id)
        grown = max(0.0, self.at - progress.since) - timeline.closed_between(progress.since, self.at)
        counted = max(progress.updated_at, self._now)
        found = replace(
            unit,
            updated_at=progress.updated_at,
            validated_at=progress.validated_at if passed else None,
            exposure_seconds=progress.exposure + (grown if passed else 0.0),
            paused_seconds=progress.paused + timeline.closed_between(counted, self.at),
        )
        if passed and found.exposure_seconds >= self._longest_soak:
            self._settled[id] = found  # nothing that happens later makes a difference
        return found

    def _events(self, answer: Selection) -> Iterator[float]:
        """When something changes: a unit is validated or soaked, or is past its deadline."""
        soak = self._selection.waves[answer.wave - 1].soak_seconds if answer.wave else 0.0
        deadline = self._selection.deadline_seconds
        for id, progress in self._progress.items():
            if id in self._settled:
                continue
            timeline = self._timeline(id)
            if progress.validated_at is not None:
                yield progress.validated_at
                yield timeline.after_open(progress.since, soak - progress.exposure)
            if deadline is not None:
                yield timeline.after_open(progress.updated_at, soak + deadline - progress.paused)

    def _note(self, answer: Selection) -> None:
        """Record which waves are over."""
        for number, times in self.times.items():
            if times.ends is None and (answer.done or number < answer.wave):
                times.ends = self.at
