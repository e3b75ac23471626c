"""SIZE converged assets compared with one `diff_many`, next to one `diff` after the other.

Programs of one supervisord, and schemas of one PostgreSQL database with three tables each. Both are
real and warm, and compared over Unix sockets. Each figure is the best of some rounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path

from benchmarks import figures
from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Goal
from lehr.model.operation import DONE
from lehr.model.types import Registry
from lehr.plugins.database import payload as database
from lehr.plugins.database.payload import DATABASE_SCHEMA, Column, DatabaseSchema, Index, Table
from lehr.plugins.database.plugin import DatabasePlugin
from lehr.plugins.process import payload as process
from lehr.plugins.process.payload import PROCESS, Process
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.sdk.plugin import AssetPlugin
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.postgres import PostgresServer

REGISTRY = Registry([*process.TYPES, *database.TYPES])
ROUNDS = 5
PUSHES = 8


async def push(plugin: AssetPlugin, assets: list[Asset], goal: Goal = Goal.PRESENT) -> None:
    """Bring production to where the assets have nothing to do."""
    places = asyncio.Semaphore(PUSHES)

    async def one(asset: Asset) -> None:
        target = target_of(asset, goal)
        async with places:
            assert await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)) == DONE

    await asyncio.gather(*map(one, assets))


async def measure(figure: str, plugin: AssetPlugin, assets: list[Asset]) -> None:
    """Report the figure, with one by one as its peer."""
    requests = [(target_of(asset), FixedReader([asset], REGISTRY)) for asset in assets]
    many, one_by_one = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        alone = [(await plugin.diff(*request)).empty for request in requests]
        between = time.perf_counter()
        together = [answer async for _, answer in plugin.diff_many(requests)]
        many.append(time.perf_counter() - between)
        one_by_one.append(between - began)
        assert all(alone)
        assert len(together) == len(assets)
    peer = figures.Peer("one by one", min(one_by_one) * 1000)
    figures.report(figure, min(many) * 1000, "ms", len(assets), peer=peer, rounds=ROUNDS)


async def programs(size: int) -> None:
    """Programs that sleep, without health probes."""
    with tempfile.TemporaryDirectory() as folder:
        plugin = ProcessPlugin(Path(folder), Threads("process", ProcessPlugin.traits.turns), SystemClock())
        payload = Process(command=["sleep", "3600"])
        assets = [make_asset(AssetId(f"p{number}"), PROCESS, payload, {}) for number in range(size)]
        try:
            await push(plugin, assets)
            await measure("programs", plugin, assets)
        finally:
            await push(plugin, assets, Goal.ABSENT)
            await plugin.close()


async def schemas(size: int) -> None:
    """Schemas with a few tables, each with an index."""
    columns = {"id": Column("bigserial"), "title": Column("text", default="'x'"), "price": Column("numeric")}
    tables = {f"t{name}": Table(columns, ["id"], {f"i{name}": Index(["title"])}) for name in range(3)}
    with contextlib.closing(PostgresServer()) as server:
        server.start()
        server.run("CREATE DATABASE bench")
        url, assets = server.url("bench"), []
        for number in range(size):
            payload = DatabaseSchema(connection=url, version=1, schema=f"s{number}", tables=tables)
            assets.append(make_asset(AssetId(f"s{number}"), DATABASE_SCHEMA, payload, {}))
        plugin = DatabasePlugin(Path("/"), Threads("database", DatabasePlugin.threads), SystemClock())
        await push(plugin, assets)
        await measure("schemas", plugin, assets)
        await plugin.close()


def main() -> None:
    """Print the figures."""
    size = figures.size(50)
    asyncio.run(programs(size))
    asyncio.run(schemas(size))


if __name__ == "__main__":
    main()
