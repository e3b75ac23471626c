"""Informers: a cache that follows and is never torn, and handlers that hear of every change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.chance import Chance
from lehr.base.errors import StalledError, TransientError
from lehr.client import Delta, DeltaQueue, SharedInformer
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.sdk.watch import Batch, ListAgainError, Listing
from lehr.testing.virtual import VirtualClock, run


def asset(id: str, value: int = 0) -> Asset:
    return make_asset(AssetId(id), "test.Thing", {"value": value}, {})


class Intent:
    """Something to watch: what it holds, all that has happened, and what goes wrong."""

    def __init__(self) -> None:
        self.assets: dict[AssetId, Asset] = {}
        self.batches: list[Batch] = []
        self.first = 0
        self.troubles: list[Exception] = []
        self.lists = 0
        self._news = asyncio.Event()

    @property
    def sequence(self) -> int:
        return self.first + len(self.batches)

    def publish(self, changed: Iterable[Asset] = (), gone: Iterable[str] = ()) -> None:
        batch = Batch(self.sequence + 1, tuple(changed), tuple(map(AssetId, gone)))
        self.batches.append(batch)
        self.assets.update((item.id, item) for item in batch.changed)
        for id in batch.gone:
            del self.assets[id]
        self._news.set()

    def prune(self) -> None:
        """Forget what happened."""
        self.first, self.batches = self.sequence, []

    def wake(self) -> None:
        self._news.set()

    async def list(self) -> Listing:
        self.lists += 1
        if self.troubles:
            raise self.troubles.pop(0)
        return Listing(self.sequence, list(self.assets.values()))

    async def watch(self, after: int) -> AsyncIterator[Batch]:
        while True:
            self._news.clear()
            while after < self.sequence:
                if self.troubles:
                    raise self.troubles.pop(0)
                if after < self.first:
                    raise ListAgainError(after, "pruned")
                batch = self.batches[after - self.first]
                yield batch
                after = batch.sequence
            await self._news.wait()


def play(main: Callable[[Intent, SharedInformer], Coroutine[Any, Any, None]], **options: float) -> None:
    """`main` runs while the informer follows."""

    async def whole() -> None:
        intent = Intent()
        informer = SharedInformer(intent, VirtualClock(), Chance(1), **options)
        following = asyncio.create_task(informer.run())
        await main(intent, informer)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    run(whole, seed=1)


def told(deltas: Iterable[Delta]) -> list[tuple[str, int | None, int | None]]:
    return [(delta.id, value_of(delta.before), value_of(delta.after)) for delta in deltas]


def value_of(item: Asset | None) -> int | None:
    return None if item is None else item.document()["payload"]["value"]


async def settled() -> None:
    await VirtualClock().sleep(1000.0)


def test_handlers_hear_of_all_that_is_there_and_of_every_change() -> None:
    async def main(intent: Intent, informer: SharedInformer) -> None:
        heard: list[Delta] = []
        informer.add_handler(heard.append)
        intent.publish([asset("a"), asset("b")])
        await informer.listed()
        intent.publish([asset("a", 1)], ["b"])
        await settled()
        assert told(heard) == [("a", None, 0), ("b", None, 0), ("a", 0, 1), ("b", 0, None)]
        late: list[Delta] = []
        informer.add_handler(late.append)
        assert told(late) == [("a", None, 1)]
        assert informer.sequence == 2

    play(main)


def test_no_handler_sees_half_an_incarnation() -> None:
    async def main(intent: Intent, informer: SharedInformer) -> None:
        seen: list[set[int | None]] = []
        informer.add_handler(lambda delta: seen.append({value_of(item) for item in informer}))
        intent.publish([asset("a"), asset("b")])
        await informer.listed()
        intent.publish([asset("a", 1), asset("b", 1)])
        await settled()
        assert seen == [{0}, {0}, {1}, {1}]

    play(main)


def test_a_handler_that_breaks_is_not_the_trouble_of_others() -> None:
    def break_down(delta: Delta) -> None:
        raise ValueError("no")

    async def main(intent: Intent, informer: SharedInformer) -> None:
        heard: list[Delta] = []
        informer.add_handler(break_down)
        informer.add_handler(heard.append)
        intent.publish([asset("a")])
        await settled()
        assert told(heard) == [("a", None, 0)]

    play(main)


def test_after_a_lost_connection_it_goes_on_where_it_was() -> None:
    async def main(intent: Intent, informer: SharedInformer) -> None:
        heard: list[Delta] = []
        informer.add_handler(heard.append)
        intent.troubles = [TransientError("down"), TransientError("still down")]
        intent.publish([asset("a")])
        await informer.listed()
        intent.troubles = [TransientError("down again")]
        intent.publish([asset("a", 1)])
        await settled()
        intent.publish([asset("a", 2)])
        await settled()
        assert told(heard) == [("a", None, 0), ("a", 0, 1), ("a", 1, 2)]
        assert intent.lists == 3

    play(main)


def test_what_was_pruned_is_listed_again_and_only_what_differs_is_told() -> None:
    async def main(intent: Intent, informer: SharedInformer) -> None:
        heard: list[Delta] = []
        informer.add_handler(heard.append)
        intent.publish([asset("a"), asset("b"), asset("c")])
        await informer.listed()
        intent.troubles = [TransientError("away")]
        intent.publish([asset("a", 1)], ["b"])
        intent.prune()
        await settled()
        intent.wake()
        await settled()
        assert told(heard)[3:] == [("a", 0, 1), ("b", 0, None)]
        assert {item.id for item in informer} == {"a", "c"}

    play(main)


def test_what_nobody_can_mend_by_trying_again_ends_it() -> None:
    async def main() -> None:
        intent = Intent()
        intent.troubles = [StalledError("no such partition")]
        informer = SharedInformer(intent, VirtualClock(), Chance(1))
        with pytest.raises(ExceptionGroup) as caught:
            await informer.run()
        assert caught.group_contains(StalledError, match="no such partition")

    run(main, seed=1)


def test_indexes_follow() -> None:
    async def main(intent: Intent, informer: SharedInformer) -> None:
        informer.add_index("value", lambda item: [str(value_of(item))])
        intent.publish([asset("b"), asset("a"), asset("c", 1)])
        await informer.listed()
        assert [item.id for item in informer.indexed("value", "0")] == ["a", "b"]
        intent.publish([asset("a", 1)], ["b"])
        await settled()
        assert informer.indexed("value", "0") == []
        assert [item.id for item in informer.indexed("value", "1")] == ["a", "c"]
        informer.add_index("first", lambda item: [item.id[0]])
        assert [item.id for item in informer.indexed("first", "c")] == ["c"]

    play(main)


def test_a_resync_tells_of_everything_again() -> None:
    async def main(intent: Intent, informer: SharedInformer) -> None:
        intent.publish([asset("a")])
        await informer.listed()
        heard: list[Delta] = []
        informer.add_handler(heard.append)
        await VirtualClock().sleep(25.0)
        assert told(heard) == [("a", None, 0), ("a", 0, 0), ("a", 0, 0)]

    play(main, resync=10.0)


changes = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.one_of(st.none(), st.integers(0, 2)), max_size=3), max_size=12
)


@given(changes, st.data())
def test_a_delta_queue_adds_up_to_what_has_happened_however_seldom_it_is_read(
    steps: list[dict[str, int | None]], data: st.DataObject
) -> None:
    async def main() -> None:
        informer = SharedInformer(Intent(), VirtualClock(), Chance(1))
        deltas = DeltaQueue()
        informer.add_handler(deltas)
        mirror: dict[str, int | None] = {}

        async def drain() -> None:
            while len(deltas):
                delta = await deltas.take()
                assert mirror.get(delta.id) == value_of(delta.before)
                mirror[delta.id] = value_of(delta.after)

        for number, step in enumerate(steps, 1):
            changed = tuple(asset(id, value) for id, value in step.items() if value is not None)
            gone = tuple(AssetId(id) for id, value in step.items() if value is None)
            await informer.apply(Batch(number, changed, gone))
            if data.draw(st.booleans()):
                await drain()
        await drain()
        present = {id: value for id, value in mirror.items() if value is not None}
        assert present == {item.id: value_of(item) for item in informer}

    run(main, seed=1)
