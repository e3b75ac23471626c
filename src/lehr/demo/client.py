"""A client of the example's web program, and ports for the program to listen on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import LehrError

_TIMEOUT = 5.0
_BETWEEN = 0.01
_TRIES = 200
_LOWEST, _HIGHEST = 15_000, 30_000  # below the ports that the kernel gives to connecting clients


class Answer(NamedTuple):
    """An answer of one replica; `process` is the pid that it reports."""

    body: str
    process: int


async def get(port: int) -> Answer:
    """The page, from the replica that listens on `port`.

    Raises:
        OSError: it does not answer, or not with 200.
    """
    try:
        async with asyncio.timeout(_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
                answer = (await reader.read()).decode()
            finally:
                writer.close()
    except TimeoutError as error:
        raise OSError(f"port {port} does not answer") from error
    head, _, body = answer.partition("\r\n\r\n")
    lines = head.splitlines() or [""]
    if " 200 " not in lines[0]:
        raise OSError(f"port {port} answers {lines[0]!r}")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    return Answer(body, int(headers["Process"]))


class Traffic:
    """A client that asks all the time, as a balancer does: the other replica, when one refuses.

    Use it as an asynchronous context manager.

    Attributes:
        answered: requests that were answered.
        moved: requests that the first replica had refused.
        failed: requests that no replica answered.
        bodies: the different answers, in the order in which they were first seen.
    """

    def __init__(self, ports: Sequence[int], clock: Clock) -> None:
        self._ports = list(ports)
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self.answered = self.moved = self.failed = 0
        self.bodies: list[str] = []

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._ask_for_ever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _ask_for_ever(self) -> None:
        while True:
            await self._ask()
            self._ports.append(self._ports.pop(0))
            await self._clock.sleep(_BETWEEN)

    async def _ask(self) -> None:
        for attempt, port in enumerate(self._ports):
            try:
                answer = await get(port)
            except OSError:
                continue
            self.answered += 1
            self.moved += attempt > 0
            if answer.body not in self.bodies:
                self.bodies.append(answer.body)
            return
        self.failed += 1


def free_ports(count: int, chance: Chance) -> int:
    """The first of `count` ports in a row that no process listens on now.

    Raises:
        LehrError: none were found.
    """
    for _ in range(_TRIES):
        base = int(chance.uniform(_LOWEST, _HIGHEST))
        if all(_is_free(port) for port in range(base, base + count)):
            return base
    raise LehrError(
        f"no {count} free ports in a row were found",
        code="DEM106",
        why=f"between {_LOWEST} and {_HIGHEST} all seem taken",
    )


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
                # that ends.
                self._claim.bind(f"\0lehr-demo-ports-{first}-{count}")
            except OSError:
                continue
            if all(_is_free(port) for port in range(first, first + count)):
                self.first = first
                return
            self._claim.close()
            self._claim = socket.socket(socket.AF_UNIX)
        self._claim.close()
        raise LehrError(f"no {count} free ports in a row were found", code="DEM107")

    def release(self) -> None:
        """Let others have them."""
        self._claim.close()


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
