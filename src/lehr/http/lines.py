"""The changes of each incarnation, as lines for watchers: each made once, in a thread."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.client.wire import encode_batch
from lehr.http.limits import Limits
from lehr.http.parameters import incarnation_at
from lehr.http.resources import wanted_of
from lehr.http.sieves import Sieves
from lehr.model.asset import Asset, Partition
from lehr.query.asset_pages import Wanted
from lehr.query.partition_view import Reading
from lehr.query.partition_watch import IncarnationFeed, PartitionWatch
from lehr.sdk.store import Row, Store
from lehr.sdk.watch import ListAgainError

_KEPT_BYTES = 64 * 2**20
"""Bytes of cached lines, for watchers that need them at about the same time."""

_KEPT_CHANGES = 5000
"""For watchers of other parts of the same intent."""

_KEPT_CONDITIONS = 256
_LONGEST_NUMBER = 18


class WatchRequest(NamedTuple):
    """The watched part of a partition: the parameters as given."""

    partition: Partition
    filter: str
    types: str
    selector: str


class Lines:
    """Lines of all watches. Reads, filters and encodes in a thread of its own, with a store of its own.

    Invariant: cached bytes are bounded over all watches, as is the time for each line.
    """

    def __init__(
        self, open_store: Callable[[], Store], blocking: Blocking, clock: Clock, limits: Limits
    ) -> None:
        """`blocking` runs one call at a time."""
        self._open = open_store
        self._blocking = blocking
        self._clock = clock
        self._limits = limits
        self._lines: OrderedDict[tuple[WatchRequest, int], bytes] = OrderedDict()
        self._bytes = 0
        self._making: dict[tuple[WatchRequest, int], asyncio.Task[bytes]] = {}
        self._sieves = Sieves(limits)
        # In the thread:
        self._store: Store | None = None
        self._feeds: dict[Partition, IncarnationFeed] = {}
        self._conditions: OrderedDict[WatchRequest, Wanted] = OrderedDict()

    async def begin(self, request: WatchRequest, after: str) -> int:
        """The sequence of the incarnation that `after` names; 0 is before the first.

        Raises:
            ProblemError: it does not exist, or the request cannot be parsed.
        """
        return await self._blocking.run(self._begin, request, after)

    async def line(self, request: WatchRequest, sequence: int) -> bytes:
        """The changes of an incarnation within the watched part.

        Raises:
            ListAgainError: they are no longer known, or take too long to compute.
            TransientError: it cannot be read now.
        """
        key = (request, sequence)
        known = self._lines.get(key)
        if known is not None:
            return known
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.create_task(self._made(request, sequence))
            making.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(making)  # other watchers wait for it as well

    async def close(self) -> None:
        """Stop making lines."""
        for making in self._making.values():
            making.cancel()
        await asyncio.gather(*self._making.values(), return_exceptions=True)
        await self._blocking.run(self._drop)
        self._sieves.close()
        self._blocking.close()

    def _forget(self, key: tuple[WatchRequest, int], done: asyncio.Task[bytes]) -> None:
        del self._making[key]
        if not done.cancelled():
            done.exception()  # the client that waited for it may be gone

    async def _made(self, request: WatchRequest, sequence: int) -> bytes:
        line = await self._blocking.run(self._make, request, sequence)
        self._lines[request, sequence] = line
        self._bytes += len(line)
        while self._bytes > _KEPT_BYTES and len(self._lines) > 1:
            _key, dropped = self._lines.popitem(last=False)
            self._bytes -= len(dropped)
        return line

    # --- in the thread ---------------------------------------------------------------

    def _begin(self, request: WatchRequest, after: str) -> int:
        self._condition(request)
        if after.isascii() and after.isdecimal():
            return int(after[:_LONGEST_NUMBER])
        reading = Reading(self._opened(), request.partition, self._clock.now(), lambda _type: False)
        if after == "latest" and reading.newest() is None:
            return 0
        return incarnation_at(reading, after, "after").sequence

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open()
        return self._store

    def _make(self, request: WatchRequest, sequence: int) -> bytes:
        wanted = self._condition(request)
        deadline = self._clock.monotonic() + self._limits.line_seconds

        def matches(asset: Asset) -> bool:
            if self._clock.monotonic() > deadline:
                raise ListAgainError(sequence - 1, "filtering the changes since then takes too long")
            return self._matches(wanted, asset)

        try:
            store = self._opened()
            feed = IncarnationFeed(store, request.partition, kept=_KEPT_CHANGES)
            feed = self._feeds.setdefault(request.partition, feed)
            watch = PartitionWatch(store, feed, types=wanted.types, wanted=matches)
            return encode_batch(watch.batch(sequence))
        except ListAgainError:
            raise
        except BaseException:
            self._drop()  # whatever happened, the next one starts with a new store
            raise

    def _matches(self, wanted: Wanted, asset: Asset) -> bool:
        if wanted.selector is not None and not wanted.selector.matches(asset):
            return False
        if wanted.filter is None:
            return True
        if not wanted.filter.heavy:
            return wanted.filter.matches(asset)
        row = Row(asset.id, asset.type, asset.body, asset.digest, None)
        return bool(self._sieves.sift(wanted.filter, (row,), self._limits.page_work).matched)

    def _condition(self, request: WatchRequest) -> Wanted:
        found = self._conditions.pop(request, None) or wanted_of(
            request.filter, request.types, request.selector
        )
        self._conditions[request] = found
        if len(self._conditions) > _KEPT_CONDITIONS:
            self._conditions.popitem(last=False)
        return found

    def _drop(self) -> None:
        self._feeds.clear()
        store, self._store = self._store, None
        if store is not None:
            store.close()
