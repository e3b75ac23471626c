"""The feed of a partition as server-sent events, which browsers read, and resume when they reconnect.

An event names what a commit changed, and holds none of it: clients read what they need as it is now. However
many clients follow a partition, the feed is read once, and each event is encoded once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.types import Receive, Send

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.base.moments import encode
from lehr.client.wire import Problem
from lehr.http.limits import Limits
from lehr.http.problems import meaning, problem_of
from lehr.http.questions import OfPartition
from lehr.http.streams import TOO_SLOW, Streams
from lehr.model.asset import Partition
from lehr.model.feed import FeedEntry
from lehr.query.feed_watch import FeedWatch
from lehr.query.partition_view import choose_partition
from lehr.sdk.store import Store
from lehr.sdk.watch import FeedGoneError

MEDIA_TYPE = "text/event-stream"

_HEADERS = ((b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store"))
_RETRY = b"retry: 2000\n\n"
_ALIVE = b": nothing has changed\n\n"
_POLL_SECONDS = 0.25
"""People look at pages that follow. While none does, nothing is read."""

_ENCODED = 200
"""Events that are kept as they are sent."""

Position = Annotated[
    str,
    Meta(
        description="After which position of the feed; by default after the newest. The header "
        "Last-Event-ID, which browsers send when they reconnect, takes precedence.",
        pattern="^[0-9]{0,18}$",
    ),
]


class OfEvents(OfPartition, frozen=True):
    """Where to start."""

    after: Position = ""


def event(data: bytes, *, id: int | None = None, name: str = "") -> bytes:
    """One server-sent event, as the HTML standard has them. `data` is one line."""
    head = b"" if id is None else b"id: %d\n" % id
    if name:
        head += b"event: " + name.encode() + b"\n"
    return head + b"data: " + data + b"\n\n"


def last_event(found: Problem) -> bytes:
    """The event with which a stream ends, and its reason."""
    return event(msgspec.json.encode(found), name="problem")


class Events:
    """The event streams of a server."""

    def __init__(
        self, store: Store, reading: Blocking, clock: Clock, limits: Limits, streams: Streams
    ) -> None:
        """`store` is read by `reading`."""
        self._store = store
        self._reading = reading
        self._clock = clock
        self._limits = limits
        self._streams = streams
        self._feeds: dict[Partition, _Feed] = {}

    async def serve(
        self, asked: OfEvents, last: str, receive: Receive, send: Send, abort: Callable[[bytes], None]
    ) -> None:
        """Answer a request for events, until either side ends it.

        Args:
            last: the position after which the client continues, as it sent it; empty for none.
            abort: as in `Streams.follow`.

        Raises:
            LehrError: it cannot be followed; nothing was sent yet.
        """
        with self._streams.counted():
            with meaning("NotFound", "see /v1/partitions"):
                known = await self._reading.run(self._store.intent.partitions)
                partition = choose_partition(known, asked.partition)
            feed = self._feed(partition)
            begin = last if last.isdecimal() else asked.after
            newest = await feed.watch.position()
            after = int(begin) if begin else newest
            if after > newest:
                raise FeedGoneError(after, f"the newest position is {newest}: this is another state")
            if after < newest:  # which raises, if they are gone
                await self._reading.run(self._store.records.feed, partition, after, 1)
            chunks = feed.chunks(after)
            await self._streams.follow(chunks, _HEADERS, receive, send, abort, last_event(TOO_SLOW))

    def _feed(self, partition: Partition) -> _Feed:
        found = self._feeds.get(partition)
        if found is None:
            watch = FeedWatch(
                self._store,
                partition,
                self._clock,
                poll=_POLL_SECONDS,
                heartbeat=self._limits.heartbeat_seconds,
                reading=self._reading,
            )
            found = self._feeds[partition] = _Feed(watch)
        return found


class _Feed:
    """The feed of one partition, and its newest events as they are sent."""

    def __init__(self, watch: FeedWatch) -> None:
        self.watch = watch
        self._encoded: OrderedDict[int, bytes] = OrderedDict()

    async def chunks(self, after: int) -> AsyncIterator[bytes]:
        """The chunks for a client that knows everything up to a position."""
        yield _RETRY
        try:
            async for entry in self.watch.watch(after):
                yield _ALIVE if entry.position == after else self._event(entry)
                after = entry.position
        except LehrError as error:
            yield last_event(problem_of(error))

    def _event(self, entry: FeedEntry) -> bytes:
        found = self._encoded.get(entry.position)
        if found is None:
            found = self._encoded[entry.position] = event(encode(entry, FeedEntry), id=entry.position)
            if len(self._encoded) > _ENCODED:
                self._encoded.popitem(last=False)
        return found
