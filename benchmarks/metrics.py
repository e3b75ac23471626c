"""`/metrics` over HTTP: bytes, and how long an answer takes, at rest and during a sweep.

SIZE is the number of assets (100,000); half of them are blocked, for one of forty reasons. The real Enforcer
and server run in one process, as in `lehr run --listen`; the client is a thread of it, with one connection.
The peer is `/healthz` of the same server, the floor.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.enforce_push import PARTITION, Nothing, at_rest, enforcer, ids, publish
from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.digest import Digest
from lehr.control.metrics import MEDIA_TYPE, Gauges, Metrics
from lehr.enforce.committer import Committer
from lehr.enforce.enforcer import Enforcer
from lehr.http.probes import ProbeAnswer
from lehr.http.questions import Installation
from lehr.http.server import Address, serving
from lehr.model.decision import Condition, Status
from lehr.model.types import Registry
from lehr.sdk.store import Standing
from lehr.store.sqlite import SqliteStore

ASKED = 1000
REASONS = 40
NOTHING = Installation(
    lambda store, partition: lambda type: False,
    lambda store, partition, sequence: Registry(()),
    lambda revision: None,
)


def blocked(size: int) -> list[Standing]:
    """Half of the assets, blocked."""
    now = time.time()
    return [
        Standing(id, Condition(Status.WAITING, f"Reason{number % REASONS}"), now - number, Digest(id))
        for number, id in enumerate(ids(size)[: size // 2])
    ]


def gauges(running: Enforcer) -> Gauges:
    """As `lehr run` has them."""
    return Gauges(
        partition=PARTITION,
        assets=running.assets,
        unsettled=running.unsettled_count,
        queued=running.queued,
        epoch=running.epoch,
        enforcing=True,
        ready=True,
        source_looked_at=None,
    )


@contextlib.asynccontextmanager
async def answering(path: Path, running: Enforcer, metrics: Metrics) -> AsyncIterator[Address]:
    """A server with these metrics."""
    probes = {
        "/metrics": lambda: ProbeAnswer(True, MEDIA_TYPE, metrics.text(gauges(running)).encode()),
        "/healthz": lambda: ProbeAnswer(True, "application/json", b"{}"),
    }
    async with serving(
        Address("127.0.0.1", 0),
        lambda: SqliteStore(path, read_only=True),
        NOTHING,
        SystemClock(),
        probes=probes,
    ) as server:
        yield server.address


def ask(address: Address, target: str) -> tuple[list[float], int]:
    """Milliseconds of each answer, and the bytes of the last one."""
    connection = http.client.HTTPConnection(address.host, address.port)
    times, size = [], 0
    for _ in range(ASKED):
        began = time.perf_counter()
        connection.request("GET", target)
        size = len(connection.getresponse().read())
        times.append((time.perf_counter() - began) * 1000)
    connection.close()
    return times, size


async def measure(path: Path, size: int) -> None:
    """Print the figures."""
    store = SqliteStore(path)
    publish(store, size)
    committing, client = Threads("commit", 1), Threads("client", 1)
    metrics = Metrics(SystemClock())
    committer = Committer(store, committing, SystemClock(), metrics.committed)
    commits = asyncio.create_task(committer.run())
    running = enforcer(store, Nothing(ids(size)), committer)
    await running.start("bench")
    await at_rest(running)
    await committer.flush()
    metrics.begin()
    metrics.recovered(blocked(size), [])
    async with answering(path, running, metrics) as address:
        floor, _ = await client.run(ask, address, "/healthz")
        times, answer = await client.run(ask, address, "/metrics")
        sweep = asyncio.create_task(running.sweep())
        swept, _ = await client.run(ask, address, "/metrics")
        await sweep
    await running.stop(0.0)
    commits.cancel()
    facts: dict[str, Any] = {"answers": ASKED, "reasons": REASONS}
    figures.report("size", answer / 1000, "kB", size, **facts)
    peer = figures.Peer("/healthz, which answers two bytes", figures.percentile(floor, 99))
    figures.report("p99", figures.percentile(times, 99), "ms", size, peer=peer, **facts)
    figures.report("p50", figures.percentile(times, 50), "ms", size, **facts)
    figures.report("p99_during_a_sweep", figures.percentile(swept, 99), "ms", size, **facts)
    committing.close()
    client.close()
    store.close()


def main() -> None:
    """Measure."""
    size = figures.size(100_000)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder) / "state.sqlite", size))


if __name__ == "__main__":
    main()
