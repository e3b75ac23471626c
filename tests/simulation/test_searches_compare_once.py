"""A search for what unblocks an asset compares its production once, however many sets it tries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from lehr.base.clock import Clock
from lehr.checks import CHECKS, TYPES
from lehr.checks.calendar import Calendar, Window
from lehr.dry_run.unblock import unblocking
from lehr.model.asset import AssetId, make_asset
from lehr.model.control import ControlKind
from lehr.model.diff import Diff, Target
from lehr.model.selector import Selector
from lehr.sdk.plugin import Reader, Traits
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import thing
from tests.situation import Situation, control
from tests.world import Plane, World, WorldPlugin


class Counting(WorldPlugin):
    async def diff(self, target: Target, read: Reader) -> Diff:
        assert isinstance(self.world, CountedWorld)
        self.world.compared[target.id] += 1
        return await super().diff(target, read)


class CountedWorld(World):
    """Counts comparisons by asset."""

    def __init__(self) -> None:
        super().__init__()
        self.compared: Counter[str] = Counter()

    def plugin(self, clock: Clock, traits: Traits | None = None) -> WorldPlugin:
        return Counting(self, clock, traits)


def test_production_is_compared_once_for_all_sets(tmp_path: Path) -> None:
    async def main() -> None:
        clock, world = VirtualClock(), CountedWorld()
        plane = Plane(tmp_path, world, clock, checks=[check() for check in CHECKS], types=TYPES)
        await plane.start()
        await plane.publish(thing("a", "1"))
        await plane.settle()
        for kind, selector in ((ControlKind.FREEZE, "all"), (ControlKind.FREEZE, "a")):
            await plane.control(control(kind, selector, clock.now()))
        hours = (Window(("sat",), "03:00", "04:00"),)
        closed = Calendar(Selector(ids=(AssetId("a"),)), "UTC", hours, override=True)
        await plane.publish(
            thing("a", "2", destroys=True), make_asset(AssetId("hours"), "lehr.Calendar", closed, {})
        )
        await clock.sleep(45)
        await plane.committer.flush()
        world.compared.clear()
        found = await unblocking(Situation(plane, world, clock).what_if(AssetId("a")))
        assert found.then is not None
        assert len(found.then.commands) == 3
        assert found.sets > 10
        assert world.compared == {"a": 1}
        await plane.kill()

    run(main, seed=1)
