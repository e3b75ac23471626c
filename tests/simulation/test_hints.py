"""A plugin's hint asks for a look at production: any that begins after it answers it."""

from __future__ import annotations

from pathlib import Path

from lehr.enforce.slot import HINT
from lehr.model.asset import AssetId
from lehr.sdk.plugin import Traits
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import thing
from tests.simulation.playing import NEVER, play
from tests.world import Plane, World

A = AssetId("a")


def test_a_hint_during_a_push_is_answered_by_the_look_after_it(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 10.0
        await plane.publish(thing("a", "1"))
        await clock.sleep(5)
        plane.enforcer.wake(A, HINT)
        await plane.settle()
        assert plane.enforcer.turns == 2

    play(tmp_path, scenario, traits=Traits(resync=NEVER))


def test_a_hint_during_a_look_causes_another(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        world.looking["a"] = 10.0
        plane.enforcer.wake(A, HINT)
        await clock.sleep(5)
        turns = plane.enforcer.turns
        plane.enforcer.wake(A, HINT)
        await clock.sleep(20)
        assert plane.enforcer.turns == turns + 1

    play(tmp_path, scenario, traits=Traits(resync=NEVER))


def test_a_hint_takes_no_other_cause_away(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        world.seconds = 10.0
        await plane.publish(thing("a", "1"))
        await clock.sleep(5)
        plane.enforcer.wake(A, "its limit has changed")
        plane.enforcer.wake(A, HINT)
        await plane.settle()
        assert plane.enforcer.turns == 3

    play(tmp_path, scenario, traits=Traits(resync=NEVER))
