"""Due times: a heap of monotonic times, with entries that go stale instead of moving."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Iterator
from typing import Generic, TypeVar

from lehr.base.clock import Clock

T = TypeVar("T")

_SLACK = 1024
_MOST_AT_ONCE = 1000


class Agenda(Generic[T]):
    """At most one due time per item. Setting another forgets the first. O(log n)."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._due: dict[T, tuple[float, int, T]] = {}  # the entry of the heap that counts
        self._numbers = itertools.count()
        self._sooner = asyncio.Event()

    def __len__(self) -> int:
        """The number of items with a due time."""
        return len(self._due)

    def set(self, item: T, due: float) -> None:
        """`item` is due at `due` (monotonic seconds), and not at any earlier set time."""
        number = next(self._numbers)
        entry = self._due[item] = (due, number, item)
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = list(self._due.values())
            heapq.heapify(self._heap)
        if self._heap[0] is entry:
            self._sooner.set()

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
        while self._heap:
            entry = self._heap[0]
            if self._due.get(entry[2]) is entry:
                return entry[0]
            heapq.heappop(self._heap)
        return None

    def pop(self, now: float) -> Iterator[T]:
        """Take every item that is due at `now`, in order."""
        while (due := self.next_due()) is not None and due <= now:
            item = heapq.heappop(self._heap)[2]
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
