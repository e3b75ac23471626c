"""The suite for watches passes what keeps the contract, and finds whatever breaks a rule of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from lehr.base.errors import TransientError
from lehr.model.asset import Asset, AssetId
from lehr.sdk.watch import Batch, ListAgainError, Listing
from lehr.testing.virtual import VirtualClock, run
from tests.watch_rules import RULES, Rule, Subject


class Intent:
    """Keeps the contract. Those below it do not, each in a way of its own."""

    def __init__(self) -> None:
        self.assets: dict[AssetId, Asset] = {}
        self.batches: list[Batch] = []
        self.first = 0
        self.connection = 0
        self.news = asyncio.Event()

    @property
    def sequence(self) -> int:
        return self.first + len(self.batches)

    def publish(self, changed: Sequence[Asset], gone: Sequence[AssetId]) -> None:
        self.batches.append(Batch(self.sequence + 1, tuple(changed), tuple(gone)))
        self.assets.update((item.id, item) for item in changed)
        for id in gone:
            del self.assets[id]
        self.wake()

    def prune(self) -> None:
        self.first, self.batches = self.sequence, []

    def disconnect(self) -> None:
        self.connection += 1
        self.wake()

    def wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()

    async def list(self) -> Listing:
        return Listing(self.sequence, [self.assets[id] for id in sorted(self.assets)])

    async def watch(self, after: int) -> AsyncIterator[Batch]:
        connection = self.connection
        self.check(after)
        while True:
            while after >= self.sequence:
                await self.news.wait()
                if connection != self.connection:
                    raise TransientError("the connection is lost")
            self.check(after)
            batch = self.batches[after - self.first]
            after = batch.sequence
            for told in self.told(batch):
                yield told

    def check(self, after: int) -> None:
        if not self.first <= after <= self.sequence:
            raise ListAgainError(after, "not known")

    def told(self, batch: Batch) -> Sequence[Batch]:
        return [batch]


class Loses(Intent):
    def told(self, batch: Batch) -> Sequence[Batch]:
        return [] if batch.sequence % 4 == 0 else [batch]


class Doubles(Intent):
    def told(self, batch: Batch) -> Sequence[Batch]:
        return [batch, batch] if batch.sequence == 3 else [batch]


class Tears(Intent):
    """Tells an incarnation in two halves."""

    def told(self, batch: Batch) -> Sequence[Batch]:
        if len(batch.changed) < 2:
            return [batch]
        return [
            Batch(batch.sequence, batch.changed[:1]),
            Batch(batch.sequence, batch.changed[1:], batch.gone),
        ]


class ForgetsWhatGoes(Intent):
    def told(self, batch: Batch) -> Sequence[Batch]:
        return [Batch(batch.sequence, batch.changed)]


class TellsOldContent(Intent):
    def told(self, batch: Batch) -> Sequence[Batch]:
        before = self.batches[max(0, batch.sequence - self.first - 2)]
        old = {item.id: item for item in before.changed}
        return [Batch(batch.sequence, tuple(old.get(item.id, item) for item in batch.changed), batch.gone)]


class SkipsWhatWasPruned(Intent):
    async def watch(self, after: int) -> AsyncIterator[Batch]:
        async for batch in super().watch(max(after, self.first)):
            yield batch

    def check(self, after: int) -> None:
        if after > self.sequence:
            raise ListAgainError(after, "not known")


class WaitsForTheFuture(Intent):
    def check(self, after: int) -> None:
        if after < self.first:
            raise ListAgainError(after, "not known")


class ListsThePast(Intent):
    async def list(self) -> Listing:
        listing = await super().list()
        return Listing(max(0, listing.sequence - 1), listing.assets)


class ListsAPart(Intent):
    async def list(self) -> Listing:
        listing = await super().list()
        return Listing(listing.sequence, list(listing.assets)[1:])


class OneAtATime(Intent):
    """A slow reader holds all others up."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Lock()

    async def watch(self, after: int) -> AsyncIterator[Batch]:
        async with self.turn:
            async for batch in super().watch(after):
                yield batch


class Ends(Intent):
    async def watch(self, after: int) -> AsyncIterator[Batch]:
        self.check(after)
        while after < self.sequence:
            batch = self.batches[after - self.first]
            after = batch.sequence
            yield batch


BAD = (
    *(Loses, Doubles, Tears, ForgetsWhatGoes, TellsOldContent, SkipsWhatWasPruned, WaitsForTheFuture),
    *(ListsThePast, ListsAPart, OneAtATime, Ends),
)


def play(rule: Rule, kind: type[Intent]) -> None:
    async def main() -> None:
        intent = kind()
        await rule(
            Subject(lambda: intent, intent.publish, intent.prune, intent.disconnect, clock=VirtualClock())
        )

    run(main, seed=1)


def broken(kind: type[Intent]) -> set[str]:
    found = set()
    for rule in RULES:
        try:
            play(rule, kind)
        except AssertionError as error:
            found.add(str(error).partition(":")[0])
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_what_keeps_the_contract_passes(rule: Rule) -> None:
    play(rule, Intent)


@pytest.mark.parametrize("kind", BAD, ids=lambda kind: str(kind.__name__))
def test_what_breaks_a_rule_is_found(kind: type[Intent]) -> None:
    assert broken(kind)


def test_there_is_a_bad_one_for_each_rule() -> None:
    assert set().union(*map(broken, BAD)) == {rule.__name__ for rule in RULES}
