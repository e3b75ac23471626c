"""Responses being sent to clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lehr.http.limits import Limits
from lehr.http.problems import ProblemError

Abort = Callable[[Scope, bytes], None]
"""Closes the connection of a request, with a last message for a client that still reads."""

_SHARE = 262_144
"""Bytes sent at a time."""


class Outgoing:
    """Sends responses share by share. Readers that stall are disconnected; total buffered bytes are bounded.

    Invariant: buffers for clients that do not read are bounded.
    """

    def __init__(self, limits: Limits, abort: Abort) -> None:
        self._limits = limits
        self._abort = abort
        self._held = 0

    def require_room(self) -> None:
        """Raises `ProblemError` while too much is being sent."""
        if self._held > self._limits.answer_bytes:
            why = f"{self._held:,} bytes of responses are still unread"
            raise ProblemError(
                "Busy", "too many bytes are being sent", code="HTP116", why=why, fix="try again in a second"
            )

    async def send(self, response: Response, scope: Scope, send: Send) -> None:
        """Send a response."""
        content = memoryview(response.body)
        self._held += len(content)
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status_code,
                    "headers": response.raw_headers,
                }
            )
            for begin in range(0, len(content) or 1, _SHARE):
                share = bytes(content[begin : begin + _SHARE]) if len(content) > _SHARE else response.body
                more = begin + _SHARE < len(content)
                async with asyncio.timeout(self._limits.stall_seconds):
                    await send({"type": "http.response.body", "body": share, "more_body": more})
        except TimeoutError:
            self._abort(scope, b"")
        finally:
            self._held -= len(content)


class Outbound(Response):
    """A response that `Outgoing` sends."""

    def __init__(self, outgoing: Outgoing, content: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(content, headers=headers)
        self._outgoing = outgoing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._outgoing.send(self, scope, send)
