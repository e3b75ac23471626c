"""Asks each question once in its interval, however many assets it governs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from lehr.base.clock import Clock
from lehr.base.log import Log
from lehr.model.monitoring import (
    Cause,
    MetricError,
    MetricHistory,
    Question,
    Reading,
    Sample,
    after,
    hold_of,
    reading_of,
)
from lehr.sdk.metrics import MetricSource

log = Log()

_KEEP_SECONDS = 900.0
"""A question is asked for so long after a check last needed it."""
_CLOSE_SECONDS = 5.0


class _Watched:
    def __init__(self, now: float) -> None:
        self.begun = self.wanted_at = now
        self.history: MetricHistory | None = None
        self.first = asyncio.Event()
        self.doubted_at: float | None = None


class Looks:
    """Implements `lehr.sdk.metrics.Metrics`."""

    def __init__(
        self, sources: Mapping[str, MetricSource], clock: Clock, patience: float | None = 2.0
    ) -> None:
        """Look at `sources`, by name.

        Args:
            patience: seconds from the beginning of a first look for which `history` waits for its end; None
                to wait until it ends.
        """
        self._sources = sources
        self._clock = clock
        self._patience = patience
        self._watched: dict[Question, _Watched] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed: list[Callable[[], None]] = []

    def listen(self, changed: Callable[[], None]) -> None:
        self._changed.append(changed)

    def ignore(self, changed: Callable[[], None]) -> None:
        if changed in self._changed:
            self._changed.remove(changed)

    async def history(self, question: Question) -> MetricHistory | None:
        now = self._clock.monotonic()
        watched = self._watched.get(question)
        if watched is None:
            watched = self._watched[question] = _Watched(now)
            task = asyncio.create_task(self._follow(question, watched), name=f"looks at {question.source}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        watched.wanted_at = now
        if watched.history is None:
            await self._first_look(watched)
        return watched.history

    async def _first_look(self, watched: _Watched) -> None:
        left = None if self._patience is None else self._patience + watched.begun - self._clock.monotonic()
        if left is None or left > 0:
            # A turn that waits here holds a place of its plugin, so it waits for a moment only.
            try:
                async with asyncio.timeout(left):
                    await watched.first.wait()
            except TimeoutError:
                pass

    async def _follow(self, question: Question, watched: _Watched) -> None:
        while True:
            began = self._clock.monotonic()
            before = watched.history
            watched.history = after(before, await self._look(question))
            watched.first.set()
            self._notice(question, before, watched.history)
            await self._clock.sleep(max(0.0, began + question.every - self._clock.monotonic()))
            if self._is_forgotten(watched, question.every):
                del self._watched[question]
                return

    def _is_forgotten(self, watched: _Watched, every: float) -> bool:
        """Whether nothing waits for the answer: assets that do are woken first, and then need it again."""
        now = self._clock.monotonic()
        if now - watched.wanted_at <= max(_KEEP_SECONDS, every):
            watched.doubted_at = None
        elif watched.doubted_at is None:
            watched.doubted_at = now
            self._notify()
        else:
            return now - watched.doubted_at > _KEEP_SECONDS
        return False

    async def _look(self, question: Question) -> Reading:
        try:
            return reading_of(question, await self.ask(question), self._clock.now())
        except MetricError as error:
            return reading_of(question, error, self._clock.now())

    async def ask(self, question: Question) -> Sequence[Sample]:
        source = self._sources.get(question.source)
        if source is None:
            raise MetricError(Cause.NO_SOURCE, f"no metric source {question.source} is configured")
        try:
            async with asyncio.timeout(source.timeout):
                found = tuple(await source.ask(question))
            if any(not isinstance(sample, Sample) for sample in found):
                raise TypeError("an answer has something else than samples")
            return found
        except MetricError:
            raise
        except TimeoutError:
            raise MetricError(Cause.TIMEOUT, f"no answer within {source.timeout:g}s") from None
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise _failed(question, error) from None
        except Exception as error:
            raise _failed(question, error) from None

    def _notice(self, question: Question, before: MetricHistory | None, history: MetricHistory) -> None:
        held = None if before is None else hold_of(question, before, before.last.at)
        holds = hold_of(question, history, history.last.at)
        if before is None or held != holds:
            self._notify()

    def _notify(self) -> None:
        for changed in tuple(self._changed):
            changed()

    async def close(self) -> None:
        """Stop looking, and close the sources."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)
        for source in self._sources.values():
            await source.close()


def _failed(question: Question, error: BaseException) -> MetricError:
    # Without its message, which may have a credential.
    log.error("a metric source failed", source=question.source, error=type(error).__name__)
    return MetricError(Cause.FAILED, f"the source failed: {type(error).__name__}")
