"""What has changed does not queue behind what is only looked at again."""

from __future__ import annotations

from pathlib import Path

from lehr.sdk.plugin import Traits
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import thing
from tests.simulation.playing import NEVER, play
from tests.world import Plane, World


def test_new_intent_overtakes_a_sweep_also_for_an_asset_that_the_sweep_has_queued(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        names = [f"t{number:03}" for number in range(200)]
        await plane.publish(*(thing(name, "1") for name in names))
        await plane.settle()
        world.looking = dict.fromkeys(names, 1.0)
        await plane.enforcer.sweep()
        await plane.publish(*(thing(name, "1") for name in names[:-1]), thing(names[-1], "2"))
        await clock.sleep(10)
        assert world.values[names[-1]] == "2"
        await plane.settle()

    play(tmp_path, scenario, traits=Traits(turns=1, pushes=1, resync=NEVER))
