"""Looking things up in the store without waiting for it on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from lehr.base.blocking import Blocking, Inline
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.base.errors import NeedError, TransientError
from lehr.enforce.lookups import Lookups
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.damage import DamagedError
from lehr.model.decision import Reservation
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Span
from lehr.testing.slow import Slow
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, registry, thing

T = TypeVar("T")
A, B = thing("a", "1"), thing("b", "2")


class FixedIntent:
    """Incarnation 1 holds `assets`, every other one nothing. Counts what is asked for."""

    def __init__(self, *assets: Asset) -> None:
        self.asked: Counter[str] = Counter()
        self._assets = {asset.id: asset for asset in assets}

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        self.asked[key.id] += 1
        return self._assets.get(key.id) if sequence == 1 else None

    def assets(self, partition: Partition, sequence: int, types: object, span: Span) -> Iterator[Asset]:
        self.asked["many"] += 1
        return (asset for id, asset in self._assets.items() if span.ids is None or id in span.ids)

    def last(self, key: AssetKey, sequence: int | None = None) -> tuple[Asset, int] | None:
        self.asked["last"] += 1
        asset = self._assets.get(key.id)
        if asset is not None and asset.digest == B.digest:
            raise DamagedError("asset b", "asset_version")
        return None if asset is None else (asset, 1)

    def __getattr__(self, name: str) -> None:
        return None


def lookups(intent: object, size: int = 16_384, reading: Blocking | None = None) -> Lookups:
    """Over a store with this intent."""
    records = SimpleNamespace(usage=lambda reservation, now: (int(now), None))
    store: Any = SimpleNamespace(intent=intent, records=records)
    clock = VirtualClock() if isinstance(reading, Slow) else SystemClock()
    return Lookups(Runtime(PARTITION, store, registry(), clock, Chance(1), reading or Inline()), size)


def key(id: str) -> AssetKey:
    return AssetKey(PARTITION, AssetId(id))


def asking(intent: object, look: Callable[[Lookups], T], *delays: tuple[float, float]) -> T:
    """What `look` finds by reads that take these delays."""
    left = iter(delays)

    async def main() -> T:
        found = lookups(intent, reading=Slow(VirtualClock(), lambda: next(left, (0.0, 0.0))))
        return await found.run(lambda: look(found))

    return run(main, seed=1)


def test_what_is_not_at_hand_is_read_and_asked_for_again() -> None:
    intent = FixedIntent(A)
    looks: list[str] = []

    def look(at: Lookups) -> tuple[Asset | None, object]:
        looks.append("begins")
        found = at.asset(key("a"), 1), at.usage(Reservation("rate", 1), 7.0)
        looks.append("ends")
        return found

    assert asking(intent, look, (1.0, 1.0)) == (A, (7, None))
    assert looks == ["begins", "begins", "begins", "ends"], "two reads, each missed once"
    assert intent.asked == {"a": 1}


def test_outside_of_a_run_nothing_is_read() -> None:
    async def main() -> None:
        found = lookups(FixedIntent(A), reading=Slow(VirtualClock()))
        with pytest.raises(NeedError):
            found.asset(key("a"), 1)

    run(main, seed=1)


def test_an_error_of_a_read_is_raised_where_it_is_looked_up() -> None:
    def look(at: Lookups) -> str:
        try:
            at.last(key("b"))
        except DamagedError:
            return "damaged"
        return "whole"

    assert asking(FixedIntent(A, B), look) == "damaged"
    last = asking(FixedIntent(A, B), lambda at: at.last_known(key("b"), "test.Thing"))
    assert last is not None
    assert (last[0].id, last[1]) == ("b", 0)


def test_a_store_that_hangs_is_given_up_and_asked_again_later() -> None:
    class Pool(Slow):
        """Two threads, of which the first never comes back."""

        async def run(self, call: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
            if self._first:
                self._first = False
                await asyncio.Event().wait()
            return call(*args, **kwargs)

        _first = True

    async def main() -> list[float]:
        clock = VirtualClock()
        found = lookups(FixedIntent(A), reading=Pool(clock))
        times = []
        for pause in (0.0, 0.0, 2.0):
            await clock.sleep(pause)
            began = clock.monotonic()
            with contextlib.suppress(TransientError):
                assert await found.run(lambda: found.asset(key("a"), 1)) == A
            times.append(clock.monotonic() - began)
        return times

    assert run(main, seed=1) == [5.0, 0.0, 0.0], "it waits once, fails at once, and then finds"


def test_many_that_are_wanted_next_are_read_at_once() -> None:
    things = [thing(f"t{number}", "1") for number in range(40)]
    intent = FixedIntent(*things)
    ids = [item.id for item in things]

    async def main() -> list[Asset | None]:
        found = lookups(intent, reading=Slow(VirtualClock(), lambda: (0.1, 0.0)))
        found.read_ahead(1, [*ids, AssetId("gone")])
        assert not found.may_read_ahead(range(40)), "one read is under way"
        await found.coming[ids[5]]
        assert not found.coming
        found.read_ahead(1, ids[5:])
        assert not found.coming, "all are known"
        return [await found.run(lambda id=id: found.asset(key(id), 1)) for id in [*ids, "gone"]]  # type: ignore[misc]

    assert run(main, seed=1) == [*things, None]
    assert intent.asked == {"many": 1}


def test_each_upcoming_turn_is_looked_at_few_times() -> None:
    things = [make_asset(AssetId(f"t{number:04}"), "sample.Policy", {}, {}) for number in range(4000)]
    ids = [thing.id for thing in things]
    looked_at = 0

    def upcoming(turn: int) -> Iterator[AssetId]:
        nonlocal looked_at
        for id in ids[turn:]:
            looked_at += 1
            yield id

    async def main() -> None:
        found = lookups(FixedIntent(*things), reading=Slow(VirtualClock(), lambda: (0.1, 0.0)))
        for turn in range(len(ids)):
            if found.may_read_ahead(range(len(ids) - turn)):
                found.read_ahead(1, upcoming(turn))
            if (coming := found.coming.get(ids[turn])) is not None:
                await coming
            found.asset(key(ids[turn]), 1)
            await asyncio.sleep(0.01)  # the turn itself

    run(main, seed=1)
    assert looked_at < 3 * len(ids)


def test_few_are_read_one_by_one() -> None:
    intent = FixedIntent(A, B)

    async def main() -> None:
        found = lookups(intent, reading=Slow(VirtualClock()))
        assert not found.may_read_ahead(range(2))
        found.read_ahead(1, [A.id, B.id])
        assert not found.coming

    run(main, seed=1)
    assert not intent.asked


def test_what_cannot_be_read_ahead_is_read_when_it_is_wanted() -> None:
    class Damaged(FixedIntent):
        def assets(self, partition: Partition, sequence: int, types: object, span: Span) -> Iterator[Asset]:
            raise DamagedError("asset b", "asset_version")

    intent = Damaged(A)
    ids: Iterable[AssetId] = [AssetId(f"t{number}") for number in range(40)]

    async def main() -> Asset | None:
        found = lookups(intent, reading=Slow(VirtualClock()))
        found.read_ahead(1, [A.id, *ids])
        await found.coming[A.id]
        return await found.run(lambda: found.asset(key("a"), 1))

    assert run(main, seed=1) == A


def test_what_an_incarnation_held_is_asked_for_once_within_the_size() -> None:
    intent = FixedIntent(A, B)
    remembered = lookups(intent, size=2)
    keys = [AssetKey(PARTITION, AssetId(id)) for id in ("a", "b", "none")]
    for _ in range(3):
        assert [remembered.asset(key, 1) for key in keys[:2]] == [A, B]
    assert intent.asked == {"a": 1, "b": 1}
    assert remembered.asset(keys[2], 1) is None
    assert remembered.asset(keys[2], 1) is None
    assert intent.asked["none"] == 1
    assert remembered.asset(keys[0], 1) == A
    assert intent.asked["a"] == 2, "the oldest was forgotten"
    assert remembered.asset(keys[1], 2) is None, "another incarnation is another question"


class Versions:
    """Each incarnation has an asset `a` of its own; it counts what is asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        self.asked.append(sequence)
        return thing(key.id, str(sequence))

    def __getattr__(self, name: str) -> None:
        return None


def test_what_an_incarnation_did_not_change_is_not_read_again() -> None:
    versions = Versions()
    intent = lookups(versions)
    a, b = AssetKey(PARTITION, A.id), AssetKey(PARTITION, B.id)
    for sequence, changed in ((5, ()), (6, (B.id,)), (7, ()), (8, (A.id,))):
        intent.advance(sequence - 1, sequence, changed)
    found = [intent.asset(b, sequence) for sequence in (5, 6, 7, 8)]
    assert found == [thing("b", value) for value in ("5", "6", "6", "6")]
    assert versions.asked == [5, 6]
    found = [intent.asset(a, sequence) for sequence in (8, 7, 6, 5)]
    assert found == [thing("a", value) for value in ("8", "7", "6", "5")], (
        "when it changed before is forgotten"
    )


def test_of_an_incarnation_that_nobody_told_of_nothing_is_taken_for_unchanged() -> None:
    versions = Versions()
    intent = lookups(versions)
    for before, sequence in ((0, 1), (1, 2), (2, 5), (5, 6)):
        intent.advance(before, sequence, ())  # what changed with 3 may have changed back with 4
    found = [intent.asset(AssetKey(PARTITION, A.id), sequence) for sequence in (2, 3, 4, 5, 6, 7)]
    assert found == [thing("a", value) for value in ("2", "3", "4", "5", "5", "7")]


def test_what_is_told_a_second_time_otherwise_is_not_relied_on() -> None:
    versions = Versions()
    intent = lookups(versions)
    for before, sequence, changed in ((0, 6, ()), (6, 7, (A.id,)), (6, 8, ())):
        intent.advance(before, sequence, changed)
    assert intent.asset(AssetKey(PARTITION, A.id), 8) == thing("a", "8")


def test_no_more_changes_are_remembered_than_assets() -> None:
    versions = Versions()
    intent = lookups(versions, size=2)
    for sequence in range(1, 9):
        intent.advance(sequence - 1, sequence, (AssetId(f"x{sequence}"),))
    assert len(intent._changed_with) <= 2
    key = AssetKey(PARTITION, AssetId("x8"))
    assert intent.asset(key, 8) == thing("x8", "8")
    assert intent.asset(key, 7) == thing("x8", "7")
