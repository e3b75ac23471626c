"""The suite for watches of feeds passes what keeps the contract, and finds whatever breaks a rule of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from msgspec.structs import replace

from lehr.base.errors import TransientError
from lehr.model.asset import AssetId
from lehr.model.feed import ChangeKind, FeedEntry, RecordChange
from lehr.sdk.watch import FeedGoneError
from lehr.testing.virtual import VirtualClock, run
from tests.feed_watch_rules import FEED_RULES, FeedRule, FeedSubject


class Recorded:
    """Keeps the contract. Those below it do not, each in a way of its own."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.entries: list[FeedEntry] = []
        self.first = 0
        self.connection = 0
        self.news = asyncio.Event()

    @property
    def newest(self) -> int:
        return self.first + len(self.entries)

    def decide(self, reasons: dict[str, str]) -> None:
        changes = tuple(RecordChange(ChangeKind.DECISION, AssetId(id), "1") for id in reasons)
        self.entries.append(FeedEntry(self.newest + 1, 0.0, changes))
        self.reasons |= reasons
        self.wake()

    def prune(self) -> None:
        self.first, self.entries = self.newest, []

    def disconnect(self) -> None:
        self.connection += 1
        self.wake()

    def wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()

    async def position(self) -> int:
        return self.newest

    async def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        connection = self.connection
        self.check(after)
        while True:
            while after >= self.newest:
                await self.news.wait()
                if connection != self.connection:
                    raise TransientError("the connection is lost")
            self.check(after)
            entry = self.entries[after - self.first]
            after = entry.position
            for sent in self.sent(entry):
                yield sent

    def check(self, after: int) -> None:
        if not self.first <= after <= self.newest:
            raise FeedGoneError(after, "not known")

    def sent(self, entry: FeedEntry) -> Sequence[FeedEntry]:
        return [entry]


class Loses(Recorded):
    def sent(self, entry: FeedEntry) -> Sequence[FeedEntry]:
        return [] if entry.position % 4 == 0 else [entry]


class Doubles(Recorded):
    def sent(self, entry: FeedEntry) -> Sequence[FeedEntry]:
        return [entry, entry] if entry.position == 3 else [entry]


class Tears(Recorded):
    """Sends the changes of a commit one by one."""

    def sent(self, entry: FeedEntry) -> Sequence[FeedEntry]:
        return [replace(entry, changes=(change,)) for change in entry.changes]


class Swaps(Recorded):
    """Sends the newer one of two entries first."""

    def sent(self, entry: FeedEntry) -> Sequence[FeedEntry]:
        if entry.position % 2:
            return [] if entry.position < self.newest else [entry]
        return [entry, self.entries[entry.position - self.first - 2]]


class AnnouncesEarly(Recorded):
    """Has an entry before its records can be read."""

    def decide(self, reasons: dict[str, str]) -> None:
        before = dict(self.reasons)
        super().decide(reasons)
        late, self.reasons = self.reasons, before
        asyncio.get_running_loop().call_later(0.001, setattr, self, "reasons", late)


class ForgetsWhoComesBack(Recorded):
    """A new connection begins with what comes from then on."""

    async def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        async for entry in super().watch(max(after, self.newest - 1) if self.connection else after):
            yield entry


class SkipsWhatWasPruned(Recorded):
    async def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        async for entry in super().watch(max(after, self.first)):
            yield entry

    def check(self, after: int) -> None:
        if after > self.newest:
            raise FeedGoneError(after, "not known")


class WaitsForTheFuture(Recorded):
    def check(self, after: int) -> None:
        if after < self.first:
            raise FeedGoneError(after, "not known")


class BeginsAhead(Recorded):
    """The position is that of an entry that is still to come."""

    async def position(self) -> int:
        return self.newest + 1

    def check(self, after: int) -> None:
        if not self.first <= after <= self.newest + 1:
            raise FeedGoneError(after, "not known")


class OneAtATime(Recorded):
    """A slow reader holds all others up."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Lock()

    async def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        async with self.turn:
            async for entry in super().watch(after):
                yield entry


class Ends(Recorded):
    async def watch(self, after: int) -> AsyncIterator[FeedEntry]:
        self.check(after)
        while after < self.newest:
            entry = self.entries[after - self.first]
            after = entry.position
            yield entry


BAD = (
    *(Loses, Doubles, Tears, Swaps, AnnouncesEarly, ForgetsWhoComesBack, SkipsWhatWasPruned),
    *(WaitsForTheFuture, BeginsAhead, OneAtATime, Ends),
)


def play(rule: FeedRule, kind: type[Recorded]) -> None:
    async def main() -> None:
        feed = kind()
        subject = FeedSubject(
            lambda: feed,
            feed.decide,
            lambda: dict(feed.reasons),
            feed.prune,
            feed.disconnect,
            clock=VirtualClock(),
        )
        await rule(subject)

    run(main, seed=1)


def broken(kind: type[Recorded]) -> set[str]:
    found = set()
    for rule in FEED_RULES:
        try:
            play(rule, kind)
        except AssertionError as error:
            found.add(str(error).partition(":")[0])
    return found


@pytest.mark.parametrize("rule", FEED_RULES, ids=lambda rule: str(rule.__name__))
def test_what_keeps_the_contract_passes(rule: FeedRule) -> None:
    play(rule, Recorded)


@pytest.mark.parametrize("kind", BAD, ids=lambda kind: str(kind.__name__))
def test_what_breaks_a_rule_is_found(kind: type[Recorded]) -> None:
    assert broken(kind)


def test_there_is_a_bad_one_for_each_rule() -> None:
    assert set().union(*map(broken, BAD)) == {rule.__name__ for rule in FEED_RULES}
