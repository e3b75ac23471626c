"""Ways to open a plugin: by starting its program, or by connecting to its address."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lehr.base.errors import LehrError
from lehr.plugins.handshake import Handshake
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.remote.channel import Channel, Tls
from lehr.plugins.remote.connection import Opened

HANDSHAKE = Handshake("LEHR_PLUGIN_COOKIE", "6c656872", (1,))

_START_SECONDS = 30.0


class Managed(NamedTuple):
    """Starts a program for each connection.

    Attributes:
        log: gets each line that it prints.
    """

    processes: PluginProcesses
    program: Program
    log: Callable[[str], None]

    async def __call__(self) -> Opened:
        process = await self.processes.start(self.program, HANDSHAKE, seconds=_START_SECONDS, log=self.log)
        return Opened(Channel(process.address), process)


class Attached(NamedTuple):
    """Connects to a plugin with a life cycle of its own.

    Attributes:
        address: `unix:PATH`, or `HOST:PORT`, which needs TLS.
        tls: reads what a connection needs, each time: certificates are renewed.
    """

    address: str
    tls: Callable[[], Tls] | None = None

    async def __call__(self) -> Opened:
        if self.tls is None and not self.address.startswith("unix:"):
            raise LehrError(
                f"the plugin at {self.address} needs TLS",
                code="PLG127",
                why="others could read what is sent over the network, and answer in its place",
                fix="configure `tls`, or use a Unix socket",
            )
        return Opened(Channel(self.address, self.tls() if self.tls is not None else None))
