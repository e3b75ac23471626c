"""Hints that a source may have changed: from polls, quick checks and notifications."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Protocol

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock

_GLANCE = 0.1
"""Between two checks of a source whose changes are not reported, and the least between two hints."""

_SAFETY = 5.0
"""Between two checks of a source whose changes are reported: a report may be lost."""


class Sight(Protocol):
    """A cheap check of a source for one listener. It may also wake the listener."""

    def look(self) -> Hashable:
        """A value that differs from the last one if the source may have changed. May block."""
        ...

    @property
    def reported(self) -> bool:
        """Whether the listener will be woken when the value changes after the last `look`."""
        ...

    def close(self) -> None:
        """The listener has left. Called on the event loop's thread."""
        ...


class _Listener:
    """A listener to hints.

    Attributes:
        sight: what it looks at; None for nothing.
        hinted: an external notification arrived.
        woken: so did that, or a report that the sight may differ.
    """

    def __init__(self, sight: Callable[[Callable[[], None]], Sight] | None) -> None:
        self.hinted = asyncio.Event()
        self.woken = asyncio.Event()
        self.sight = None if sight is None else sight(self.woken.set)

    def hint(self) -> None:
        self.hinted.set()
        self.woken.set()

    def take(self) -> bool:
        """Whether a notification arrived since the last call."""
        hinted = self.hinted.is_set()
        self.hinted.clear()
        self.woken.clear()
        return hinted

    def patience(self) -> float:
        """Seconds until it looks again."""
        if self.sight is None:
            return float("inf")
        return _SAFETY if self.sight.reported else _GLANCE


class Hints:
    """Decides when to check a source again.

    Args:
        poll_seconds: longest time between two hints.
        sight: begins a cheap check for a listener, which it may wake by calling its argument on the event
            loop's thread. A result that differs from the last is a hint. The check is repeated every 0.1 s,
            or every 5 s while changes are reported. None without a cheap check.
        blocking: runs the checks, which may hang on a dead network file system.
    """

    def __init__(
        self,
        clock: Clock,
        poll_seconds: float,
        *,
        sight: Callable[[Callable[[], None]], Sight] | None = None,
        blocking: Blocking,
    ) -> None:
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._sight = sight
        self._blocking = blocking
        self._listeners: set[_Listener] = set()

    def notify(self) -> None:
        """Give a hint at once. Call it on the event loop's thread."""
        for listener in self._listeners:
            listener.hint()

    async def changes(self) -> AsyncIterator[None]:
        """The hints, for one listener. Everything that happens between two of them results in one hint."""
        listener = _Listener(self._sight)
        self._listeners.add(listener)
        try:
            seen, calm = await self._look(listener), 0.0
            while True:
                seen = await self._next(listener, seen, calm)
                calm = self._clock.monotonic() + _GLANCE
                yield
        finally:
            self._listeners.discard(listener)
            if listener.sight is not None:
                listener.sight.close()

    async def _next(self, listener: _Listener, seen: Hashable, calm: float) -> Hashable:
        """Wait for the next hint, not before `calm` unless it is due or an external notification."""
        due = self._clock.monotonic() + self._poll_seconds
        while True:
            left = due - self._clock.monotonic()
            await _pause(listener.woken, min(left, listener.patience()))
            if not listener.hinted.is_set():
                await _pause(listener.hinted, min(due, calm) - self._clock.monotonic())
            hinted = listener.take()
            sight = await self._look(listener)
            if hinted or sight != seen or self._clock.monotonic() >= due:
                return sight

    async def _look(self, listener: _Listener) -> Hashable:
        return None if listener.sight is None else await self._blocking.run(listener.sight.look)


async def _pause(event: asyncio.Event, seconds: float) -> None:
    if seconds > 0:  # one timer is cheaper than two tasks
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
