"""A store that is served over HTTP on loopback, and a plain client."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lehr.base.clock import SystemClock
from lehr.http.hooks import Hook
from lehr.http.limits import Limits
from lehr.http.questions import Installation
from lehr.http.server import Address, Running, serving
from lehr.model.asset import Asset, AssetId
from lehr.model.types import AssetType, Reference, Registry, Schema
from lehr.sdk.store import Store
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, THING, publication

INSTALLATION = Installation(
    lambda store, partition: lambda type: False,
    lambda store, partition, sequence: Registry([AssetType(THING, Schema({}, {"/value": Reference()}))]),
    lambda revision: None,
)
ROOT = f"/v1/partitions/{PARTITION}"
HOUR = 3600.0

T = TypeVar("T")


class LeapingLoop(asyncio.SelectorEventLoop):
    """A loop whose time a test moves on: limits of an hour are over at once, and only when it says so."""

    leapt = 0.0

    def time(self) -> float:
        return super().time() + self.leapt

    async def leap_until_done(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` comes to while hours pass."""
        task = asyncio.ensure_future(work)
        while not task.done():
            self.leapt += HOUR
            await asyncio.sleep(0.01)
        return task.result()


def run_leaping(main: Callable[[LeapingLoop], Coroutine[Any, Any, None]]) -> None:
    """Run `main` in a loop that leaps."""
    loop = LeapingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main(loop))


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Served:
    """A store to publish into, and the server that reads it."""

    def __init__(self, store: Store, running: Running) -> None:
        self.store = store
        self.running = running
        self._writers: list[asyncio.StreamWriter] = []

    def publish(self, changed: Sequence[Asset], gone: Sequence[AssetId] = (), **more: Any) -> None:
        newest = self.store.intent.newest(PARTITION)
        base = 0 if newest is None else newest.sequence
        self.store.commit([publication(base, *changed, removals=tuple(gone), **more)])
        self.running.notify_published()

    async def get(self, target: str, headers: Sequence[tuple[str, str]] = (), method: str = "GET") -> Answer:
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers]
        return await self.say(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def say(self, request: bytes) -> Answer:
        """Send bytes, and read until the server closes."""
        reader, writer = await self.connect()
        writer.write(request)
        return parsed(await reader.read())

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection, which is closed with the server."""
        address = self.running.address
        reader, writer = await asyncio.open_connection(address.host, address.port)
        self._writers.append(writer)
        return reader, writer

    async def close(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.transport.abort()
        for writer in self._writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def parsed(content: bytes) -> Answer:
    head, _, body = content.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(status.split()[1]), headers, body)


@contextlib.asynccontextmanager
async def served(
    folder: Path, limits: Limits | None = None, hook: Hook | None = None, port: int = 0
) -> AsyncIterator[Served]:
    path = folder / "state.sqlite"
    store = SqliteStore(path)
    try:
        async with serving(
            Address("127.0.0.1", port),
            lambda: SqliteStore(path, read_only=True),
            INSTALLATION,
            SystemClock(),
            limits,
            hook=hook,
        ) as running:
            server = Served(store, running)
            try:
                yield server
            finally:
                await server.close()
    finally:
        store.close()
