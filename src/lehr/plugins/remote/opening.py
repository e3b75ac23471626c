"""Ways to open a plugin: by starting its program, or by connecting to its address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from lehr.base.errors import StalledError
from lehr.plugins.handshake import Handshake
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.remote.channel import Channel, Tls
from lehr.plugins.remote.connection import Opened
from lehr.sdk.secrets import Hidden, SecretValue

HANDSHAKE = Handshake("LEHR_PLUGIN_COOKIE", "6c656872", (1,))

_START_SECONDS = 30.0


class Start(NamedTuple):
    """A program, and the secrets in its environment."""

    program: Program
    secrets: tuple[SecretValue, ...] = ()


class Managed:
    """Starts a program for each connection.

    Args:
        start: reads the program's environment, which may hold secrets.
        log: gets each line that it prints.
    """

    def __init__(
        self, processes: PluginProcesses, start: Callable[[], Awaitable[Start]], log: Callable[[str], None]
    ) -> None:
        self._processes = processes
        self._start = start
        self._log = log
        self._identity: object = None

    async def open(self) -> Opened:
        start = await self._start()
        self._identity = await self._processes.identity(start.program)
        process = await self._processes.start(
            start.program, HANDSHAKE, seconds=_START_SECONDS, log=self._log, hidden=Hidden(start.secrets)
        )
        return Opened(Channel(process.address), process)

    async def changed(self) -> bool:
        """Whether the program's file was replaced."""
        start = await self._start()
        return await self._processes.identity(start.program) != self._identity


class Attached(NamedTuple):
    """Connects to a plugin with a life cycle of its own.

    Attributes:
        address: `unix:PATH`, or `HOST:PORT`, which needs TLS.
        tls: reads what a connection needs, each time: certificates are renewed.
    """

    address: str
    tls: Callable[[], Awaitable[Tls]] | None = None

    async def open(self) -> Opened:
        if self.tls is None and not self.address.startswith("unix:"):
            raise StalledError(
                f"the plugin at {self.address} needs TLS",
                code="PLG127",
                why="others could read what is sent over the network, and answer in its place",
                fix="configure `tls`, or use a Unix socket",
            )
        return Opened(Channel(self.address, await self.tls() if self.tls is not None else None))

    async def changed(self) -> bool:
        """Never: its owner replaces it."""
        return False
