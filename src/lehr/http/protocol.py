"""A connection with limits: size and time of the request head, and number of connections."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from lehr.client.wire import Problem
from lehr.http import problems
from lehr.http.problems import STATUS, problem


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1; clients that are slow with a request, or ask for too much, get an error."""

    most_connections = 4096
    head_seconds = 10.0
    head_bytes = 16_384
    stall_seconds = 30.0

    def __init__(
        self,
        config: Any,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._waiting: asyncio.TimerHandle | None = None
        self._closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            why = f"{self.most_connections} connections are open"
            self._refuse(problem("Busy", "too many connections", why, "try again later"))
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        if self._closing is not None:
            self._closing.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_more()
        elif self._waiting is None and not self.transport.is_closing():
            self._wait()

    def send_400_response(self, msg: str) -> None:
        if getattr(sys.exc_info()[1], "error_status_hint", 400) != STATUS["TooLong"]:
            self._refuse(problem("BadRequest", "malformed HTTP request", fix="send an HTTP/1.1 request"))
        elif b"\n" in self.conn.trailing_data[0]:
            self._refuse(problems.too_long(self.head_bytes))
        else:
            self._refuse(problems.uri_too_long(self.head_bytes))

    def cut_off(self, last: bytes) -> None:
        """End the current response to a client that does not read it.

        Args:
            last: the end of the stream, for a client that still reads; no stream ends without one.
        """
        if not last or self.conn.our_state is not h11.SEND_BODY:
            self.transport.abort()
            return
        for event in (h11.Data(data=last), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._close_for_good()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._close_for_good()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._close_for_good()

    def _close_for_good(self) -> None:
        """A normal close waits until everything is read, which may never happen."""
        if self._closing is None:
            self._closing = self.loop.call_later(self.stall_seconds, self.transport.abort)

    def _wait(self) -> None:
        """Time limit for the headers of a request."""
        self._waiting = self.loop.call_later(self.head_seconds, self._late)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _late(self) -> None:
        self._waiting = None
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
            why = f"its headers must arrive within {self.head_seconds:g} seconds"
            self._refuse(
                problem("Timeout", "the request did not arrive in time", why, "send it without delay")
            )

    def _refuse(self, found: Problem) -> None:
        """Send the reason, and close."""
        content = problems.encoded(found)
        given = {**problems.headers_of(found), "content-length": str(len(content)), "connection": "close"}
        headers = list(given.items())
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (
                h11.Response(status_code=found.status, headers=headers),
                h11.Data(data=content),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._close_for_good()
