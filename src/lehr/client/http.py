"""Intent of another process or machine, listed and watched over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import h11

from lehr.base.errors import LehrError, StalledError, TransientError, raised_as
from lehr.client.wire import LIST_AGAIN, Problem, decode_batch, decode_page, decode_problem
from lehr.model.asset import Asset, Partition
from lehr.model.reason import Reason
from lehr.sdk.watch import Batch, ListAgainError, Listing

_LOST = (OSError, TimeoutError, h11.RemoteProtocolError, EOFError)
_READ = 65_536
_MOST_LINE = 256 * 2**20
"""Maximum bytes of one batch; a server that sends more is not trusted."""


class HttpWatch:
    """A partition of a Lehr that serves HTTP, or a selection of it. Implements `lehr.sdk.watch.Watchable`.

    Each listing and each watch has a connection, closed at its end.
    """

    def __init__(
        self,
        server: str,
        partition: Partition,
        *,
        filter: str = "",
        types: tuple[str, ...] = (),
        selector: str = "",
        page: int = 10_000,
        silence: float = 30.0,
        token: Callable[[], str] = str,
    ) -> None:
        """A partition of the server at a URL (`http://127.0.0.1:8470`).

        Args:
            silence: seconds without data after which the connection is lost.
            token: asked for each connection, for the token of the server's state; empty for none.

        Raises:
            LehrError: `server` is not the URL of a server.
        """
        place = urlsplit(server)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise LehrError(
                f"{server!r} is not the URL of a server",
                code="CLI162",
                fix="use a URL such as http://127.0.0.1:8470",
            )
        self._host = place.hostname
        self._port = place.port or (443 if place.scheme == "https" else 80)
        self._ssl = ssl.create_default_context() if place.scheme == "https" else None
        self._root = f"{place.path.rstrip('/')}/v1/partitions/{quote(partition, safe='')}"
        self._wanted = {"filter": filter, "types": ",".join(types), "selector": selector}
        self._page = page
        self._silence = silence
        self._token = token

    async def list(self) -> Listing:
        found: list[Asset] = []
        asked: dict[str, Any] = {**self._wanted, "limit": self._page}
        while True:
            content = bytearray()
            async with contextlib.aclosing(self._ask("assets", asked)) as parts:
                async for part in parts:
                    content += part
            sequence, assets, cursor = decode_page(bytes(content))
            found += assets
            if not cursor:
                return Listing(sequence, found)
            asked["cursor"] = cursor

    async def watch(self, after: int) -> AsyncIterator[Batch]:
        async with contextlib.aclosing(self._ask("watch", {**self._wanted, "after": after})) as parts:
            async for line in _lines(parts):
                found = decode_batch(line)
                if isinstance(found, Problem):
                    raise _error(found, after)
                after = found.sequence
                yield found
        raise TransientError(
            "the watch ended", code="CLI163", why="the server is shutting down", fix="watch again"
        )

    async def _ask(self, path: str, asked: Mapping[str, Any]) -> AsyncGenerator[bytes, None]:
        """The content of a response, part by part.

        Raises:
            TransientError: the connection is lost, or the server cannot answer now.
            StalledError: the server will never answer this request.
        """
        query = urlencode({name: value for name, value in asked.items() if value != ""})
        what, fix = f"{self._host}:{self._port} cannot be reached", "check that `lehr serve` is running there"
        with raised_as(TransientError, what, code="CLI164", fix=fix, on=_LOST):
            async with self._connected() as connection:
                token = self._token()
                await connection.send(f"{self._root}/{path}?{query}", token)
                status = await connection.status()
                if status == 401 and self._token() != token:
                    raise EOFError("the server has just started")
                if status != 200:
                    content = b"".join([part async for part in connection.parts()])
                    raise _error(decode_problem(status, content), asked.get("after", 0))
                async for part in connection.parts():
                    yield part

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Connection]:
        async with asyncio.timeout(self._silence):
            reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._ssl)
        try:
            yield _Connection(reader, writer, f"{self._host}:{self._port}", self._silence)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class _Connection:
    """One request and its response."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, silence: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host
        self._silence = silence
        self._state = h11.Connection(h11.CLIENT)

    async def send(self, target: str, token: str) -> None:
        headers = [("host", self._host), ("connection", "close"), ("accept", "*/*")]
        if token:
            headers.append(("authorization", f"Bearer {token}"))
        request = h11.Request(method="GET", target=target, headers=headers)
        for event in (request, h11.EndOfMessage()):
            self._writer.write(self._state.send(event) or b"")
        async with asyncio.timeout(self._silence):
            await self._writer.drain()

    async def status(self) -> int:
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                return event.status_code

    async def parts(self) -> AsyncIterator[bytes]:
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return

    async def _next(self) -> object:
        while True:
            event = self._state.next_event()
            if isinstance(event, h11.ConnectionClosed):
                raise EOFError("the connection was closed")
            if event is not h11.NEED_DATA:
                return event
            async with asyncio.timeout(self._silence):
                self._state.receive_data(await self._reader.read(_READ))


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines; an unterminated rest at the end of the stream is dropped."""
    pieces: list[bytes] = []
    size = 0
    async for part in parts:
        *ended, rest = part.split(b"\n")
        for piece in ended:
            pieces.append(piece)
            yield b"".join(pieces)
            pieces, size = [], 0
        if rest:
            pieces.append(rest)
            size += len(rest)
            if size > _MOST_LINE:
                raise StalledError(
                    "a batch is too long", code="CLI165", why=f"it is longer than {_MOST_LINE:,} bytes"
                )


def _error(problem: Problem, after: int) -> LehrError:
    """The client-side error for a problem."""
    if problem.code in (LIST_AGAIN, Reason.PRUNED):
        return ListAgainError(after, problem.detail)
    kind = TransientError if problem.status >= 500 or problem.status == 408 else StalledError
    return kind(problem.title, code=problem.error, why=problem.detail, fix=problem.fix)
