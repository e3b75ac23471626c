"""Feeds of real stores can be watched."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.model.asset import Partition
from lehr.model.feed import FeedEntry
from lehr.model.writes import Prune, RecordDecision
from lehr.query.feed_watch import FeedWatch
from lehr.sdk.store import Store
from lehr.sdk.watch import FeedGoneError
from lehr.store.postgres import PostgresStore
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import OTHER, PARTITION, decision
from tests.feed_watch_rules import FEED_RULES, FeedRule, FeedSubject
from tests.integration.store.conftest import fresh


@pytest.fixture(params=["sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the same store each time, as another process does."""
    with contextlib.ExitStack() as opened:
        if request.param == "sqlite":
            yield lambda: opened.enter_context(contextlib.closing(SqliteStore(tmp_path / "state.sqlite")))
            return
        address = fresh(request.getfixturevalue("server"))
        yield lambda: opened.enter_context(contextlib.closing(PostgresStore(address)))


def decide(store: Store, reasons: dict[str, str], partition: Partition = PARTITION) -> None:
    store.commit(
        [RecordDecision(decision(id, reason, partition=partition)) for id, reason in reasons.items()]
    )


def prune(store: Store) -> None:
    rest: Prune | None = Prune(PARTITION, keep=1, before=float("inf"))
    while rest is not None:
        [pruned] = store.commit([rest])
        rest = pruned.rest


def subject(store: Store, feed: FeedWatch) -> FeedSubject:
    def commit(reasons: dict[str, str]) -> None:
        decide(store, reasons)
        feed.notify_committed()

    def reasons() -> dict[str, str]:
        return {item.asset: item.condition.reason for item in store.records.standings(PARTITION)}

    return FeedSubject(lambda: feed, commit, reasons, lambda: prune(store))


@pytest.mark.parametrize("kept", [50_000, 3])
@pytest.mark.parametrize("rule", FEED_RULES, ids=lambda rule: str(rule.__name__))
def test_a_feed_keeps_the_contract_of_watches(
    rule: FeedRule, kept: int, open_store: Callable[[], Store]
) -> None:
    store = open_store()

    async def main() -> None:
        reading = Threads("reads", 2)
        try:
            await rule(subject(store, FeedWatch(store, PARTITION, SystemClock(), kept=kept, reading=reading)))
        finally:
            reading.close()

    # What is kept in memory is not forgotten with the rows: then a watcher need not list again.
    if kept > 3 and rule.__name__ == "what_was_pruned_is_never_skipped":
        kept = 3
    asyncio.run(main())


def test_what_another_process_commits_is_found_by_polling(open_store: Callable[[], Store]) -> None:
    store, other = open_store(), open_store()

    async def main() -> None:
        watch = aiter(FeedWatch(store, PARTITION, SystemClock(), poll=0.05).watch(0))
        coming = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.01)
        decide(other, {"z": "One"}, OTHER)
        decide(other, {"a": "One"})
        entry = await coming
        assert (entry.position, [change.asset for change in entry.changes]) == (1, ["a"])

    asyncio.run(main())


def test_signs_of_life_come_when_nothing_happens(open_store: Callable[[], Store]) -> None:
    store = open_store()
    decide(store, {"a": "One"})

    async def main() -> None:
        entries = aiter(FeedWatch(store, PARTITION, SystemClock(), heartbeat=0.01).watch(1))
        found = [await anext(entries) for _ in range(3)]
        assert all((entry.position, entry.changes) == (1, ()) for entry in found)

    asyncio.run(main())


def test_many_watchers_share_the_reads_of_an_entry(open_store: Callable[[], Store]) -> None:
    store = open_store()
    reads = 0
    feed_of = store.records.feed

    def counted(partition: Partition, after: int, limit: int = 100) -> list[FeedEntry]:
        nonlocal reads
        reads += 1
        return feed_of(partition, after, limit)

    store.records.feed = counted  # type: ignore[method-assign]

    async def main() -> None:
        feed = FeedWatch(store, PARTITION, SystemClock())
        watchers = [aiter(feed.watch(0)) for _ in range(50)]
        for position in range(1, 4):
            coming = [asyncio.ensure_future(anext(watcher)) for watcher in watchers]
            await asyncio.sleep(0.01)
            decide(store, {"a": f"Turn{position}"})
            feed.notify_committed()
            assert {entry.position for entry in await asyncio.gather(*coming)} == {position}

    asyncio.run(main())
    assert reads <= 8, "one when they begin, and two for each entry"


def test_a_damaged_entry_is_never_skipped(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "state.sqlite"
    with contextlib.closing(SqliteStore(path)) as store:
        for number in range(1, 6):
            decide(store, {"a": f"Turn{number}"})
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE feed SET at = at + 1 WHERE number = 3")

        async def main() -> None:
            feed = FeedWatch(store, PARTITION, SystemClock())
            entries = aiter(feed.watch(0))
            assert [(await anext(entries)).position for _ in range(2)] == [1, 2]
            with pytest.raises(FeedGoneError, match="entry 3 of the feed of one is damaged"):
                await anext(entries)
            position = await feed.position()
            decide(store, {"a": "Turn6"})
            assert position == 5
            assert (await anext(aiter(feed.watch(position)))).position == 6

        asyncio.run(main())
