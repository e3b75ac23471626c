"""Streams of batches, one line of JSON for each incarnation.

However many clients watch the same, each line is made once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.types import Receive, Send

from lehr.base.blocking import Blocking
from lehr.base.errors import LehrError
from lehr.client.wire import Problem, encode_batch
from lehr.http.limits import Limits
from lehr.http.lines import Lines, WatchRequest
from lehr.http.problems import meaning, problem_of
from lehr.http.questions import FilterText, OfPartition, SelectorText, Types
from lehr.http.streams import TOO_SLOW, Streams
from lehr.model.asset import Partition
from lehr.query.partition_view import choose_partition
from lehr.query.partition_watch import IncarnationFeed
from lehr.sdk.store import Store
from lehr.sdk.watch import Batch, ListAgainError

MEDIA_TYPE = "application/jsonl"

_SHARE = 65_536
"""Bytes of lines that are joined."""


class OfWatch(OfPartition, frozen=True):
    """The part to watch, and where to start."""

    after: Annotated[
        str,
        Meta(
            description="After which incarnation: a number, latest, or a time in ISO 8601; 0 for all.",
            max_length=80,
        ),
    ] = "0"
    filter: FilterText = ""
    types: Types = ""
    selector: SelectorText = ""


class Watches:
    """All watches of intent of a server. Lives in the event loop, so it does no slow work."""

    def __init__(
        self, store: Store, lines: Lines, reading: Blocking, limits: Limits, streams: Streams
    ) -> None:
        """`store` is read only for the newest incarnation, by `reading`."""
        self._store = store
        self._lines = lines
        self._reading = reading
        self._limits = limits
        self._streams = streams
        self._feeds: dict[Partition, IncarnationFeed] = {}

    def notify_published(self) -> None:
        """Have all watches check for a new incarnation."""
        for feed in self._feeds.values():
            feed.notify_published()

    async def serve(
        self,
        asked: OfWatch,
        receive: Receive,
        send: Send,
        abort: Callable[[bytes], None],
    ) -> None:
        """Answer a request to watch, until either side ends it.

        Args:
            abort: as in `Streams.follow`.

        Raises:
            LehrError: it cannot be watched; nothing was sent yet.
        """
        with self._streams.counted():
            with meaning("NotFound", "see /v1/partitions"):
                known = await self._reading.run(self._store.intent.partitions)
                partition = choose_partition(known, asked.partition)
            feed = self._feeds.get(partition)
            if feed is None:
                feed = self._feeds[partition] = IncarnationFeed(self._store, partition, reading=self._reading)
            request = WatchRequest(partition, asked.filter, asked.types, asked.selector)
            after = await self._lines.begin(request, asked.after)
            newest = await feed.newest()
            if after > newest:
                raise ListAgainError(after, f"the newest incarnation is {newest}: this is another state")
            if after < newest:
                await self._lines.line(request, after + 1)
            chunks = self._chunks(feed, request, after)
            await self._streams.follow(chunks, _HEADERS, receive, send, abort, _last(TOO_SLOW))

    async def close(self) -> None:
        """Close the stores that they read from."""
        await self._lines.close()

    async def _chunks(self, feed: IncarnationFeed, request: WatchRequest, after: int) -> AsyncIterator[bytes]:
        """The chunks for a client that knows everything up to an incarnation."""
        while True:
            lines = []
            try:
                if not await feed.wait(after, self._limits.heartbeat_seconds):
                    lines.append(encode_batch(Batch(after)))
                newest, size = await feed.newest(), 0
                while after < newest and size < _SHARE:
                    after += 1
                    lines.append(await self._lines.line(request, after))
                    size += len(lines[-1])
            except LehrError as error:
                yield b"".join(lines) + _last(problem_of(error), after)
                return
            yield b"".join(lines) if len(lines) > 1 else lines[0]


def _last(found: Problem, sequence: int = 0) -> bytes:
    """The last line, with the reason."""
    return msgspec.json.encode({"sequence": sequence, "problem": found}) + b"\n"


_HEADERS = ((b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store"))
