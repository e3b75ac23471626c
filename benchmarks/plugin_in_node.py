"""SIZE diffs without changes by the plugin in Node, alone and in batches; the peer answers in this process.

All assets are entries of one table, `examples/plugin-node`. The peer is a plugin in Python that looks at the
same table, so the difference is the cost of another process. Each figure is the best of some rounds, per
diff; `cpu` is the processor time of both processes, which says more on a machine that others use.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import structlog

from benchmarks import figures
from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.declared import TypeDeclaration, schema_of
from lehr.model.diff import NO_DIFF, Change, Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.types import AssetType, Registry
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.opening import Managed, Start
from lehr.plugins.remote.plugin import RemotePlugin
from lehr.sdk.plugin import AssetPlugin, Push, Reader
from lehr.testing.plugins import FixedReader, target_of
from tests.node import example_in, node_program

TYPE = "example.Redirect"
ROUNDS = 3
REGISTRY = Registry([AssetType(TYPE, schema_of(TypeDeclaration({})))])
AT_ONCE = 64
BATCH = 100

Requests = list[tuple[Target, FixedReader]]


class InProcess(AssetPlugin):
    """Compares entries of the table as the plugin in Node does, which reads it again when it has changed."""

    types = (TYPE,)

    def __init__(self) -> None:
        self._version: tuple[int, ...] = ()
        self._entries: dict[str, Any] = {}

    async def diff(self, target: Target, read: Reader) -> Diff:
        payload: dict[str, Any] = read.payload(target.id, dict)
        found = self._read(payload["table"]).get(payload["from"])
        wanted = {"to": payload["to"], "status": 308 if payload["permanent"] else 307}
        return NO_DIFF if found == wanted else Diff((Change("entry", wanted, found),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return DONE

    def _read(self, table: str) -> dict[str, Any]:
        found = os.stat(table)
        version = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if version != self._version:
            self._version, self._entries = version, json.loads(Path(table).read_bytes())
        return self._entries


def redirects(size: int, folder: Path) -> list[Asset]:
    """Assets, and the table that they have nothing to do in."""
    table = folder / "redirects.json"
    table.write_text(json.dumps({f"/{number}": {"to": "/", "status": 307} for number in range(size)}))
    payload = {"table": str(table), "to": "/", "permanent": False}
    return [
        make_asset(AssetId(f"r/{number}"), TYPE, {**payload, "from": f"/{number}"}, {})
        for number in range(size)
    ]


def remote(folder: Path) -> RemotePlugin:
    """The plugin in Node, as Lehr starts it."""
    program = Program((node_program(), str(example_in(folder) / "plugin.js")))

    async def start() -> Start:
        return Start(program)

    opener = Managed(PluginProcesses(Inline(), SystemClock()), start, lambda line: None)
    connection = Connection("redirects", opener, SystemClock(), lambda found: None, lambda: 0.0)
    return RemotePlugin(connection, [TYPE], SystemClock())


async def alone(plugin: AssetPlugin, requests: Requests) -> None:
    """One diff after the other."""
    for request in requests:
        assert (await plugin.diff(*request)).empty


async def at_once(plugin: AssetPlugin, requests: Requests) -> None:
    """`AT_ONCE` diffs at once, as the loops of assets ask for them."""
    waiting = iter(requests)

    async def some() -> None:
        for request in waiting:
            assert (await plugin.diff(*request)).empty

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


async def batches(plugin: AssetPlugin, requests: Requests) -> None:
    """`BATCH` diffs in each call, as sweeps ask for them."""
    for begin in range(0, len(requests), BATCH):
        answers = [found async for _, found in plugin.diff_many(requests[begin : begin + BATCH])]
        assert len(answers) == len(requests[begin : begin + BATCH])
        assert all(isinstance(found, Diff) and found.empty for found in answers)


async def best(
    way: Callable[[AssetPlugin, Requests], Awaitable[None]],
    plugin: AssetPlugin,
    requests: Requests,
    process: int | None = None,
) -> tuple[float, float]:
    """Milliseconds per diff, of time and of processors, also that of another process."""
    taken, used = [], []
    for _ in range(ROUNDS):
        began, busy = time.perf_counter(), figures.cpu_seconds(process)
        await way(plugin, requests)
        taken.append(time.perf_counter() - began)
        used.append(figures.cpu_seconds(process) - busy)
    return min(taken) * 1000 / len(requests), min(used) * 1000 / len(requests)


async def main(size: int) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory() as folder:
        assets = redirects(size, Path(folder))
        requests = [(target_of(asset), FixedReader([asset], REGISTRY)) for asset in assets]
        near, far = InProcess(), remote(Path(folder))
        try:
            await far.connection.describe()
            assert far.connection.process is not None
            process = far.connection.process.pid
            for way in (alone, at_once, batches):
                near_taken, near_used = await best(way, near, requests)
                taken, used = await best(way, far, requests, process)
                facts = {"cpu": round(used, 4), "peer_cpu": round(near_used, 4), "rounds": ROUNDS}
                peer = figures.Peer("in process", near_taken)
                figures.report(way.__name__, taken, "ms", size, peer=peer, **facts)
        finally:
            await far.close()


if __name__ == "__main__":
    asyncio.run(main(figures.size(10_000)))
