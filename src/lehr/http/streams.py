"""Responses without end.

For each client only its place is kept: it is sent one chunk, and the next once it has read that. A client
that reads nothing is disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping, Sequence
from typing import Any

from starlette.types import Receive, Send

from lehr.base.log import Log
from lehr.http.limits import Limits
from lehr.http.problems import ProblemError, problem

log = Log()

_SHARE = 65_536
"""Bytes sent at a time."""

TOO_SLOW = problem(
    "TooSlow",
    "this watch was disconnected",
    "the client stopped reading it",
    "watch again, and keep reading",
)

Headers = Sequence[tuple[bytes, bytes]]


class Streams:
    """All streams of a server. Lives in the event loop, so it does no slow work.

    Attributes:
        clients: their number.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running: set[asyncio.Task[None]] = set()
        self.clients = 0

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Counts a client while in this context.

        Raises:
            ProblemError: there are too many.
        """
        if self.clients >= self._limits.watchers:
            raise ProblemError(
                "Busy", "too many watchers", code="HTP127", why=f"there are {self.clients}", fix="try later"
            )
        self.clients += 1
        try:
            yield
        finally:
            self.clients -= 1

    async def follow(
        self,
        chunks: AsyncIterator[bytes],
        headers: Headers,
        receive: Receive,
        send: Send,
        abort: Callable[[bytes], None],
        too_slow: bytes,
    ) -> None:
        """Send chunks until there are no more, or either side ends it.

        Args:
            abort: closes the connection, with a last chunk in case the client still reads: `too_slow`.
        """
        pumping = asyncio.create_task(self._pump(chunks, headers, send))
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
            log.info("disconnected a watcher that does not read")
            abort(too_slow)
            return
        if failed is not None:
            log.error("watch failed with an internal error", exc_info=failed)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.stall_seconds):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
        abort(too_slow)

    def end(self) -> None:
        """End all streams; clients reconnect."""
        for task in list(self._running):
            task.cancel()

    async def _pump(self, chunks: AsyncIterator[bytes], headers: Headers, send: Send) -> None:
        await self._send(send, {"type": "http.response.start", "status": 200, "headers": list(headers)})
        async for content in chunks:
            for begin in range(0, len(content), _SHARE):
                body = content[begin : begin + _SHARE] if len(content) > _SHARE else content
                await self._send(send, {"type": "http.response.body", "body": body, "more_body": True})

    async def _send(self, send: Send, message: MutableMapping[str, Any]) -> None:
        async with asyncio.timeout(self._limits.stall_seconds):
            await send(message)


async def _left(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
