"""Watching over HTTP: how long until a thousand watchers have heard of everything.

SIZE is the number of watchers (1,000) of one partition of 1,000 assets, in this process. A hundred
incarnations of one change each are published by this one too, as fast as the disk lets it; the time runs
from before the first until the last watcher has the last. The server finds out about incarnations by itself:
within a second.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path

from benchmarks import figures
from benchmarks.query import publish, serving, wired
from benchmarks.store import PARTITION, assets
from lehr.base.clock import SystemClock
from lehr.client.http import HttpWatch
from lehr.store.sqlite import SqliteStore

INCARNATIONS = 100
MANIFESTS = 10
SEED = 1


async def measure(url: str, store: SqliteStore, watchers: int) -> float:
    """Seconds until all have everything."""
    connected = 0
    everybody = asyncio.Event()

    async def watch() -> None:
        nonlocal connected
        expected = 1
        async for batch in HttpWatch(url, PARTITION, silence=120.0).watch(0):
            if not batch.changed:
                continue
            if batch.sequence != expected:
                raise RuntimeError(f"{batch.sequence} came, and not {expected}")
            if expected == 1:
                connected += 1
                if connected == watchers:
                    everybody.set()
            if expected == INCARNATIONS + 1:
                return
            expected += 1

    chance = random.Random(SEED)
    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(watch()) for _ in range(watchers)]
        await everybody.wait()
        clock = SystemClock()
        began = time.perf_counter()
        for sequence in range(1, INCARNATIONS + 1):
            publish(store, sequence, [chance.choice(assets(chance.randrange(MANIFESTS), sequence + 1))])
            await clock.sleep(0)
        await asyncio.wait(watching)
        return time.perf_counter() - began


def main() -> None:
    """Print the figure."""
    watchers = figures.size(1000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = SqliteStore(wired(folder), background=True)
        try:
            publish(store, 0, [asset for number in range(MANIFESTS) for asset in assets(number, 1)])
            with serving(folder) as url:
                seconds = asyncio.run(measure(url, store, watchers))
        finally:
            store.close()
    heard = watchers * INCARNATIONS / seconds
    figures.report("all_have_all", seconds, "s", watchers, incarnations=INCARNATIONS, per_second=round(heard))


if __name__ == "__main__":
    main()
