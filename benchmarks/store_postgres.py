"""The store in PostgreSQL beside the embedded one, over the same incarnations and pushes.

    python -m benchmarks.store_postgres [assets]

Both are durable: every commit is synced. The server runs on this machine, over a Unix socket, with
its usual settings but for more room for its log of writes. Processor time is the client's and that of
the server's process for the connection: on a machine that does other things, too, it says more than
the clock.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import Peer, percentile, report, size
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.operation import DONE
from lehr.model.writes import Admit, Basis, Finish, KeepLease, RecordDecision, TakeLease
from lehr.sdk.store import CheckableStore
from lehr.store.postgres import Address, PostgresStore
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import (
    PARTITION,
    THING,
    basis,
    decision,
    entry,
    key,
    operation,
    publication,
)
from tests.postgres import PostgresServer

CHANGED = 100
ROUNDS = 50
PUSHES = 1000
IN_A_GROUP = 100


class Run(NamedTuple):
    """Seconds by the clock, and of processors."""

    seconds: float
    processor: float


def main() -> None:
    count = size(100_000)
    folder = Path(tempfile.mkdtemp(prefix="lehr-bench-"))
    server = PostgresServer(durable=True)
    try:
        server.start()
        server.run("ALTER SYSTEM SET max_wal_size = '8GB'")
        server.run("SELECT pg_reload_conf()")
        embedded = measured(SqliteStore(folder / "state.sqlite"), count)
        store = PostgresStore(Address(server.url("postgres")))
        found = measured(store, count, lambda: backend_seconds(server))
        for name, (value, unit, facts) in found.items():
            report(name, value, unit, count, peer=Peer("sqlite", embedded[name][0]), **facts)
        stored = server.run(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
            " AND relnamespace = 'lehr'::regnamespace"
        )
        report("stored", float(stored[0][0]) / count, "B/asset", count)
    finally:
        server.close()
        shutil.rmtree(folder)


def measured(
    store: CheckableStore, count: int, elsewhere: Callable[[], float] = lambda: 0.0
) -> dict[str, tuple[float, str, dict[str, Any]]]:
    """Every figure by name: value, unit, and what else there is to say."""
    assets = tuple(numbered(number, 0) for number in range(count))

    def publish(turn: int) -> None:
        store.commit([publication(turn, *changed(turn, count))])

    def compare(turn: int) -> None:
        assert len(list(store.intent.changes(PARTITION, turn, turn + 1))) == CHANGED

    def read_one(turn: int) -> None:
        store.intent.asset(key(assets[turn * 7919 % count].id), 1 + turn % ROUNDS)

    rounds = range(1, ROUNDS + 1)
    try:
        first = timed(elsewhere, lambda: store.commit([publication(0, *assets)]))
        read = timed(elsewhere, lambda: sum(1 for _ in store.intent.assets(PARTITION, 1)))
        singles = {
            f"publish_{CHANGED}": [clocked(publish, turn) for turn in rounds],
            f"compare_{CHANGED}": [clocked(compare, turn) for turn in rounds],
            "read_one": [clocked(read_one, turn) for turn in range(1000)],
        }
        asked = {item.id: basis(store, item.id) for item in assets[:PUSHES]}
        pushed = timed(elsewhere, lambda: push(store, asked))
    finally:
        store.close()
    found: dict[str, tuple[float, str, dict[str, Any]]] = {
        name: (number / run.seconds, "1/s", {"per_processor_second": round(number / run.processor)})
        for name, number, run in (
            ("publish", count, first),
            ("read_all", count, read),
            ("pushes", PUSHES, pushed),
        )
    }
    for name, seconds in singles.items():
        found[f"{name}_p99"] = (
            percentile(seconds, 99) * 1000,
            "ms",
            {"median": percentile(seconds, 50) * 1000},
        )
    return found


def numbered(number: int, turn: int) -> Asset:
    """About 600 bytes."""
    content = {"value": "x" * 480, "number": number, "turn": turn}
    return make_asset(AssetId(f"service-{number // 100:05}/place-{number % 100:02}"), THING, content, {})


def changed(turn: int, count: int) -> Iterator[Asset]:
    return (numbered((turn * 7919 + place) % count, turn) for place in range(CHANGED))


def push(store: CheckableStore, asked: dict[AssetId, Basis]) -> None:
    """Admit and finish pushes, each with its decisions, as the Enforcer groups them when it is busy."""
    [epoch] = store.commit([TakeLease(PARTITION, "bench", 0.0)])
    lease, ids = KeepLease(PARTITION, epoch, 0.0), list(asked)
    for start in range(0, len(ids), IN_A_GROUP):
        group = [operation(f"o {id}", id, epoch=epoch) for id in ids[start : start + IN_A_GROUP]]
        admit = [Admit(item, asked[item.asset], decision=decision(item.asset)) for item in group]
        assert not any(store.commit([lease, *admit]))
        done = [
            Finish(PARTITION, item.id, DONE, item.started_at + 1, entry(item.asset, operation=item.id))
            for item in group
        ]
        store.commit([lease, *done, *(RecordDecision(decision(item.asset)) for item in group)])


def timed(elsewhere: Callable[[], float], work: Callable[[], object]) -> Run:
    there, processor = elsewhere(), time.process_time()
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    used = time.process_time() - processor + elsewhere() - there
    return Run(seconds, max(used, 1e-9))


def clocked(work: Callable[[int], None], turn: int) -> float:
    began = time.perf_counter()
    work(turn)
    return time.perf_counter() - began


def backend_seconds(server: PostgresServer) -> float:
    """Processor time of all processes of the server."""
    first = int((server.folder / "data/postmaster.pid").read_text().split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[1]) == first:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
