"""The rules of `lehr.sdk.watch`, for anything that can be watched.

A test makes a fresh `Subject` for each rule and runs it:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule, tmp_path):
        asyncio.run(rule(subject(tmp_path)))
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from lehr.base.clock import Clock, SystemClock
from lehr.base.errors import TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.sdk.watch import Batch, ListAgainError, Watchable
from lehr.testing.conformance.rules import Rules, hold, raises
from lehr.testing.sim.dice import Dice

TYPE = "test.Thing"

Assets = dict[AssetId, Asset]


@dataclass(frozen=True)
class Subject:
    """Intent in which nothing was published yet, and how to change it.

    Attributes:
        open: opens what is watched; called again, as another reader does.
        publish: publishes the next incarnation: assets that are new or differ, ids that go.
        prune: forgets all incarnations but the newest.
        disconnect: breaks every connection, as a server that restarts does.
        patience: seconds after which a batch that did not come is missing.
        rounds: incarnations of a random history.
    """

    open: Callable[[], Watchable]
    publish: Callable[[Sequence[Asset], Sequence[AssetId]], None]
    prune: Callable[[], None]
    disconnect: Callable[[], None] = lambda: None
    patience: float = 10.0
    rounds: int = 60
    clock: Clock = field(default_factory=SystemClock)


Rule = Callable[[Subject], Coroutine[Any, Any, None]]


def asset(id: str, value: int = 0) -> Asset:
    """An asset to publish."""
    return make_asset(AssetId(id), TYPE, {"value": value}, {})


RULES: Rules[Rule] = Rules()


@RULES
async def a_listing_is_whole(subject: Subject) -> None:
    """Nothing before the first incarnation; then all of the newest, and its number."""
    listing = await subject.open().list()
    hold((listing.sequence, list(listing.assets)) == (0, []), "before the first incarnation there is nothing")
    subject.publish([asset("a"), asset("b")], [])
    subject.publish([asset("b", 1)], [AssetId("a")])
    listing = await subject.open().list()
    hold(listing.sequence == 2, f"the newest incarnation is 2, not {listing.sequence}")
    hold(list(listing.assets) == [asset("b", 1)], "a listing is the newest incarnation")


@RULES
async def batches_are_the_incarnations_in_order(subject: Subject) -> None:
    """From any place, each later incarnation arrives once, whole; future ones included."""
    subject.publish([asset("a"), asset("b")], [])
    for value in range(1, 5):
        subject.publish([asset("a", value), asset(f"new-{value}")], [])
    for after in range(5):
        async with _watching(subject, after) as batches:
            for sequence in range(after + 1, 6):
                found = await _next(subject, batches)
                hold(found.sequence == sequence, f"after {after} comes {sequence}, not {found.sequence}")
                ids = {item.id for item in found.changed}
                expected = {"a", "b"} if sequence == 1 else {"a", f"new-{sequence - 1}"}
                hold(ids == expected, f"incarnation {sequence} changes {expected}, not {ids}")
    async with _watching(subject, 5) as batches:
        coming = asyncio.create_task(_next(subject, batches))
        await subject.clock.sleep(0)
        subject.publish([], [AssetId("b")])
        found = await coming
        hold((found.sequence, found.gone) == (6, ("b",)), f"removed assets are reported as gone, not {found}")


@RULES
async def a_watcher_does_not_wait_for_another(subject: Subject) -> None:
    """A watcher that does not read delays no other, and has everything when it does."""
    async with _watching(subject, 0) as slow, _watching(subject, 0) as quick:
        for sequence in range(1, 30):
            subject.publish([asset("a", sequence)], [])
            hold((await _next(subject, quick)).sequence == sequence, "the quick one has each at once")
        for sequence in range(1, 30):
            hold((await _next(subject, slow)).sequence == sequence, "the slow one has each in the end")


@RULES
async def what_was_pruned_has_to_be_listed_again(subject: Subject) -> None:
    """A watcher at an incarnation that is not kept gets an error, and never an empty answer."""
    for value in range(5):
        subject.publish([asset("a", value)], [])
    subject.prune()
    async with _watching(subject, 1) as batches:
        with raises(ListAgainError, "changes after a pruned incarnation are not known"):
            await _next(subject, batches)
    async with _watching(subject, 5) as batches:
        subject.publish([asset("a", 9)], [])
        hold((await _next(subject, batches)).sequence == 6, "a reader at the newest continues")


@RULES
async def a_future_that_never_was_has_to_be_listed_again(subject: Subject) -> None:
    """A watcher ahead of the newest incarnation has watched another state."""
    subject.publish([asset("a")], [])
    async with _watching(subject, 7) as batches:
        with raises(ListAgainError, "incarnation 7 never was, so nothing follows it"):
            await _next(subject, batches)


@RULES
async def whatever_happens_a_reader_has_what_is_there(subject: Subject) -> None:
    """Random incarnations, lost connections, pruning, readers that pause: each change once and in order."""
    for seed in range(3):
        await _random_history(subject, Dice(seed))


async def _random_history(subject: Subject, dice: Dice) -> None:
    before = await subject.open().list()
    present = {item.id: item for item in before.assets}
    history = {before.sequence: dict(present)}
    readers = [_Reader(subject, Dice(dice.number(0, 10**9))) for _number in range(4)]
    tasks = [asyncio.create_task(reader.run(history)) for reader in readers]
    sequence = before.sequence
    try:
        for _round in range(subject.rounds):
            changed, gone = _edit(present, dice)
            subject.publish(changed, gone)
            sequence += 1
            present.update((item.id, item) for item in changed)
            for id in gone:
                del present[id]
            history[sequence] = dict(present)
            if dice.happens(0.1):
                subject.disconnect()
            if dice.happens(0.05):
                subject.prune()
            if dice.happens(0.5):
                await subject.clock.sleep(dice.seconds(0.0, 0.02))
        async with asyncio.timeout(subject.patience):
            while any(reader.sequence < sequence for reader in readers):
                for task in filter(asyncio.Task.done, tasks):
                    task.result()
                await subject.clock.sleep(0.01)
    except TimeoutError:
        places = [reader.sequence for reader in readers]
        raise AssertionError(f"readers are at {places}, and {sequence} was published") from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled():
            task.result()


def _edit(present: Assets, dice: Dice) -> tuple[list[Asset], list[AssetId]]:
    gone = [id for id in sorted(present) if dice.happens(0.1)]
    ids = [AssetId(f"a{dice.number(0, 11)}") for _ in range(dice.number(1, 3))]
    changed = [asset(id, dice.number(0, 10**9)) for id in dict.fromkeys(ids) if id not in gone]
    return changed, gone


class _Reader:
    """Has what it received, and compares it with that incarnation."""

    def __init__(self, subject: Subject, dice: Dice) -> None:
        self._subject = subject
        self._dice = dice
        self.assets: Assets = {}
        self.sequence = -1

    async def run(self, history: dict[int, Assets]) -> None:
        while True:
            with contextlib.suppress(ListAgainError):
                await self._follow(history)
            self.sequence = -1

    async def _follow(self, history: dict[int, Assets]) -> None:
        while True:
            try:
                if self.sequence < 0:
                    listing = await self._subject.open().list()
                    self.assets = {item.id: item for item in listing.assets}
                    self.sequence = listing.sequence
                    self._compare(history)
                async for batch in self._subject.open().watch(self.sequence):
                    self._take(batch)
                    self._compare(history)
                    if self._dice.happens(0.1):
                        await self._subject.clock.sleep(self._dice.seconds(0.0, 0.1))
                    if self._dice.happens(0.05):
                        break
            except ListAgainError:
                raise
            except TransientError:
                pass
            await self._subject.clock.sleep(0.01)

    def _take(self, batch: Batch) -> None:
        if batch.changed or batch.gone or batch.sequence != self.sequence:
            hold(batch.sequence == self.sequence + 1, f"{batch.sequence} does not follow {self.sequence}")
        self.sequence = batch.sequence
        self.assets.update((item.id, item) for item in batch.changed)
        for id in batch.gone:
            hold(id in self.assets, f"{id} is reported as gone, but was not there")
            del self.assets[id]

    def _compare(self, history: dict[int, Assets]) -> None:
        if self.sequence in history:  # published just now, perhaps, and not yet recorded here
            hold(self.assets == history[self.sequence], f"a reader has what incarnation {self.sequence} has")


@contextlib.asynccontextmanager
async def _watching(subject: Subject, after: int) -> AsyncIterator[AsyncIterator[Batch]]:
    async with contextlib.aclosing(subject.open().watch(after)) as batches:  # type: ignore[type-var]
        yield batches


async def _next(subject: Subject, batches: AsyncIterator[Batch]) -> Batch:
    """The next batch that is more than a sign of life."""
    async with asyncio.timeout(subject.patience):
        async for batch in batches:
            if batch.changed or batch.gone:
                return batch
    raise AssertionError("a watch does not end on its own")
