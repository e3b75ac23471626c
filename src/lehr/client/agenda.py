"""Due times: a heap of monotonic times, with entries that go stale instead of moving."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from lehr.base.clock import Clock

T = TypeVar("T")

_SLACK = 1024
_MOST_AT_ONCE = 1000


class Agenda(Generic[T]):
    """At most one due time per item. Setting another forgets the first.

    Many items share few due times, so those of one time are queued, and only the times are in a heap:
    O(1) for an item, and O(log n) for each new time.
    """

    def __init__(self) -> None:
        self._times: list[float] = []  # a heap
        self._at: dict[float, deque[tuple[float, T]]] = {}
        self._due: dict[T, tuple[float, T]] = {}  # the entry of `_at` that counts, oldest first
        self._entries = 0  # of `_at`, with those that are stale
        self._sooner = asyncio.Event()

    def __len__(self) -> int:
        """The number of items with a due time."""
        return len(self._due)

    def set(self, item: T, due: float) -> None:
        """`item` is due at `due` (monotonic seconds), and not at any earlier set time."""
        self._due.pop(item, None)
        entry = self._due[item] = (due, item)
        self._queue(entry)
        if self._entries > 2 * len(self._due) + _SLACK:
            self._drop_stale()
        if self._times[0] == due and self._at[due][0] is entry:
            self._sooner.set()

    def _queue(self, entry: tuple[float, T]) -> None:
        due = entry[0]
        queue = self._at.get(due)
        if queue is None:
            queue = self._at[due] = deque()
            heapq.heappush(self._times, due)
        queue.append(entry)
        self._entries += 1

    def _drop_stale(self) -> None:
        self._times, self._at, self._entries = [], {}, 0
        for entry in self._due.values():
            self._queue(entry)

    def bring_forward(self, item: T, due: float) -> None:
        """Make `item` due at `due`, unless it is due sooner already."""
        before = self._due.get(item)
        if before is None or before[0] > due:
            self.set(item, due)

    def discard(self, item: T) -> None:
        """Remove the due time of `item`."""
        self._due.pop(item, None)

    def next_due(self) -> float | None:
        """When the first item is due; None if nothing is."""
        while self._times:
            due = self._times[0]
            queue = self._at[due]
            while queue:
                if self._due.get(queue[0][1]) is queue[0]:
                    return due
                queue.popleft()
                self._entries -= 1
            heapq.heappop(self._times)
            del self._at[due]
        return None

    def pop(self, now: float) -> Iterator[T]:
        """Take every item that is due at `now`, in order."""
        while (due := self.next_due()) is not None and due <= now:
            item = self._at[due].popleft()[1]
            self._entries -= 1
            del self._due[item]
            yield item

    async def wait(self, clock: Clock) -> list[T]:
        """Wait until something is due by `clock`, and take due items in order, up to a limit."""
        loop = asyncio.get_running_loop()
        while True:
            self._sooner.clear()
            if taken := list(itertools.islice(self.pop(clock.monotonic()), _MOST_AT_ONCE)):
                return taken
            due = self.next_due()
            # A bare timer: asyncio.timeout cancels and catches, and makes it 9 us instead of 6.
            timer = None
            if due is not None:
                timer = loop.call_later(max(0.0, due - clock.monotonic()), self._sooner.set)
            try:
                await self._sooner.wait()
            finally:
                if timer is not None:
                    timer.cancel()
