"""A client that asks all the time, over connections that are kept, and counts every answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from typing import NamedTuple, Self

from lehr.base.clock import Clock

_SEATS = 8
_BETWEEN = 0.03  # seconds between an answer and the next request of a connection
_TIMEOUT = 10.0
_KEPT_FAILURES = 5


class Heard(NamedTuple):
    """Result of one request."""

    status: int
    version: str
    cluster: str
    process: int
    body: str


class Audience:
    """A steady client of the global balancer. A request that it gets no 200 for is lost.

    Attributes:
        answered: requests by (cluster, version) that were answered with 200.
        errors: those by (cluster, version) that were answered otherwise, by a replica.
        lost: requests that were not answered with 200.
        failures: what happened to the lost ones, the newest last; a few of them.
        newest: the last answer.
    """

    def __init__(self, port: int, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self.answered: Counter[tuple[str, str]] = Counter()
        self.errors: Counter[tuple[str, str]] = Counter()
        self.lost = 0
        self.failures: deque[str] = deque(maxlen=_KEPT_FAILURES)
        self.newest: Heard | None = None

    @property
    def total(self) -> int:
        """Requests that were answered."""
        return self.answered.total()

    def sit_down(self) -> None:
        """Begin to ask."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._sit()) for _ in range(_SEATS)]

    async def leave(self) -> None:
        """Stop asking; requests under way are forgotten."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _sit(self) -> None:
        while True:
            try:
                async with _Connection(self._port) as connection:
                    while connection.kept:
                        self._count(await connection.get("/"))
                        await self._clock.sleep(_BETWEEN)
            except (OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                self._lose(f"{type(error).__name__}: {error}")
                await self._clock.sleep(_BETWEEN)

    def _count(self, heard: Heard) -> None:
        if heard.status == 200:
            self.answered[heard.cluster, heard.version] += 1
            self.newest = heard
        else:
            if heard.version:
                self.errors[heard.cluster, heard.version] += 1
            self._lose(f"{heard.status} {heard.body.strip()}")

    def _lose(self, how: str) -> None:
        self.lost += 1
        self.failures.append(how)


async def ask(port: int, path: str = "/") -> Heard:
    """One request over its own connection.

    Raises:
        OSError: there is no answer.
    """
    try:
        async with _Connection(port) as connection:
            return await connection.get(path)
    except (TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
        raise OSError(f"port {port} does not answer: {type(error).__name__}") from error


class _Connection:
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

    async def get(self, path: str) -> Heard:
        """GET `path`; afterwards `kept` says whether the connection can be used again."""
        async with asyncio.timeout(_TIMEOUT):
            self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.rstrip("\r\n").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        self.kept = headers.get("connection", "").lower() != "close"
        return Heard(
            int(first.split()[1]),
            headers.get("version", ""),
            headers.get("cluster", ""),
            int(headers.get("process", "0")),
            body.decode(errors="replace"),
        )
