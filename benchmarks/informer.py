"""What a shared informer takes: updates into a cache with one index and a queue; and memory, nothing queued.

SIZE is the number of assets (100,000), of about 600 bytes each. Updates come as batches of a hundred, out of
memory, so that the informer alone is measured. The peer is client-go, whose figures were measured elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
import tracemalloc
from collections.abc import AsyncIterator

from benchmarks import figures
from benchmarks.manifests import PLACES
from benchmarks.store import assets
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.client import SharedInformer, WorkQueue
from lehr.model.asset import AssetId
from lehr.sdk.watch import Batch, Listing

SEED = 1
CLIENT_GO_UPDATES = 240_000.0
CLIENT_GO_MIB = 190.0  # for 100,000 objects


class Prepared:
    """A listing and batches that are made already. Implements `lehr.sdk.watch.Watchable`."""

    def __init__(self, listing: Listing, batches: list[Batch]) -> None:
        self._listing = listing
        self._batches = batches
        self.done = asyncio.Event()
        self.seconds = 0.0

    async def list(self) -> Listing:
        return self._listing

    async def watch(self, after: int) -> AsyncIterator[Batch]:
        began = time.perf_counter()
        for batch in self._batches[after - 1 :]:
            yield batch
        self.seconds = time.perf_counter() - began
        self.done.set()
        await asyncio.Event().wait()


async def follow(prepared: Prepared) -> tuple[SharedInformer, WorkQueue[AssetId]]:
    """An informer that has taken everything, and the queue that it has filled."""
    clock, chance = SystemClock(), Chance(SEED)
    informer = SharedInformer(prepared, clock, chance)
    queue: WorkQueue[AssetId] = WorkQueue(clock, chance)
    informer.add_index("type", lambda asset: (asset.type,))
    informer.add_handler(lambda delta: queue.add(delta.id))
    running = asyncio.create_task(informer.run())
    await prepared.done.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return informer, queue


async def updates(size: int) -> None:
    """Each asset changes once."""
    manifests = range(size // PLACES)
    first = [asset for number in manifests for asset in assets(number, 1)]
    batches = [Batch(number + 2, tuple(assets(number, 2))) for number in manifests]
    prepared = Prepared(Listing(1, first), batches)
    await follow(prepared)
    peer = figures.Peer("client-go, measured elsewhere", CLIENT_GO_UPDATES)
    figures.report("updates", size / prepared.seconds, "1/s", size, peer=peer)


async def memory(size: int) -> None:
    """What is held for so many, the assets themselves included."""
    gc.collect()
    tracemalloc.start()
    listing = Listing(1, (asset for number in range(size // PLACES) for asset in assets(number, 1)))
    informer, queue = await follow(Prepared(listing, []))
    for _item in range(len(queue)):
        queue.done(await queue.take())
    gc.collect()
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    per_100_000 = held / 2**20 / len(informer) * 100_000
    peer = figures.Peer("client-go, measured elsewhere", CLIENT_GO_MIB)
    figures.report("memory_per_100000", per_100_000, "MiB", size, peer=peer)


def main() -> None:
    """Print the figures."""
    size = figures.size(100_000)
    asyncio.run(updates(size))
    asyncio.run(memory(size))


if __name__ == "__main__":
    main()
