"""Streams of batches, one line of JSON for each incarnation.

However many watch the same, each line is made once. Nothing is kept for a watcher but its place: it is
sent a share, and the next when that is taken; whoever does not take it for a time is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any

import msgspec
import structlog
from msgspec import Meta

from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.http.limits import Limits
from lehr.http.problems import ProblemError, meaning, problem, problem_of
from lehr.http.questions import FilterText, OfPartition, SelectorText, Types
from lehr.http.resources import wanted_of
from lehr.model.asset import Partition
from lehr.query.reading import choose_partition
from lehr.query.watching import Feed, PartitionWatch
from lehr.sdk.watch import Batch, ListAgainError
from lehr.sdk.wire import Problem, encode_batch
from lehr.store import Store

log = structlog.get_logger()

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MEDIA_TYPE = "application/jsonl"

_SHARE = 65_536
"""Bytes that are sent at a time."""

_KEPT_BYTES = 16 * 2**20
"""Of lines, for watchers that come by at about the same time."""

_MOST_CHANNELS = 256


class OfWatch(OfPartition, frozen=True):
    """Changes of what, and from where on."""

    after: Annotated[int, Meta(ge=0, le=2**53, description="Incarnation after which changes are wanted.")] = 0
    filter: FilterText = ""
    types: Types = ""
    selector: SelectorText = ""


class Channel:
    """What all who watch the same are sent."""

    def __init__(self, watch: PartitionWatch, feed: Feed) -> None:
        self.feed = feed
        self._watch = watch
        self._lines: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0

    def line(self, sequence: int) -> bytes:
        """What an incarnation has changed.

        Raises:
            ListAgainError: that is not known any more.
            TransientError: it cannot be read now.
        """
        known = self._lines.get(sequence)
        if known is not None:
            return known
        line = encode_batch(self._watch.batch(sequence))
        self._lines[sequence] = line
        self._bytes += len(line)
        while self._bytes > _KEPT_BYTES and len(self._lines) > 1:
            _sequence, dropped = self._lines.popitem(last=False)
            self._bytes -= len(dropped)
        return line


class Watches:
    """All watches of a server. Lives in the event loop, and reads a store of its own there."""

    def __init__(self, store: Store, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._feeds: dict[Partition, Feed] = {}
        self._channels: OrderedDict[tuple[str, ...], Channel] = OrderedDict()
        self._running: set[asyncio.Task[None]] = set()
        self._watchers = 0

    def told(self) -> None:
        """There may be a new incarnation."""
        for feed in self._feeds.values():
            feed.told()

    async def serve(
        self,
        asked: OfWatch,
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Send,
        abort: Callable[[bytes], None],
    ) -> None:
        """Answer a request to watch, until one of both sides ends it.

        Args:
            abort: closes the connection, with a last line for who may still read it.

        Raises:
            LehrError: it cannot be watched; nothing was sent yet.
        """
        if self._watchers >= self._limits.watchers:
            raise ProblemError("Busy", "too many are watching", why=f"{self._watchers} are", fix="try later")
        channel = self._channel(asked)
        newest = channel.feed.newest
        if asked.after > newest:
            raise ListAgainError(asked.after, f"the newest incarnation is {newest}: the state is another one")
        if asked.after < newest:
            channel.line(asked.after + 1)
        pumping = asyncio.create_task(self._pump(channel, asked.after, send))
        leaving = asyncio.create_task(_left(receive))
        self._running.add(pumping)
        self._watchers += 1
        try:
            await asyncio.wait((pumping, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._watchers -= 1
            self._running.discard(pumping)
            for task in (pumping, leaving):
                task.cancel()
            await asyncio.gather(pumping, leaving, return_exceptions=True)
        if not pumping.cancelled() and isinstance(pumping.exception(), TimeoutError):
            log.info("a watch was cut off: nobody reads it", partition=asked.partition)
            abort(_TOO_SLOW)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.stall_seconds):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
        abort(_TOO_SLOW)

    def end(self) -> None:
        """End all watches; whoever watches comes again."""
        for task in list(self._running):
            task.cancel()

    def _channel(self, asked: OfWatch) -> Channel:
        with meaning("NotFound", "ask for /v1/partitions"):
            partition = choose_partition(self._store.intent.partitions(), asked.partition)
        key = (partition, asked.filter, asked.types, asked.selector)
        channel = self._channels.pop(key, None)
        if channel is None:
            wanted = wanted_of(asked.filter, asked.types, asked.selector)
            feed = self._feeds.setdefault(partition, Feed(self._store, partition, self._clock))
            watch = PartitionWatch(
                self._store,
                feed,
                types=wanted.types,
                wanted=wanted.matches,
                heartbeat=self._limits.heartbeat_seconds,
            )
            channel = Channel(watch, feed)
        self._channels[key] = channel
        if len(self._channels) > _MOST_CHANNELS:
            self._channels.popitem(last=False)  # those who watch it keep it
        return channel

    async def _pump(self, channel: Channel, after: int, send: Send) -> None:
        await self._send(send, {"type": "http.response.start", "status": 200, "headers": _HEADERS})
        while True:
            lines = []
            try:
                if not await channel.feed.wait(after, self._limits.heartbeat_seconds):
                    lines.append(encode_batch(Batch(after)))
                newest, size = channel.feed.newest, 0
                while after < newest and size < _SHARE:
                    after += 1
                    lines.append(channel.line(after))
                    size += len(lines[-1])
            except LehrError as error:
                await self._share(send, b"".join(lines) + _last(problem_of(error), after))
                return
            await self._share(send, b"".join(lines) if len(lines) > 1 else lines[0])

    async def _share(self, send: Send, content: bytes) -> None:
        for begin in range(0, len(content), _SHARE):
            body = content[begin : begin + _SHARE] if len(content) > _SHARE else content
            await self._send(send, {"type": "http.response.body", "body": body, "more_body": True})

    async def _send(self, send: Send, message: MutableMapping[str, Any]) -> None:
        async with asyncio.timeout(self._limits.stall_seconds):
            await send(message)


def _last(found: Problem, sequence: int = 0) -> bytes:
    """The line that says why there are no more."""
    return msgspec.json.encode({"sequence": sequence, "problem": found}) + b"\n"


_TOO_SLOW = _last(
    problem(
        "TooSlow", "this watch was cut off", "nothing of it was read for a time", "watch again, and read on"
    )
)
_HEADERS = [(b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store")]


async def _left(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    """Until whoever asked has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
