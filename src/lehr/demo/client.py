"""Clients of the examples' web programs, and ports for the programs to listen on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Self

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import LehrError

_TIMEOUT = 10.0
_BETWEEN = 0.01
_TRIES = 200
_LOWEST, _HIGHEST = 15_000, 30_000  # below the ports that the kernel gives to connecting clients


class Response(NamedTuple):
    """Result of one request; `process` is the pid that the replica reports."""

    status: int
    version: str
    cluster: str
    process: int
    body: str


class Connection:
    """A connection to the web program on this machine, as an asynchronous context manager."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.kept = True

    async def __aenter__(self) -> Self:
        async with asyncio.timeout(_TIMEOUT):
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def get(self) -> Response:
        """The page; afterwards `kept` is True if the connection can be reused."""
        async with asyncio.timeout(_TIMEOUT):
            self._writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.rstrip("\r\n").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        self.kept = headers.get("connection", "").lower() != "close"
        return Response(
            int(first.split()[1]),
            headers.get("version", ""),
            headers.get("cluster", ""),
            int(headers.get("process", "0")),
            body.decode(errors="replace"),
        )


async def ask(port: int) -> Response:
    """One request over its own connection.

    Raises:
        OSError: there is no answer.
    """
    try:
        async with Connection(port) as connection:
            return await connection.get()
    except (TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise OSError(f"port {port} does not answer: {type(error).__name__}") from error


class Traffic:
    """A client that sends requests continuously and, like a balancer, tries the other replica if one refuses.

    Attributes:
        answered: requests that were answered.
        moved: requests that the first replica had refused.
        failed: requests that no replica answered.
        bodies: the different answers, in the order in which they were first seen.
    """

    def __init__(self, ports: Sequence[int], clock: Clock) -> None:
        self._ports = list(ports)
        self._clock = clock
        self.answered = self.moved = self.failed = 0
        self.bodies: list[str] = []

    @contextlib.asynccontextmanager
    async def sent(self) -> AsyncIterator[Self]:
        """Send requests while the context is active."""
        task = asyncio.create_task(self._ask_for_ever())
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _ask_for_ever(self) -> None:
        while True:
            await self._ask()
            self._ports.append(self._ports.pop(0))
            await self._clock.sleep(_BETWEEN)

    async def _ask(self) -> None:
        for attempt, port in enumerate(self._ports):
            try:
                response = await ask(port)
            except OSError:
                continue
            if response.status == 200:
                self.answered += 1
                self.moved += attempt > 0
                if response.body not in self.bodies:
                    self.bodies.append(response.body)
                return
        self.failed += 1


class PortRange:
    """A range of ports that no other demo on this machine takes while this one holds it.

    Attributes:
        first: the lowest of them; no process listened on any when the range was taken.
    """

    def __init__(self, count: int, chance: Chance) -> None:
        """Take `count` ports.

        Raises:
            LehrError: none were found.
        """
        self._claim = socket.socket(socket.AF_UNIX)
        for _ in range(_TRIES):
            first = int(chance.uniform(_LOWEST, _HIGHEST)) // count * count
            try:
                # An abstract name belongs to the process that has bound it, and is free again when
                # the process ends.
                self._claim.bind(f"\0lehr-demo-ports-{first}-{count}")
            except OSError:
                continue
            if all(_is_free(port) for port in range(first, first + count)):
                self.first = first
                return
            self._claim.close()
            self._claim = socket.socket(socket.AF_UNIX)
        self._claim.close()
        raise LehrError(
            f"no {count} consecutive free ports found",
            code="DEM106",
            why=f"all ports between {_LOWEST} and {_HIGHEST} seem to be in use",
        )

    def release(self) -> None:
        """Release them."""
        self._claim.close()


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
