"""Hints that a source may have changed: from polls, quick checks and notifications."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock

_GLANCE = 0.1


class Hints:
    """Decides when to check a source again.

    Args:
        poll_seconds: longest time between two hints.
        glance: a cheap check, run every 0.1 s: a result that differs from the last is a hint. None without a
            cheap check.
        blocking: runs `glance`, which may hang on a dead network file system.
    """

    def __init__(
        self,
        clock: Clock,
        poll_seconds: float,
        *,
        glance: Callable[[], Hashable] | None = None,
        blocking: Blocking,
    ) -> None:
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._glance = glance
        self._blocking = blocking
        self._listeners: set[asyncio.Event] = set()

    def notify(self) -> None:
        """Give a hint at once. Call it on the event loop's thread."""
        for listener in self._listeners:
            listener.set()

    async def changes(self) -> AsyncIterator[None]:
        """The hints, for one listener. Everything that happens between two of them results in one hint."""
        notified = asyncio.Event()
        self._listeners.add(notified)
        try:
            seen = await self._look()
            while True:
                seen = await self._next(notified, seen)
                yield
        finally:
            self._listeners.discard(notified)

    async def _next(self, notified: asyncio.Event, seen: Hashable) -> Hashable:
        due = self._clock.monotonic() + self._poll_seconds
        while True:
            left = due - self._clock.monotonic()
            await self._pause(notified, left if self._glance is None else min(left, _GLANCE))
            was_notified = notified.is_set()
            notified.clear()
            sight = await self._look()
            if was_notified or sight != seen or self._clock.monotonic() >= due:
                return sight

    async def _look(self) -> Hashable:
        return None if self._glance is None else await self._blocking.run(self._glance)

    async def _pause(self, notified: asyncio.Event, seconds: float) -> None:
        # Ten times a second, all day: one timer is cheaper than two tasks.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await notified.wait()
