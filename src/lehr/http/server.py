"""The server: an address, its connections, and the application behind them."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import resource
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import uvicorn
from starlette.types import Scope

from lehr.base.blocking import Threads
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, raised_as
from lehr.http.access import Access
from lehr.http.application import Application, Pages, Watching
from lehr.http.event_streams import Events
from lehr.http.hooks import Hook
from lehr.http.limits import Limits
from lehr.http.lines import Lines
from lehr.http.probes import Probe
from lehr.http.protocol import BoundedProtocol
from lehr.http.questions import Installation, RunStates
from lehr.http.readers import Pools
from lehr.http.streams import Streams
from lehr.http.watch_streams import Watches
from lehr.query.run_state import idle
from lehr.sdk.store import Store

_END_SECONDS = 5
_BACKLOG = 1024
_TICK_SECONDS = 1.0
_SPARE_FILES = 128


class Address(msgspec.Struct, frozen=True):
    """Where to listen. Port 0 means any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect to it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_address(text: str) -> Address:
    """`127.0.0.1:8470`, `[::1]:8470` or `:8470`, which is on loopback.

    Raises:
        LehrError: the text is not an address.
    """
    host, _colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise LehrError(
            f"{text!r} is not a valid address to listen on",
            code="HTP124",
            why="it must end with a colon and a port from 0 to 65535",
            fix="use an address such as 127.0.0.1:8470",
        )
    return Address(host, int(port))


class _Server(uvicorn.Server):
    """Leaves signals to its caller; ends on request, without polling for that ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Stop answering."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # which updates the date header every second
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._ending.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Running:
    """A running server.

    Attributes:
        address: where it listens.
    """

    def __init__(self, address: Address, application: Application, server: _Server) -> None:
        self.address = address
        self._application = application
        self._server = server

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{self.address}"

    def notify_published(self) -> None:
        """Notify watchers at once of a possible new incarnation."""
        self._application.watching.watches.notify_published()

    @property
    def watchers(self) -> int:
        """The number of watchers."""
        return self._application.watching.streams.clients

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._server.server_state.connections)

    def break_connections(self) -> None:
        """Break every connection, like a machine that goes down."""
        for connection in list(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()


@contextlib.asynccontextmanager
async def serving(
    address: Address,
    open_store: Callable[[], Store],
    installation: Installation,
    clock: Clock,
    limits: Limits | None = None,
    run_state: RunStates | None = None,
    hook: Hook | None = None,
    names: Collection[str] = (),
    probes: Mapping[str, Probe] | None = None,
    pages: Pages | None = None,
    access: Access | None = None,
    recorded: Callable[[str], AbstractContextManager[object]] = contextlib.nullcontext,
) -> AsyncIterator[Running]:
    """Answers at `address` while in this context.

    Args:
        open_store: opens the store for reading; called for each thread that reads.
        installation: what this installation knows besides the store.
        run_state: the state of this state's `lehr run`; None if it has none.
        hook: accepts requests to check the source; without one, the path does not exist.
        names: host names that requests may use, besides localhost and addresses. If other machines can
            connect, and no names are given, any name is allowed.
        probes: paths that are answered from the memory of this process.
        pages: makes the paths of the page; None for none.
        access: decides who may read; None admits everyone who can connect.
        recorded: lets clients find the server at its URL, from before it answers until it has ended.

    Raises:
        LehrError: the address is not available.
        TransientError, StalledError: the store cannot be opened.
    """
    limits = limits or Limits()
    limits = msgspec.structs.replace(limits, connections=_allowed(limits.connections))
    known = frozenset(map(str.lower, names)) if address.loopback or names else None
    async with contextlib.AsyncExitStack() as opened:
        listening = opened.enter_context(_listening(address))
        readers, watching = _open(opened, open_store, clock, limits)
        if hook is not None:
            opened.push_async_callback(hook.close)
        config = _config(limits)
        server = _Server(config)
        application = Application(
            readers,
            watching,
            installation,
            clock,
            limits,
            lambda scope, last: _abort(server, scope, last),
            run_state or (lambda: idle(clock.now())),
            hook,
            known,
            probes,
            pages,
            access,
        )
        config.app = application.asgi()
        host, port = listening.getsockname()[:2]
        running = Running(Address(host, port), application, server)
        opened.enter_context(recorded(running.url))
        async with _answering(server, listening, watching.streams, clock):
            yield running


def _open(
    opened: contextlib.AsyncExitStack, open_store: Callable[[], Store], clock: Clock, limits: Limits
) -> tuple[Pools, Watching]:
    """Readers and watches of the store, closed with `opened`."""
    store = open_store()
    opened.callback(store.close)
    readers = Pools(open_store, limits)
    opened.callback(readers.close)
    lines = Lines(open_store, Threads("http-watch", 1), clock, limits)
    feed, streams = Threads("http-feed", 1), Streams(limits)
    opened.callback(feed.close)
    watches = Watches(store, lines, feed, limits, streams)
    opened.push_async_callback(watches.close)
    return readers, Watching(watches, Events(store, feed, clock, limits, streams), streams)


@contextlib.asynccontextmanager
async def _answering(
    server: _Server, listening: socket.socket, streams: Streams, clock: Clock
) -> AsyncIterator[None]:
    """Runs the server while in this context; at its end, streams end first."""
    task = asyncio.create_task(server.serve([listening]), name="http")
    try:
        while not server.started and not task.done():
            await clock.sleep(0.005)
        if task.done():
            task.result()
        yield
    finally:
        server.end()
        streams.end()
        await asyncio.wait({task})
        task.result()


def _config(limits: Limits) -> uvicorn.Config:
    class Protocol(BoundedProtocol):
        most_connections = limits.connections
        head_seconds = limits.head_seconds
        head_bytes = limits.head_bytes
        stall_seconds = limits.stall_seconds

    return uvicorn.Config(
        _not_yet,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=limits.head_bytes,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=_END_SECONDS,
    )


async def _not_yet(*_arguments: Any) -> None:
    raise RuntimeError("asked before the server started")


def _abort(server: _Server, scope: Scope, last: bytes) -> None:
    for connection in list(server.server_state.connections):
        if isinstance(connection, BoundedProtocol) and connection.client == scope["client"]:
            connection.cut_off(last)


def _allowed(wanted: int) -> int:
    """The number of connections that the limit of open files permits; raises that limit if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _SPARE_FILES
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(wanted, soft - _SPARE_FILES))


@contextlib.contextmanager
def _listening(address: Address) -> Iterator[socket.socket]:
    fix = "choose another address with --listen"
    with raised_as(LehrError, f"cannot listen on {address}", code="HTP125", fix=fix):
        family, kind, number, _name, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, number)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen(_BACKLOG)
        except BaseException:
            listening.close()
            raise
    with listening:
        yield listening
