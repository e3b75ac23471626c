"""What random histories and a hostile reader once found in the Enforcer, each as its shortest history."""

from __future__ import annotations

from pathlib import Path

from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, Plane, World, thing
from tests.simulation.playing import control, play


def test_what_waits_for_approval_is_recorded_as_it_is_now(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1", destroys=True))
        await clock.sleep(5)
        await plane.publish(thing("a", "2", destroys=True))
        await clock.sleep(5)
        [(_, decision), *_] = plane.store.records.decisions(PARTITION, AssetId("a"), 1)
        assert decision.diff is not None
        assert decision.diff.changes[0].intended == "2"
        await plane.control(control(ControlKind.APPROVAL, "a", clock, diff_digest=decision.diff.digest()))
        await plane.settle(60.0)
        assert world.values == {"a": "2"}

    play(tmp_path, scenario)
