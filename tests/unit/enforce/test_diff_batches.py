"""Routine diffs that are wanted together are one call of the plugin; what it leaves out is asked alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest

from lehr.base.errors import LehrError, StalledError
from lehr.enforce.diff_batches import MOST
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.lane import Lane
from lehr.enforce.state import Diffed, DiffFailed
from lehr.model.asset import Asset
from lehr.model.diff import Change, Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.testing.plugins import target_of
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, registry, thing

Requests = Sequence[tuple[Target, Reader]]
Answers = AsyncIterator[tuple[int, Diff | LehrError]]
TRAITS = Traits(turns=4, pushes=4, diff_timeout=10.0)


class NoIntent:
    """An intent in which there is nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def found(target: Target, by: str) -> Diff:
    return Diff((Change(by, None, str(target.id)),))


class Plugin(AssetPlugin):
    """Answers as `many` does, and one by one. Says in each diff how it was asked, and for which asset."""

    types = ("test.Thing",)
    traits = TRAITS

    def __init__(self, many: Callable[[Requests], Answers]) -> None:
        self._many = many
        self.batches: list[int] = []
        self.alone: list[str] = []
        self.hangs: set[str] = set()

    async def diff(self, target: Target, read: Reader) -> Diff:
        self.alone.append(str(target.id))
        if str(target.id) in self.hangs:
            await asyncio.Event().wait()
        return found(target, "alone")

    async def diff_many(self, requests: Requests) -> Answers:
        self.batches.append(len(requests))
        async for answer in self._many(requests):
            yield answer

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return DONE


async def backwards(requests: Requests) -> Answers:
    for index in reversed(range(len(requests))):
        yield index, found(requests[index][0], "batch")


async def at_once(requests: Requests) -> Answers:
    for index, (target, _read) in enumerate(requests):
        yield index, found(target, "batch")
        yield index, found(target, "twice")


async def every_second(requests: Requests) -> Answers:
    for index, (target, _read) in enumerate(requests):
        if index % 2:
            yield index, found(target, "batch")


async def errors(requests: Requests) -> Answers:
    for index, (target, _read) in enumerate(requests):
        yield index, StalledError(f"{target.id} is odd", code="X101")


async def breaks(requests: Requests) -> Answers:
    yield 0, found(requests[0][0], "batch")
    raise RuntimeError("no")


async def raises(requests: Requests) -> Answers:
    yield 0, found(requests[0][0], "batch")
    raise StalledError("production is away")


async def cancels_itself(requests: Requests) -> Answers:
    yield 0, found(requests[0][0], "batch")
    raise asyncio.CancelledError


async def out_of_range(requests: Requests) -> Answers:
    yield 0, found(requests[0][0], "batch")
    yield -1, found(requests[0][0], "batch")


async def no_pair(requests: Requests) -> Answers:
    yield 0, found(requests[0][0], "batch")
    yield None  # type: ignore[misc]


async def falls_silent(requests: Requests) -> Answers:
    for index, (target, _read) in enumerate(requests[:2]):
        await asyncio.sleep(6.0)  # each in time, both together not
        yield index, found(target, "batch")
    await asyncio.Event().wait()


async def falls_silent_for_good(requests: Requests) -> Answers:
    yield 0, found(requests[0][0], "batch")
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(1_000.0)


class Played:
    """A lane whose turns ask for diffs of assets `a0`, `a1` ...: what each was answered, and when."""

    def __init__(self, plugin: Plugin, *, routine: bool = True, before: float = 0.0) -> None:
        self.plugin = plugin
        self.found: dict[str, Diffed | DiffFailed] = {}
        self.at: dict[str, float] = {}
        self._routine = routine
        self._before = before
        self._clock = VirtualClock()
        self.lane: Lane[Asset] = Lane(plugin, self._clock, self._turn)

    async def _turn(self, item: Asset) -> None:
        if self._before:
            await self._clock.sleep(self._before)
        read = RecordingReader(cast(Any, NoIntent()), registry(), PARTITION, 1)
        id = str(item.id)
        self.found[id] = await self.lane.diff(target_of(item), item, read, routine=self._routine)
        self.at[id] = self._clock.monotonic()

    async def play(self, count: int) -> None:
        for number in range(count):
            self.lane.add(thing(f"a{number}", "1"), urgent=not self._routine)
        await self._clock.sleep(100.0)

    def how(self) -> dict[str, str]:
        """How each asset was compared; all are about themselves."""
        answers: dict[str, str] = {}
        for id, answer in self.found.items():
            assert isinstance(answer, Diffed), answer
            [change] = answer.diff.changes
            assert change.observed == id
            answers[id] = change.path
        return answers


def play(
    many: Callable[[Requests], Answers],
    count: int = 4,
    *,
    routine: bool = True,
    before: float = 0.0,
    hangs: str = "",
) -> Played:
    async def main() -> Played:
        plugin = Plugin(many)
        plugin.hangs = {hangs}
        played = Played(plugin, routine=routine, before=before)
        await played.play(count)
        await played.lane.stop()
        return played

    return run(main, seed=1)


@pytest.mark.parametrize("many", [backwards, at_once])
@pytest.mark.parametrize("before", [0.0, 1.0])
def test_diffs_wanted_together_are_one_call(many: Callable[[Requests], Answers], before: float) -> None:
    played = play(many, before=before)
    assert played.how() == dict.fromkeys(("a0", "a1", "a2", "a3"), "batch")
    assert played.plugin.batches == [4]
    assert played.plugin.alone == []


def test_turns_that_are_not_routine_do_not_wait_for_others() -> None:
    played = play(backwards, routine=False)
    assert set(played.how().values()) == {"alone"}
    assert played.plugin.batches == []


def test_a_single_diff_is_not_a_batch() -> None:
    played = play(backwards, 1)
    assert played.how() == {"a0": "alone"}
    assert played.plugin.batches == []


def test_what_is_left_out_is_asked_for_alone() -> None:
    played = play(every_second)
    assert played.how() == {"a0": "alone", "a1": "batch", "a2": "alone", "a3": "batch"}


def test_an_error_is_of_its_own_asset() -> None:
    played = play(errors)
    for id, answer in played.found.items():
        assert isinstance(answer, DiffFailed)
        assert answer.stalled
        assert answer.message.startswith(id)


@pytest.mark.parametrize("many", [breaks, raises, cancels_itself, out_of_range, no_pair])
def test_of_a_call_that_breaks_the_rest_is_asked_for_alone(many: Callable[[Requests], Answers]) -> None:
    played = play(many)
    assert played.how() == {"a0": "batch", "a1": "alone", "a2": "alone", "a3": "alone"}


def test_the_timeout_counts_from_the_last_answer() -> None:
    played = play(falls_silent)
    assert played.how() == {"a0": "batch", "a1": "batch", "a2": "alone", "a3": "alone"}
    assert played.at == {"a0": 6.0, "a1": 12.0, "a2": 22.0, "a3": 22.0}


def test_what_hangs_is_the_trouble_of_one_asset() -> None:
    played = play(falls_silent_for_good, hangs="a2")
    assert isinstance(played.found.pop("a2"), DiffFailed)
    assert played.how() == {"a0": "batch", "a1": "alone", "a3": "alone"}


def test_a_batch_is_bounded() -> None:
    async def main() -> list[int]:
        plugin = Plugin(at_once)
        plugin.traits = Traits(turns=MOST, pushes=1)  # type: ignore[misc]
        played = Played(plugin)
        await played.play(MOST + 50)
        await played.lane.stop()
        assert set(played.how().values()) == {"batch"}
        return plugin.batches

    assert run(main, seed=1) == [MOST, 50]


def test_a_lane_that_stops_leaves_no_call_behind() -> None:
    ended = []

    async def endless(requests: Requests) -> Answers:
        try:
            await asyncio.Event().wait()
            yield 0, StalledError("never")
        finally:
            ended.append(True)

    async def main() -> None:
        played = Played(Plugin(endless))
        for number in range(3):
            played.lane.add(thing(f"a{number}", "1"), urgent=False)
        await asyncio.sleep(1.0)
        await played.lane.stop()
        assert played.found == {}

    run(main, seed=1)
    assert ended == [True]


def test_a_lane_that_stops_while_a_worker_is_starting_comes_to_rest() -> None:
    """That worker never begins, so what waits for its start must not wait for ever, and turn the loop."""

    async def scenario() -> int:
        plugin = Plugin(at_once)
        asset = thing("a", "1")

        async def turn(_item: int) -> None:
            read = RecordingReader(cast(Any, NoIntent()), registry(), PARTITION, 1)
            await lane.diff(target_of(asset), asset, read, routine=True)

        lane: Lane[int] = Lane(plugin, VirtualClock(), turn)
        flushes, flush = 0, lane._flush

        def counted() -> None:
            nonlocal flushes
            flushes += 1
            flush()

        lane._flush = counted  # type: ignore[method-assign]
        for item in range(2):
            lane.add(item, urgent=False)
        await asyncio.sleep(0)  # the first worker waits for a batch, and has just made the second one
        await lane.stop()
        for _ in range(20):
            await asyncio.sleep(0)
        return flushes

    assert run(scenario, seed=1) <= 3
