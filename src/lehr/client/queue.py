"""The work queue: items to process."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from lehr.base.backoff import delay
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.client.agenda import Agenda
from lehr.client.turns import TurnQueue

T = TypeVar("T", bound=Hashable)


class WorkQueue(Generic[T]):
    """Each item is queued once and held by one worker at a time; FIFO, but urgent items go first.

    Urgent items never starve the rest. A worker that takes an item calls `done` when it has finished: an item
    added before that is handed out once more afterwards. A failed item is retried after a delay that grows
    with its consecutive failures.
    """

    def __init__(self, clock: Clock, chance: Chance, *, first: float = 1.0, longest: float = 300.0) -> None:
        """The first retry comes after about `first` seconds; the delay then doubles, up to `longest`."""
        self._clock = clock
        self._chance = chance
        self._first, self._longest = first, longest
        self._waiting: TurnQueue[T] = TurnQueue()
        self._dirty: dict[T, bool] = {}  # and whether it is urgent
        self._taken: set[T] = set()
        self._failures: dict[T, int] = {}
        self._later: Agenda[T] = Agenda()
        self._timer: asyncio.TimerHandle | None = None
        self._arrived = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """The number of items that wait to be taken."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """True when nothing waits, nothing is taken, and nothing is due later."""
        return not (self._waiting or self._taken or self._later)

    def add(self, item: T, *, urgent: bool = True) -> None:
        """Queue `item`; an `urgent` one goes before those that are not."""
        if self._closed:
            return
        if item not in self._dirty:
            self._dirty[item] = urgent
            self._queue(item)
        elif urgent and not self._dirty[item]:
            self._dirty[item] = True
            if item not in self._taken:
                self._waiting.hasten(item)

    def _queue(self, item: T) -> None:
        if item not in self._taken:
            self._waiting.add(item, urgent=self._dirty[item])
            self._arrived.set()

    def add_after(self, item: T, seconds: float) -> None:
        """Queue `item` after `seconds`, not as urgent, unless it is due sooner already."""
        if seconds <= 0:
            self.add(item, urgent=False)
        elif not self._closed:
            before = self._later.next_due()
            self._later.bring_forward(item, self._clock.monotonic() + seconds)
            if self._later.next_due() != before:
                self._wait_for_next()

    def _wait_for_next(self) -> None:
        """One timer, for the item that is due first: a million items may be due later."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._later.next_due()
        if due is not None:
            seconds = max(0.0, due - self._clock.monotonic())
            self._timer = asyncio.get_running_loop().call_later(seconds, self._bring_due)

    def _bring_due(self) -> None:
        for item in self._later.pop(self._clock.monotonic()):
            self.add(item, urgent=False)
        self._wait_for_next()

    def retry(self, item: T) -> float:
        """Retry `item` after a failure. Returns the delay in seconds."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        seconds = delay(failures, self._chance.uniform(0.0, 1.0), first=self._first, longest=self._longest)
        self.add_after(item, seconds)
        return seconds

    def forget(self, item: T) -> None:
        """Forget the failures of `item`, which succeeded."""
        self._failures.pop(item, None)

    def failures(self, item: T) -> int:
        """The number of consecutive failures of `item`."""
        return self._failures.get(item, 0)

    async def take(self) -> T:
        """Wait for the next item. Always call `done` with it afterwards, whatever the result."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        item = self._waiting.take()
        del self._dirty[item]
        self._taken.add(item)
        return item

    def done(self, item: T) -> None:
        """Mark `item`, which was taken, as finished."""
        self._taken.discard(item)
        if item in self._dirty:
            self._queue(item)

    def close(self) -> None:
        """Accept no more items, and forget those that are due later."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._later = Agenda()
