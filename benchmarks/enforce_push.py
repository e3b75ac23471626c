"""Pushes per second, with stored decisions: from nothing to everything converged.

The real Enforcer, group commit and store; only production is a plugin that does nothing. Each push
is admitted, started, finished, verified, and its decisions are recorded, all durably. SIZE is the
number of assets (10,000). The peer is the floor: bare commits of the very same writes, in the same
groups, to a fresh store.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import figures
from lehr.base.blocking import Threads
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.base.digest import Digest
from lehr.enforce.committer import Committer
from lehr.enforce.enforcer import Enforcer
from lehr.model.addons import ADDONS
from lehr.model.asset import AssetId, Partition, make_asset
from lehr.model.diff import Change, Diff, Target
from lehr.model.governance import GOVERNANCE_TYPES
from lehr.model.incarnation import Candidate
from lehr.model.operation import DONE, Outcome
from lehr.model.types import AssetType, Registry
from lehr.model.writes import Publish, Write
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Records, Store, StoredIntent
from lehr.store.sqlite import SqliteStore

PARTITION = Partition("bench")
TYPE = "bench.Nothing"


class Payload(msgspec.Struct, frozen=True):
    """Some 600 bytes of intent."""

    content: str = "x" * 600


class Nothing(AssetPlugin):
    """Production in memory, which takes every push at once."""

    types = (TYPE,)
    traits = Traits(turns=512, pushes=512, resync=3600.0)

    def __init__(self, applied: Iterable[AssetId] = ()) -> None:
        self._applied = set(applied)

    async def diff(self, target: Target, read: Reader) -> Diff:
        if target.id in self._applied:
            return Diff()
        return Diff((Change("content", "something", None),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self._applied.add(target.id)
        return DONE


class Wrapped:
    """A store that passes everything on to another one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def intent(self) -> StoredIntent:
        return self._store.intent

    @property
    def records(self) -> Records:
        return self._store.records

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        return self._store.commit(writes)

    def close(self) -> None:
        self._store.close()


class Remembering(Wrapped):
    """A store that remembers what was written to it, group by group."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.groups: list[Sequence[Write]] = []

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        self.groups.append(writes)
        return super().commit(writes)


def registry() -> Registry:
    """The type that the plugin serves, and what Lehr itself understands."""
    return Registry((AssetType(TYPE, Payload), *GOVERNANCE_TYPES), ADDONS)


def ids(size: int) -> list[AssetId]:
    """Ids of `size` assets."""
    return [AssetId(f"asset-{number}") for number in range(size)]


def publish(store: Store, size: int) -> None:
    """One incarnation of `size` assets."""
    assets = tuple(make_asset(id, TYPE, Payload(), {}) for id in ids(size))
    candidate = Candidate(PARTITION, 0, (), Digest("bench"), assets, ())
    store.commit([Publish(candidate, {}, (), time.time())])


def enforcer(store: Store, plugin: AssetPlugin, committer: Committer) -> Enforcer:
    """An Enforcer of everything in `store`, as it is shipped, without checks."""
    runtime = Runtime(PARTITION, store, registry(), SystemClock(), Chance(seed=1), Threads("lookups", 2))
    return Enforcer(runtime, committer, [plugin], [])


async def at_rest(running: Enforcer) -> None:
    """Wait until no turn and no push is under way."""
    while not running.at_rest:
        await running.changed()


async def converge(store: Store, plugin: AssetPlugin) -> float:
    """Seconds from the Enforcer's start until all is converged, and that is durable."""
    committing = Threads("commit", 1)
    committer = Committer(store, committing, SystemClock())
    commits = asyncio.create_task(committer.run())
    running = enforcer(store, plugin, committer)
    began = time.perf_counter()
    await running.start("bench")
    await at_rest(running)
    await committer.flush()
    seconds = time.perf_counter() - began
    left = running.unsettled
    assert not left, f"{len(left)} assets did not converge"
    await running.stop()
    commits.cancel()
    committing.close()
    return seconds


def replay(store: Store, groups: Sequence[Sequence[Write]]) -> float:
    """Seconds that the bare commits of `groups` take."""
    began = time.perf_counter()
    for group in groups:
        store.commit(group)
    return time.perf_counter() - began


def main() -> None:
    """Print the figure."""
    size = figures.size(10_000)
    with tempfile.TemporaryDirectory() as folder:
        store = Remembering(SqliteStore(Path(folder) / "state.sqlite"))
        publish(store, size)
        [published] = store.groups
        store.groups.clear()
        seconds = asyncio.run(converge(store, Nothing()))
        operations = len(store.records.operations(PARTITION, limit=2 * size))
        decisions = len(store.records.decisions(PARTITION, limit=4 * size))
        store.close()
        bare = SqliteStore(Path(folder) / "floor.sqlite")
        bare.commit(published)
        floor = replay(bare, store.groups)
        bare.close()
    assert operations == size, f"{operations} pushes of {size} assets"
    figures.report(
        "pushes",
        size / seconds,
        "1/s",
        size,
        peer=figures.Peer("bare commits of the same writes in the same groups", size / floor),
        durability="SQLite WAL, synchronous=FULL: nothing starts before its admission is on disk",
        commits=len(store.groups),
        decisions=decisions,
    )


if __name__ == "__main__":
    main()
