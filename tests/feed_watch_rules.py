"""The rules of `lehr.sdk.watch.WatchableFeed`, for any feed that can be watched.

A test makes a fresh `FeedSubject` for each rule and runs it, as with `tests.watch_rules`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from lehr.base.clock import Clock, SystemClock
from lehr.base.errors import TransientError
from lehr.model.feed import ChangeKind, FeedEntry
from lehr.sdk.watch import FeedGoneError, WatchableFeed
from lehr.testing.conformance.rules import Rules, hold, raises
from lehr.testing.sim.dice import Dice


@dataclass(frozen=True)
class FeedSubject:
    """A feed that has no entry yet, and how to write some.

    Attributes:
        open: opens what is watched; called again, as another reader does.
        decide: records decisions in one commit: the reason of each asset's condition, by its id.
        reasons: the reason of each asset's condition as it is now, by its id.
        prune: forgets all entries but the newest.
        disconnect: breaks every connection, as a server that restarts does.
        patience: seconds after which an entry that did not come is missing.
        rounds: commits of a random history.
    """

    open: Callable[[], WatchableFeed]
    decide: Callable[[dict[str, str]], None]
    reasons: Callable[[], dict[str, str]]
    prune: Callable[[], None]
    disconnect: Callable[[], None] = lambda: None
    patience: float = 10.0
    rounds: int = 60
    clock: Clock = field(default_factory=SystemClock)


FeedRule = Callable[[FeedSubject], Coroutine[Any, Any, None]]

FEED_RULES: Rules[FeedRule] = Rules()


@FEED_RULES
async def a_reader_begins_at_the_newest_entry(subject: FeedSubject) -> None:
    """Position 0 before the first entry; then one more for each commit, whatever it has."""
    hold(await subject.open().position() == 0, "before the first commit the position is 0")
    subject.decide({"a": "One"})
    subject.decide({"a": "Two", "b": "One"})
    position = await subject.open().position()
    hold(position == 2, f"after two commits it is 2, not {position}")


@FEED_RULES
async def entries_are_the_commits_in_order(subject: FeedSubject) -> None:
    """From any position, each later entry comes once, whole; future ones included."""
    for number in range(1, 6):
        subject.decide({"a": f"Turn{number}", f"new-{number}": "One"})
    for after in range(6):
        async with _watching(subject, after) as entries:
            for position in range(after + 1, 6):
                found = await _next(subject, entries)
                hold(found.position == position, f"after {after} comes {position}, not {found.position}")
                named = [(change.kind, change.asset) for change in found.changes]
                expected = [(ChangeKind.DECISION, id) for id in ("a", f"new-{position}")]
                hold(named == expected, f"entry {position} has {expected}, not {named}")
            coming = asyncio.create_task(_next(subject, entries))
            await subject.clock.sleep(0)
            hold(not coming.done(), "nothing comes before it was committed")
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
    async with _watching(subject, 5) as entries:
        coming = asyncio.create_task(_next(subject, entries))
        await subject.clock.sleep(0)
        subject.decide({"b": "One"})
        hold((await coming).position == 6, "the next commit is the next entry")


@FEED_RULES
async def what_an_entry_names_can_be_read(subject: FeedSubject) -> None:
    """As soon as the entry arrives; a reader that reads it then has missed nothing."""
    async with _watching(subject, 0) as entries:
        for number in range(1, 20):
            coming = asyncio.create_task(_next(subject, entries))
            await subject.clock.sleep(0)
            subject.decide({f"a{number}": f"Turn{number}"})
            [change] = (await coming).changes
            reason = subject.reasons().get(change.asset)
            hold(reason == f"Turn{number}", f"{change.asset} has reason Turn{number}, not {reason}")


@FEED_RULES
async def a_reader_that_comes_back_continues(subject: FeedSubject) -> None:
    """After the last entry that it has, without any in between and without any twice."""
    seen = 0
    for number in range(1, 31):
        subject.decide({"a": f"Turn{number}"})
        if number % 3:
            continue
        async with _watching(subject, seen) as entries:
            for _time in range(2):
                found = await _next(subject, entries)
                hold(found.position == seen + 1, f"{seen + 1} follows, not {found.position}")
                seen = found.position
        subject.disconnect()
    hold(seen == 20, f"it has read 20 entries, not {seen}")


@FEED_RULES
async def no_watcher_waits_for_another(subject: FeedSubject) -> None:
    """A watcher that does not read delays no other, and has everything when it does."""
    async with _watching(subject, 0) as slow, _watching(subject, 0) as quick:
        for position in range(1, 30):
            subject.decide({"a": f"Turn{position}"})
            hold((await _next(subject, quick)).position == position, "the quick one has each at once")
        for position in range(1, 30):
            hold((await _next(subject, slow)).position == position, "the slow one has each in the end")


@FEED_RULES
async def what_was_pruned_is_never_skipped(subject: FeedSubject) -> None:
    """A watcher before the oldest entry that is kept gets an error, and never those that are left."""
    for number in range(5):
        subject.decide({"a": f"Turn{number}"})
    subject.prune()
    async with _watching(subject, 1) as entries:
        with raises(FeedGoneError, "entries after a pruned one are not known"):
            await _next(subject, entries)
    async with _watching(subject, 5) as entries:
        subject.decide({"a": "Turn9"})
        hold((await _next(subject, entries)).position == 6, "a reader at the newest continues")


@FEED_RULES
async def nothing_follows_what_never_was(subject: FeedSubject) -> None:
    """A watcher ahead of the newest entry has watched another state."""
    subject.decide({"a": "One"})
    async with _watching(subject, 7) as entries:
        with raises(FeedGoneError, "position 7 never was, so nothing follows it"):
            await _next(subject, entries)


@FEED_RULES
async def whatever_happens_a_reader_knows_what_is_recorded(subject: FeedSubject) -> None:
    """Random commits, lost connections, pruning, readers that pause: list, then watch, and miss nothing."""
    for seed in range(3):
        await _random_history(subject, Dice(seed))


async def _random_history(subject: FeedSubject, dice: Dice) -> None:
    readers = [_Reader(subject, Dice(dice.number(0, 10**9))) for _number in range(4)]
    tasks = [asyncio.create_task(reader.run()) for reader in readers]
    try:
        for number in range(subject.rounds):
            ids = {f"a{dice.number(0, 11)}" for _ in range(dice.number(1, 3))}
            subject.decide(dict.fromkeys(sorted(ids), f"Turn{number}"))
            if dice.happens(0.1):
                subject.disconnect()
            if dice.happens(0.05):
                subject.prune()
            if dice.happens(0.5):
                await subject.clock.sleep(dice.seconds(0.0, 0.02))
        expected = subject.reasons()
        async with asyncio.timeout(subject.patience):
            while any(reader.reasons != expected for reader in readers):
                for task in filter(asyncio.Task.done, tasks):
                    task.result()
                await subject.clock.sleep(0.01)
    except TimeoutError:
        missed = [sorted(expected.items() - reader.reasons.items()) for reader in readers]
        raise AssertionError(f"readers have not learned {missed}") from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Reader:
    """Lists all reasons, and then reads those again that the feed names."""

    def __init__(self, subject: FeedSubject, dice: Dice) -> None:
        self._subject = subject
        self._dice = dice
        self.reasons: dict[str, str] = {}
        self._position = -1

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except FeedGoneError:
                self._position = -1
            except TransientError:
                pass
            await self._subject.clock.sleep(0.01)

    async def _follow(self) -> None:
        if self._position < 0:
            self._position = await self._subject.open().position()
            self.reasons = self._subject.reasons()
        async for entry in self._subject.open().watch(self._position):
            if entry.changes:
                hold(
                    entry.position == self._position + 1, f"{entry.position} does not follow {self._position}"
                )
                self._position = entry.position
            recorded = self._subject.reasons()
            self.reasons |= {change.asset: recorded[change.asset] for change in entry.changes}
            if self._dice.happens(0.1):
                await self._subject.clock.sleep(self._dice.seconds(0.0, 0.1))
            if self._dice.happens(0.05):
                return


@contextlib.asynccontextmanager
async def _watching(subject: FeedSubject, after: int) -> AsyncIterator[AsyncIterator[FeedEntry]]:
    async with contextlib.aclosing(subject.open().watch(after)) as entries:  # type: ignore[type-var]
        yield entries


async def _next(subject: FeedSubject, entries: AsyncIterator[FeedEntry]) -> FeedEntry:
    """The next entry that is more than a sign of life."""
    async with asyncio.timeout(subject.patience):
        async for entry in entries:
            if entry.changes:
                return entry
    raise AssertionError("a watch does not end on its own")
