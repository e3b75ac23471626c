"""Streams of batches, one line of JSON for each incarnation.

However many clients watch the same, each line is made once. For each watcher, only its position is kept: it
is sent one chunk, and the next after it has read that; a watcher that stalls is disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, MutableMapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.types import Receive, Send

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.client.wire import Problem, encode_batch
from lehr.http.limits import Limits
from lehr.http.lines import Lines, WatchRequest
from lehr.http.problems import ProblemError, meaning, problem, problem_of
from lehr.http.questions import FilterText, OfPartition, SelectorText, Types
from lehr.model.asset import Partition
from lehr.query.partition_view import choose_partition
from lehr.query.partition_watch import IncarnationFeed
from lehr.sdk.store import Store
from lehr.sdk.watch import Batch, ListAgainError

log = Log()


MEDIA_TYPE = "application/jsonl"

_SHARE = 65_536
"""Bytes sent at a time."""


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
    """All watches of a server. Lives in the event loop, so it does no slow work.

    Attributes:
        watchers: their number.
    """

    def __init__(self, store: Store, lines: Lines, reading: Blocking, clock: Clock, limits: Limits) -> None:
        """`store` is read only for the newest incarnation, by `reading`."""
        self._store = store
        self._lines = lines
        self._reading = reading
        self._clock = clock
        self._limits = limits
        self._feeds: dict[Partition, IncarnationFeed] = {}
        self._running: set[asyncio.Task[None]] = set()
        self.watchers = 0

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
            abort: closes the connection, with a last line in case the client still reads.

        Raises:
            LehrError: it cannot be watched; nothing was sent yet.
        """
        if self.watchers >= self._limits.watchers:
            raise ProblemError(
                "Busy", "too many watchers", code="HTP127", why=f"there are {self.watchers}", fix="try later"
            )
        with meaning("NotFound", "see /v1/partitions"):
            known = await self._reading.run(self._store.intent.partitions)
            partition = choose_partition(known, asked.partition)
        feed = self._feeds.get(partition)
        if feed is None:
            feed = self._feeds[partition] = IncarnationFeed(self._store, partition, reading=self._reading)
        request = WatchRequest(partition, asked.filter, asked.types, asked.selector)
        self.watchers += 1
        try:
            after = await self._lines.begin(request, asked.after)
            newest = await feed.newest()
            if after > newest:
                raise ListAgainError(after, f"the newest incarnation is {newest}: this is another state")
            if after < newest:
                await self._lines.line(request, after + 1)
            await self._follow(feed, request, after, receive, send, abort)
        finally:
            self.watchers -= 1

    async def _follow(
        self,
        feed: IncarnationFeed,
        request: WatchRequest,
        after: int,
        receive: Receive,
        send: Send,
        abort: Callable[[bytes], None],
    ) -> None:
        pumping = asyncio.create_task(self._pump(feed, request, after, send))
        leaving = asyncio.create_task(_left(receive))
        self._running.add(pumping)
        try:
            await asyncio.wait((pumping, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._running.discard(pumping)
            for task in (pumping, leaving):
                task.cancel()
            await asyncio.gather(pumping, leaving, return_exceptions=True)
        failed = None if pumping.cancelled() else pumping.exception()
        if isinstance(failed, TimeoutError):
            log.info("disconnected a watcher that does not read", partition=request.partition)
            abort(_TOO_SLOW)
            return
        if failed is not None:
            log.error("watch failed with an internal error", exc_info=failed)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.stall_seconds):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
        abort(_TOO_SLOW)

    def end(self) -> None:
        """End all watches; clients reconnect."""
        for task in list(self._running):
            task.cancel()

    async def close(self) -> None:
        """Close the stores that they read from."""
        await self._lines.close()
        self._reading.close()

    async def _pump(self, feed: IncarnationFeed, request: WatchRequest, after: int, send: Send) -> None:
        await self._send(send, {"type": "http.response.start", "status": 200, "headers": _HEADERS})
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
    """The last line, with the reason."""
    return msgspec.json.encode({"sequence": sequence, "problem": found}) + b"\n"


_TOO_SLOW = _last(
    problem(
        "TooSlow",
        "this watch was disconnected",
        "the client stopped reading it",
        "watch again, and keep reading",
    )
)
_HEADERS = [(b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store")]


async def _left(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
