"""One turn of every converged asset, in the running Enforcer; and its memory.

The real Enforcer and store; only production is a plugin that always answers "as intended". SIZE is
the number of assets (100,000). The state file is made by a process of its own, so that the memory
is that of the Enforcer alone, from its start through the sweep.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from pathlib import Path

from benchmarks import figures
from benchmarks.enforce_push import Nothing, at_rest, converge, enforcer, ids, publish
from benchmarks.files import Spent
from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.garbage import collect_rarely
from lehr.enforce.committer import Committer
from lehr.store.sqlite import SqliteStore


def prepare(path: Path, size: int) -> None:
    """A state file in which `size` assets have converged."""
    store = SqliteStore(path)
    publish(store, size)
    asyncio.run(converge(store, Nothing(ids(size))))
    store.close()


async def sweep(path: Path, size: int) -> Spent:
    """The time of one turn of each of `size` assets."""
    store = SqliteStore(path)
    committing = Threads("commit", 1)
    committer = Committer(store, committing, SystemClock())
    commits = asyncio.create_task(committer.run())
    running = enforcer(store, Nothing(ids(size)), committer)
    await running.start("bench")
    await at_rest(running)
    before = running.turns
    began, used = time.perf_counter(), time.process_time()
    await running.sweep()
    await at_rest(running)
    spent = Spent(time.perf_counter() - began, time.process_time() - used)
    assert running.turns - before == size, f"{running.turns - before} turns of {size} assets"
    assert not running.unsettled, "a sweep of converged assets unsettles nothing"
    await running.stop()
    commits.cancel()
    committing.close()
    store.close()
    return spent


def main() -> None:
    """Print the figures."""
    size = figures.size(100_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.sqlite"
        before = multiprocessing.get_context("spawn").Process(target=prepare, args=(path, size))
        before.start()
        before.join()
        assert before.exitcode == 0, "the state file was not made"
        collect_rarely()  # as `lehr run` does
        empty = figures.peak_memory()
        spent = asyncio.run(sweep(path, size))
    rate, used = round(size / spent.wall), round(spent.processor, 3)
    figures.report("sweep", spent.wall, "s", size, turns_per_second=rate, processor_seconds=used)
    peak = figures.peak_memory()
    figures.report("memory", peak, "MiB", size, kib_per_asset=round((peak - empty) * 1024 / size, 2))


if __name__ == "__main__":
    main()
