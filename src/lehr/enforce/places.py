"""A bounded number of places, which are taken without a coroutine where one is free."""

from __future__ import annotations

import asyncio
from collections import deque


class Places:
    """A number of places, which are handed out in the order of the queue.

    `asyncio.Semaphore` makes seven calls to take a place and to give it back, even where one is free, and a
    turn that has nothing to do makes fewer than two hundred.

    Attributes:
        free: places that are not taken; while there are any, none waits.
    """

    def __init__(self, count: int) -> None:
        self.free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Take a place if one is free; returns whether one was."""
        if not self.free:
            return False
        self.free -= 1
        return True

    async def wait(self) -> None:
        """Take a place as soon as those who came before have theirs."""
        if self.take():
            return
        handed = asyncio.get_running_loop().create_future()
        self._waiting.append(handed)
        try:
            await handed
        except asyncio.CancelledError:
            if not handed.cancelled():  # it got its place in the same moment
                self.give_back()
            raise

    def give_back(self) -> None:
        """Hand a place on to the next in the queue."""
        while self._waiting:
            handed = self._waiting.popleft()
            if not handed.done():
                handed.set_result(None)
                return
        self.free += 1
