"""The Enforcer hears of every incarnation once and in order, told or not, whatever goes wrong meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.enforce.intent_follower import Heads, IntentFollower
from lehr.model.incarnation import Incarnation
from lehr.model.types import Registry
from lehr.sdk.runtime import Runtime
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import PARTITION, asset, published
from lehr.testing.virtual import VirtualClock, run


class Heard:
    """What was handed on: `list 1` for an incarnation as a whole, `2: a=1 b=gone` for what one changed."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.said: list[str] = []
        self.clock = VirtualClock()
        self.breaks = 0
        runtime = Runtime(PARTITION, store, Registry(), self.clock, Chance(1), Inline())
        self.behind: list[bool] = []
        self.following = IntentFollower(runtime, self.listed, self.changed, self.progressed)

    def progressed(self) -> None:
        self.behind.append(self.following.behind)

    async def listed(self) -> int:
        newest = self.store.intent.newest(PARTITION)
        assert newest is not None
        self.said.append(f"list {newest.sequence}")
        return newest.sequence

    async def changed(self, incarnation: Incarnation, heads: Heads) -> None:
        if self.breaks:
            self.breaks -= 1
            raise RuntimeError("nobody thought of this")
        changes = [f"{id}={'gone' if head is None else head.digest[:4]}" for id, head in heads.items()]
        self.said.append(f"{incarnation.sequence}: {' '.join(changes)}")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.following.begin()
        task = asyncio.create_task(self.following.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def digest(id: str, value: str) -> str:
    return asset(id, value).digest[:4]


def play(folder: Path, scenario: Callable[[SqliteStore, Heard], Awaitable[None]]) -> None:
    async def main() -> None:
        with contextlib.closing(SqliteStore(folder / "state.sqlite")) as store:
            await scenario(store, Heard(store))

    run(main, seed=1)


def test_what_is_there_is_listed_and_what_comes_is_handed_on_whether_told_or_not(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore, heard: Heard) -> None:
        published(store, 0, asset("a", "1"))
        async with heard.running():
            assert heard.said == ["list 1"]
            published(store, 1, asset("a", "2"), asset("b", "1"))
            behind = [heard.following.behind]
            heard.following.notify_published(2)
            behind.append(heard.following.behind)
            await heard.clock.sleep(0.1)
            assert [*behind, heard.following.behind] == [False, True, False]
            published(store, 2, removals=["b"])
            published(store, 3, asset("c", "1"))
            await heard.clock.sleep(6.0)
        assert heard.said == [
            "list 1",
            f"2: a={digest('a', '2')} b={digest('b', '1')}",
            "3: b=gone",
            f"4: c={digest('c', '1')}",
        ]

    play(tmp_path, scenario)


def test_the_first_incarnation_is_waited_for_and_listed(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore, heard: Heard) -> None:
        async with heard.running():
            assert heard.said == []
            published(store, 0, asset("a", "1"))
            heard.following.notify_published()
            await heard.clock.sleep(0.1)
        assert heard.said == ["list 1"]

    play(tmp_path, scenario)


def test_an_incarnation_that_changes_too_much_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(store: SqliteStore, heard: Heard) -> None:
        published(store, 0, asset("a", "1"))
        async with heard.running():
            published(store, 1, *(asset(id, "1") for id in "bcd"))
            await heard.clock.sleep(10.0)
        assert heard.said == ["list 1", "list 2"]

    monkeypatch.setattr("lehr.query.partition_watch._MOST_CHANGES", 2)
    play(tmp_path, scenario)


def test_what_could_not_be_taken_comes_again(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore, heard: Heard) -> None:
        published(store, 0, asset("a", "1"))
        async with heard.running():
            heard.breaks = 2
            published(store, 1, asset("b", "1"))
            published(store, 2, asset("c", "1"))
            await heard.clock.sleep(30.0)
        assert heard.said == ["list 1", f"2: b={digest('b', '1')}", f"3: c={digest('c', '1')}"]

    play(tmp_path, scenario)


def test_those_who_wait_are_woken_once_it_is_no_longer_behind(tmp_path: Path) -> None:
    async def scenario(store: SqliteStore, heard: Heard) -> None:
        async with heard.running():
            for sequence in range(2):
                published(store, sequence, asset("a", str(sequence)))
                heard.following.notify_published(sequence + 1)
                await heard.clock.sleep(0.1)
        assert heard.behind == [False, False]

    play(tmp_path, scenario)
