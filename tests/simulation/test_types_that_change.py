"""An id that comes back as another type: what it was leaves first, by its own plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.diff import Change, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.reason import Reason
from lehr.model.types import AssetType
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, THING, thing
from tests.simulation.playing import play, turned_down
from tests.world import Plane, World

OTHER = "test.Other"


class Other(msgspec.Struct, frozen=True):
    """Production of one number."""

    number: int = 0


class Others(AssetPlugin):
    """Serves `test.Other`, and remembers its pushes, and of what types it was asked about pushes."""

    types = (OTHER,)
    traits = Traits(goals=frozenset({Goal.ABSENT}), resync=60.0)

    def __init__(self) -> None:
        self.pushed: list[tuple[str, Goal]] = []
        self.asked: list[str] = []

    async def diff(self, target: Target, read: Reader) -> Diff:
        if (target.type, target.goal) in self.pushed:
            return Diff()
        return Diff((Change("number", read.payload(target.id, Other).number, None),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.pushed.append((target.type, target.goal))
        return DONE

    async def status(self, operation: Operation) -> Progress:
        self.asked.append(operation.type)
        return Progress.ENDED


def other(id: str) -> Asset:
    return make_asset(AssetId(id), OTHER, Other(1), {})


def with_others() -> dict[str, Any]:
    return {"types": [AssetType(OTHER, Other)], "plugins": [Others()]}


@pytest.mark.parametrize("stand", [0.0, 20.0])
def test_a_turndown_goes_on_as_the_type_it_was_asked_for(tmp_path: Path, stand: float) -> None:
    given = with_others()

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("x", "1"))
        await plane.settle()
        await plane.publish(thing("x", "1", turned_down(stand, fence=100)))
        await clock.sleep(stand + 30)
        await plane.publish()
        await clock.sleep(5)
        await plane.publish(other("x"))
        await clock.sleep(5)
        assert world.values == {"x": "fenced 1"}, "the fence stands on"
        assert given["plugins"][0].pushed == [], "what is new waits until then"
        await plane.settle()
        assert world.values == {}
        assert given["plugins"][0].pushed == [(OTHER, Goal.PRESENT)]
        pushes = [(item.type, item.goal) for item in reversed(plane.store.records.operations(PARTITION))]
        assert pushes[-2:] == [(THING, Goal.ABSENT), (OTHER, Goal.PRESENT)]
        ledger = plane.store.records.ledger(AssetKey(PARTITION, AssetId("x")))
        assert ledger is not None
        assert ledger.goal is Goal.PRESENT

    play(tmp_path, scenario, **given)


def test_what_was_let_go_may_come_back_as_another_type(tmp_path: Path) -> None:
    given = with_others()

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 10.0
        await plane.publish(thing("x", "1"))
        await clock.sleep(2)
        await plane.publish()
        await plane.publish(other("x"))
        await plane.settle()
        assert given["plugins"][0].pushed == [(OTHER, Goal.PRESENT)], "also when it was being pushed"
        assert plane.condition("x").reason == Reason.AS_INTENDED

    play(tmp_path, scenario, **given)


def test_what_would_have_taken_the_id_may_be_taken_back(tmp_path: Path) -> None:
    given = with_others()

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("x", "1"))
        await plane.settle()
        await plane.publish(thing("x", "1", turned_down(fence=100)))
        await clock.sleep(30)
        await plane.publish(other("x"))
        await clock.sleep(5)
        await plane.publish(thing("x", "1"))
        await plane.settle()
        assert world.values == {"x": "1"}
        await plane.publish(thing("x", "1", turned_down(fence=100)))
        await clock.sleep(30)
        await plane.publish(other("x"))
        await plane.publish()
        await plane.settle()
        assert world.values == {}
        assert given["plugins"][0].pushed == []

    play(tmp_path, scenario, **given)


def test_a_push_of_the_former_type_is_ended_by_its_own_plugin_after_a_restart(tmp_path: Path) -> None:
    async def before(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 10.0
        await plane.publish(thing("x", "1"))
        await clock.sleep(2)
        await plane.publish()
        await plane.publish(other("x"), tell=False)

    play(tmp_path, before, **with_others())
    given = with_others()

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await clock.sleep(60)
        await plane.settle()
        assert given["plugins"][0].asked == [], "it knows nothing of that push"
        assert given["plugins"][0].pushed == [(OTHER, Goal.PRESENT)]
        assert [item.result for item in plane.store.records.operations(PARTITION)] == [
            Result.DONE,
            Result.FAILED,
        ]

    play(tmp_path, scenario, seed=2, **given)
