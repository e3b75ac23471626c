"""What changes between the looks of a turn and the admission of its push, with the real Enforcer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lehr.model.control import ControlKind
from lehr.model.decision import Verdict
from lehr.model.reason import Reason
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from lehr.sdk.plugin import Traits
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import thing
from tests.simulation.playing import control, play, turned_down
from tests.world import Plane, World, WorldPlugin

LONG = Traits(goals=WorldPlugin.traits.goals, resync=50_000.0)


class Slow(CheckPlugin):
    """Takes its time about the pushes of one asset: it is asked after the order of pushes was checked."""

    name = "slow"

    def __init__(self) -> None:
        self.about = ""

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        if request.asset.id == self.about:
            await asyncio.sleep(10.0)
        return [Verdict(self.name, allow=True)]


def test_what_reads_an_asset_may_come_back_while_its_turndown_is_checked(tmp_path: Path) -> None:
    """Seed 5166 with a rollout policy: a rollback brought back what had been removed."""
    slow = Slow()

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        db, gone = thing("db", "1"), thing("app", "1", turned_down(), reads=["db"])
        await plane.publish(thing("app", "1", reads=["db"]), db)
        await plane.settle()
        await plane.publish(gone, db)
        await plane.settle()
        assert world.values == {"db": "1"}
        slow.about = "db"
        await plane.publish(gone, thing("db", "1", turned_down()))
        await clock.sleep(5)
        await plane.control(control(ControlKind.PIN, "app", clock, incarnation=1))
        await clock.sleep(60)
        assert world.values == {"app": "1+1", "db": "1"}
        assert ("db", "fenced 1") not in world.pushes
        assert plane.condition("db").reason == Reason.STILL_REFERENCED

    play(tmp_path, scenario, traits=LONG, more_checks=(slow,))
