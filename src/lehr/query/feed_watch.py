"""Watching the feed of a partition: one reader of the store for any number of watchers.

As for intent, a watcher is just a position, and buffers nothing. The entries that were read last
are kept in memory: most watchers wait for the next, and all get the same.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from functools import partial
from itertools import islice

from lehr.base.blocking import Blocking, Inline
from lehr.base.clock import Clock
from lehr.model.asset import Partition
from lehr.model.damage import DamagedError
from lehr.model.feed import FeedEntry
from lehr.query.arrivals import Arrivals
from lehr.sdk.store import Store
from lehr.sdk.watch import FeedGoneError

_AT_ONCE = 50
"""Entries of one read. Each has the changes of a commit, at most a few thousand."""

_KEPT_CHANGES = 50_000

_POLL_SECONDS = 1.0


class FeedWatch:
    """The feed of a partition. Implements `lehr.sdk.watch.WatchableFeed`.

    The process that commits calls `notify_committed`; commits of other processes are found by polling.
    """

    def __init__(
        self,
        store: Store,
        partition: Partition,
        clock: Clock,
        *,
        poll: float = _POLL_SECONDS,
        heartbeat: float = 10.0,
        kept: int = _KEPT_CHANGES,
        reading: Blocking | None = None,
    ) -> None:
        """Yields an empty entry if nothing happens for `heartbeat` seconds.

        Args:
            poll: seconds between two looks while a watcher waits.
            kept: changes that are kept in memory.
            reading: runs reads of the store; by default they are run where they are asked for.
        """
        self._partition = partition
        self._records = store.records
        self._clock = clock
        self._heartbeat = heartbeat
        self._most_kept = kept
        self._reading = reading or Inline()
        self._kept: deque[FeedEntry] = deque()
        self._weight = 0
        self._reads: dict[int, asyncio.Task[list[FeedEntry]]] = {}
        self._arrivals = Arrivals(
            f"the feed of {partition}", lambda: self._records.position(partition), self._reading, poll
        )

    def notify_committed(self) -> None:
        """Signal that something was committed, which may have an entry."""
        self._arrivals.notify()

    async def position(self) -> int:
        return await self._arrivals.newest()

    async def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        while True:
            found = await self._after(after)
            for entry in found:
                after = entry.position
                yield entry
            if not found and not await self._arrivals.wait(after, self._heartbeat):
                yield FeedEntry(after, self._clock.now())

    async def _after(self, position: int) -> Sequence[FeedEntry]:
        """The next entries, from memory if they are there."""
        if self._kept and self._kept[0].position <= position + 1 <= self._kept[-1].position:
            first = position + 1 - self._kept[0].position
            return tuple(islice(self._kept, first, first + _AT_ONCE))
        reading = self._reads.get(position)
        if reading is None:
            reading = asyncio.create_task(self._read(position), name=f"feed of {self._partition}")
            self._reads[position] = reading
            reading.add_done_callback(partial(self._was_read, position))
        return await asyncio.shield(reading)  # others may wait for it as well

    def _was_read(self, position: int, reading: asyncio.Task[list[FeedEntry]]) -> None:
        del self._reads[position]
        if not reading.cancelled():
            reading.exception()  # all who waited for it may have left

    async def _read(self, after: int) -> list[FeedEntry]:
        try:
            found = await self._reading.run(self._records.feed, self._partition, after, _AT_ONCE)
        except DamagedError as error:
            # A watcher that lists needs only what is recorded now.
            raise FeedGoneError(after, error.what) from error
        self._keep(found)
        return found

    def _keep(self, found: list[FeedEntry]) -> None:
        """Keep the newest entries, which follow each other without a gap."""
        for entry in found:
            if self._kept and entry.position <= self._kept[-1].position:
                continue
            if self._kept and entry.position > self._kept[-1].position + 1:
                self._kept.clear()
                self._weight = 0
            self._kept.append(entry)
            self._weight += len(entry.changes) + 1
        while self._weight > self._most_kept and len(self._kept) > 1:
            self._weight -= len(self._kept.popleft().changes) + 1
