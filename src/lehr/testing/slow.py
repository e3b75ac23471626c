"""Blocking calls that take virtual time, as those of a busy disk or of a database across a network do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from lehr.base.clock import Clock

P = ParamSpec("P")
T = TypeVar("T")

Delays = Callable[[], tuple[float, float]]
"""Seconds before a call takes effect, and seconds until it returns after that. `inf`: for ever."""


def at_once() -> tuple[float, float]:
    """No delay at all."""
    return 0.0, 0.0


def responsive() -> float:
    """A server that never hangs."""
    return 0.0


class Slow:
    """A `lehr.base.blocking.Blocking` whose calls are made one after the other, each with delays.

    A call behaves as in a thread: it continues when the task that awaits it is cancelled.

    Attributes:
        delays: asked before each call; may be replaced at any time.
        hang: seconds until what is called answers again; asked just before each call takes effect.
    """

    def __init__(
        self, clock: Clock, delays: Delays = at_once, hang: Callable[[], float] = responsive
    ) -> None:
        self.delays = delays
        self.hang = hang
        self._clock = clock
        self._turn = asyncio.Lock()
        self._calls = 0

    @property
    def busy(self) -> bool:
        """True while a call is under way."""
        return self._calls > 0

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        before, after = self.delays()
        if not (self._calls or before or after or self.hang()):
            return call(*args, **kwargs)

        async def carried_out() -> T:
            async with self._turn:
                await self._pass(before)
                await self._pass(self.hang())
                try:
                    return call(*args, **kwargs)
                finally:
                    await self._pass(after)

        self._calls += 1
        task = asyncio.ensure_future(carried_out())
        task.add_done_callback(self._over)
        return await asyncio.shield(task)

    async def _pass(self, seconds: float) -> None:
        if seconds == float("inf"):
            await asyncio.Event().wait()
        elif seconds:
            await self._clock.sleep(seconds)

    def _over(self, task: asyncio.Task[T]) -> None:
        self._calls -= 1
        if not task.cancelled():
            task.exception()  # retrieved, in case nothing awaits it any more

    def close(self) -> None:
        """There is nothing to end."""
