"""Partitions of real stores can be watched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lehr.model.asset import Asset, AssetId
from lehr.model.writes import Prune, Publish
from lehr.query.partition_watch import IncarnationFeed, PartitionWatch
from lehr.sdk.store import Store
from lehr.sdk.watch import ListAgainError
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, publication
from tests.watch_rules import RULES, Rule, Subject, asset


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = SqliteStore(tmp_path / "state.sqlite")
    yield store
    store.close()


def subject(store: Store, feed: IncarnationFeed) -> Subject:
    def publish(changed: Sequence[Asset], gone: Sequence[AssetId]) -> None:
        newest = store.intent.newest(PARTITION)
        base = 0 if newest is None else newest.sequence
        write = publication(base, *changed, removals=tuple(gone))
        assert isinstance(write, Publish)
        store.commit([write])
        feed.notify_published()

    def prune() -> None:
        rest: Prune | None = Prune(PARTITION, keep=1, before=float("inf"))
        while rest is not None:
            [pruned] = store.commit([rest])
            rest = pruned.rest

    return Subject(lambda: PartitionWatch(store, feed), publish, prune)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_a_partition_keeps_the_contract_of_watches(rule: Rule, store: Store) -> None:
    async def main() -> None:
        await rule(subject(store, IncarnationFeed(store, PARTITION)))

    asyncio.run(main())


def test_what_nobody_told_of_is_found_all_the_same(store: Store) -> None:
    async def main() -> None:
        feed = IncarnationFeed(store, PARTITION)
        other = subject(store, IncarnationFeed(store, PARTITION))
        watch = aiter(PartitionWatch(store, feed).watch(0))
        coming = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0.05)
        other.publish([asset("a")], [])
        batch = await coming
        assert [item.id for item in batch.changed] == ["a"]

    asyncio.run(main())


def test_who_wants_some_hears_of_some_and_what_is_wanted_no_more_is_gone(store: Store) -> None:
    async def main() -> None:
        feed = IncarnationFeed(store, PARTITION)
        whole = subject(store, feed)
        watch = PartitionWatch(store, feed, wanted=lambda item: b'"value":1' in item.body)
        whole.publish([asset("a", 1), asset("b", 0)], [])
        whole.publish([asset("b", 1), asset("c", 0)], [])
        whole.publish([asset("a", 0)], [AssetId("c")])
        assert [item.id for item in (await watch.list()).assets] == ["b"]
        batches = aiter(watch.watch(0))
        heard = [await anext(batches) for _ in range(3)]
        assert [([item.id for item in batch.changed], list(batch.gone)) for batch in heard] == [
            (["a"], []),
            (["b"], []),
            ([], ["a"]),
        ]

    asyncio.run(main())


def test_signs_of_life_come_when_nothing_happens(store: Store) -> None:
    async def main() -> None:
        feed = IncarnationFeed(store, PARTITION)
        whole = subject(store, feed)
        whole.publish([asset("a")], [])
        batches = aiter(PartitionWatch(store, feed, heartbeat=0.01).watch(1))
        heard = [await anext(batches) for _ in range(3)]
        assert all(batch.sequence == 1 and not batch.changed and not batch.gone for batch in heard)

    asyncio.run(main())


def test_an_incarnation_that_changed_too_much_is_to_be_listed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lehr.query.partition_watch._MOST_CHANGES", 3)

    async def main() -> None:
        feed = IncarnationFeed(store, PARTITION)
        subject(store, feed).publish([asset(f"a{number}") for number in range(4)], [])
        with pytest.raises(ListAgainError, match=r"changed more than 3 assets|list again"):
            await anext(aiter(PartitionWatch(store, feed).watch(0)))

    asyncio.run(main())
