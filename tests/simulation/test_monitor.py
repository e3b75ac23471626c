"""Monitors over a whole Enforcer: one query for many assets, and nothing between two looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lehr.checks import CHECKS, TYPES
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Status
from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.monitoring.looks import Looks
from lehr.sdk.metrics import MetricSource
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, thing
from tests.world import Plane, World

GOOD, BAD = 0.01, 0.5
MONITOR = make_asset(
    AssetId("errors"),
    "lehr.Monitor",
    {"select": {"types": ["test.Thing"]}, "source": "prometheus", "query": "errors", "at_most": 0.05},
    {},
)


class Source(MetricSource):
    """Answers what `answer` returns for each look, counted from 0."""

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.looks = 0
        self.answer = answer

    async def ask(self, question: Question) -> Sequence[Sample]:
        found = self.answer(self.looks)
        self.looks += 1
        if isinstance(found, MetricError):
            raise found
        return [Sample(found)]


def play(
    folder: Path, answer: Callable[[int], Any], scenario: Callable[[Plane, World, Source], Awaitable[None]]
) -> None:
    async def main() -> None:
        clock, world, source = VirtualClock(), World(), Source(answer)
        looks = Looks({"prometheus": source}, clock)
        checks = [check() for check in CHECKS]
        plane = Plane(folder, world, clock, checks=checks, types=TYPES, metrics=looks)
        await plane.start()
        try:
            await scenario(plane, world, source)
        finally:
            await plane.kill()
            await looks.close()

    run(main, seed=1)


def things(value: str, count: int = 200) -> list[Asset]:
    return [thing(f"t{number}", value) for number in range(count)]


def test_one_query_governs_all_assets_and_releases_them_together(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, source: Source) -> None:
        await plane.publish(*things("1"), MONITOR)
        await asyncio.sleep(95)
        assert not world.values
        assert source.looks == 4  # at 0, 30, 60 and 90 s
        assert plane.condition("t0").reason == Reason.MONITOR_HOLDS
        turns = plane.enforcer.turns
        assert turns < 4 * 200
        await asyncio.sleep(60)
        assert len(world.values) == 200

    play(tmp_path, lambda look: BAD if look < 2 else GOOD, scenario)


def test_a_source_that_is_down_holds_and_its_return_pushes(tmp_path: Path) -> None:
    down = MetricError(Cause.REFUSED, "it answered with status 503")

    async def scenario(plane: Plane, world: World, source: Source) -> None:
        await plane.publish(*things("1", 3), MONITOR)
        await asyncio.sleep(300)
        assert not world.values
        condition = plane.condition("t0")
        assert (condition.status, condition.reason) == (Status.WAITING, Reason.MONITOR_UNKNOWN)
        await asyncio.sleep(200)
        assert len(world.values) == 3

    play(tmp_path, lambda look: down if look < 11 else GOOD, scenario)


def test_an_answer_that_flaps_pushes_nothing(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, source: Source) -> None:
        await plane.publish(*things("1", 3), MONITOR)
        await asyncio.sleep(1500)
        assert not world.values
        assert source.looks > 40

    play(tmp_path, lambda look: BAD if look % 3 == 0 else GOOD, scenario)


def test_a_rollback_passes_while_an_alert_fires(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, source: Source) -> None:
        await plane.publish(thing("a", "1"), MONITOR)
        await plane.settle()
        await plane.publish(thing("a", "2"), MONITOR)
        await plane.settle()
        source.answer = lambda look: BAD
        await plane.publish(thing("a", "2"), thing("b", "1"), MONITOR)
        await asyncio.sleep(40)
        pin = Control(
            id="pin",
            kind=ControlKind.PIN,
            partition=PARTITION,
            selector=Selector(ids=("a",)),
            reason="it fails",
            actor="mira",
            at=plane.clock.now(),
            incarnation=1,
        )
        await plane.control(pin)
        await asyncio.sleep(5)
        assert world.values["a"] == "1"
        await plane.lift(pin)
        await asyncio.sleep(300)
        assert world.values["a"] == "1"  # the way forward is held

    play(tmp_path, lambda look: GOOD, scenario)


def test_what_was_read_is_recorded_with_the_push_that_it_allowed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, source: Source) -> None:
        await plane.publish(thing("a", "1"), MONITOR)
        await plane.settle()
        decisions = [item for _, item in plane.store.records.decisions(PARTITION, AssetId("a"), 9)]
        [pushed] = [item for item in decisions if item.operation is not None]
        [reading] = [reading for verdict in pushed.verdicts for reading in verdict.readings]
        assert (reading.source, reading.question) == ("prometheus", "errors")
        assert (reading.value, reading.bounds, reading.cause) == (GOOD, "at most 0.05", Cause.GOOD)

    play(tmp_path, lambda look: GOOD, scenario)


@pytest.mark.parametrize("days", [1, -1])
def test_a_clock_that_jumps_holds_until_the_next_look(tmp_path: Path, days: int) -> None:
    async def scenario(plane: Plane, world: World, source: Source) -> None:
        await plane.publish(thing("a", "1"), MONITOR)
        await plane.settle()
        assert isinstance(plane.clock, VirtualClock)
        plane.clock.jump(days * 86_400.0)
        await plane.publish(thing("a", "2"), MONITOR)
        await asyncio.sleep(5)
        assert plane.condition("a").reason == Reason.MONITOR_UNKNOWN
        await asyncio.sleep(60)
        assert world.values["a"] == "2"

    play(tmp_path, lambda look: GOOD, scenario)
