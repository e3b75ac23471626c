"""Plugins of this folder, started as Lehr starts them."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.opening import Managed, Start
from lehr.plugins.remote.plugin import RemotePlugin
from lehr.sdk.secrets import Secrets

HERE = Path(__file__).parent


def connection(
    program: str,
    log: list[str],
    environment: Mapping[str, str] | None = None,
    description: m.DescribeResponse | None = None,
    arguments: Sequence[str] = (),
) -> Connection:
    """To a plugin in Python."""
    paths = os.pathsep.join(path for path in sys.path if path)
    command = Program(
        (sys.executable, str(HERE / program), *arguments), {"PYTHONPATH": paths, **(environment or {})}
    )

    async def start() -> Start:
        return Start(command)

    opener = Managed(PluginProcesses(Inline(), SystemClock()), start, log.append)
    return Connection(program, opener, SystemClock(), description=description)


def line_plugin(log: list[str], secrets: Secrets | None = None, *arguments: str) -> RemotePlugin:
    """That of `line_plugin.py`, described."""
    described = _line_description(*arguments)
    opened = connection("line_plugin.py", log, description=described, arguments=arguments)
    return RemotePlugin(opened, ["example.Line"], SystemClock(), secrets)


@functools.cache
def _line_description(*arguments: str) -> m.DescribeResponse:
    """Asked for in a thread: the caller may be in an event loop."""

    async def describe() -> m.DescribeResponse:
        opened = connection("line_plugin.py", [], arguments=arguments)
        try:
            return await opened.describe()
        finally:
            await opened.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(describe())).result()
