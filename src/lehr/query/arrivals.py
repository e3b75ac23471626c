"""Waiting for the next number of something that grows in a store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from lehr.base.blocking import Blocking
from lehr.base.errors import StalledError, TransientError


class Arrivals:
    """The newest number, shared by everything that waits for a later one.

    `notify` hints at one; without a hint, it is found by polling.
    """

    def __init__(self, what: str, read: Callable[[], int], reading: Blocking, poll: float) -> None:
        """Polls every `poll` seconds while anything waits.

        Args:
            what: grows, for the name of the task that polls.
            read: reads the newest number from the store; 0 before the first. `reading` runs it.
        """
        self._what = what
        self._read = read
        self._reading = reading
        self._poll = poll
        self._news = asyncio.Event()
        self._hint = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._waiters = 0
        self._newest = 0
        self._announced = 0
        self._failure: StalledError | None = None

    @property
    def announced(self) -> int:
        """The newest number that was announced or found."""
        return max(self._newest, self._announced)

    def notify(self, number: int = 0) -> None:
        """Signal that there may be a later number, and which, if that is known."""
        self._announced = max(self._announced, number)
        self._hint.set()

    async def newest(self) -> int:
        """The newest number that can be read.

        Raises:
            TransientError, StalledError: the store cannot be read.
        """
        found = await self._reading.run(self._read)
        self._failure = None
        if found > self._newest:
            self._newest = found
            self._wake()
        return found

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def wait(self, after: int, seconds: float) -> bool:
        """Wait until there is a number after `after`. False if there is none within that many seconds.

        Raises:
            TransientError, StalledError: the store cannot be read.
        """
        if await self.newest() > after:
            return True
        self._waiters += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name=f"watch of {self._what}")
        try:
            async with asyncio.timeout(seconds):
                while self._newest <= after:
                    await self._news.wait()
                    if self._failure is not None:
                        raise self._failure
        except TimeoutError:
            return False
        finally:
            self._waiters -= 1
            if not self._waiters and self._looking is not None:
                self._looking.cancel()
                self._looking = None
        return True

    async def _look(self) -> None:
        """Find later numbers, announced or not, while anything waits."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._hint.wait()
            self._hint.clear()
            try:
                await self.newest()
            except TransientError:
                continue
            except StalledError as error:
                # Otherwise a watcher would wait forever for data that cannot be read.
                self._failure = error
                self._wake()
