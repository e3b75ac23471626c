"""What changes between the looks of a turn and the admission of its push, with the real Enforcer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lehr.model.addons import DEPENDS_ON, DependsOn
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.control import ControlKind
from lehr.model.decision import Verdict
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.reason import Reason
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.selector import parse_selector
from lehr.model.writes import WriteReleases
from lehr.rollouts.policy import RolloutPolicy
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from lehr.sdk.plugin import Traits
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, thing
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


def test_a_hold_of_what_an_indirect_dependency_reads_may_end_during_the_checks(tmp_path: Path) -> None:
    """Seed 5219 with a rollout policy: the release of what a settled dependency reads was overlooked."""
    slow = Slow()

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        def assets(app: str, read: str) -> list[Asset]:
            return [
                thing("app", app, {DEPENDS_ON: DependsOn(["api"])}),
                thing("api", "1", {DEPENDS_ON: DependsOn(["balancer"])}),
                thing("balancer", "1", reads=["job"]),
                thing("job", read),
            ]

        pin = control(ControlKind.PIN, "job", clock, incarnation=1)
        await plane.publish(*assets("1", "1"))
        await plane.control(pin)
        await plane.publish(*assets("1", "2"))
        await plane.settle(60.0)
        world.order.clear()
        slow.about = "app"
        await plane.publish(*assets("2", "2"))
        await clock.sleep(5)
        world.looking["balancer"] = 20.0  # so that its own turn comes later than the admission
        await plane.lift(pin)
        await clock.sleep(300)
        assert world.values["balancer"] == "1+2"
        assert world.order.index("balancer") < world.order.index("app")

    play(tmp_path, scenario, traits=LONG, more_checks=(slow,))


def test_a_push_of_what_an_asset_reads_may_end_during_the_checks(tmp_path: Path) -> None:
    """Seed 20096 with a rollout policy: without a release, the asset that is read keeps what was applied."""
    slow = Slow()

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        policy = make_asset(AssetId("policy"), ROLLOUT_POLICY, RolloutPolicy(parse_selector("id=db")), {})
        await plane.publish(thing("db", "1"))
        await plane.settle()
        slow.about, world.seconds = "app", 8.0
        await plane.publish(thing("db", "2"))
        await clock.sleep(1)
        await plane.publish(thing("app", "1", reads=["db"]), thing("db", "2"), policy)
        await clock.sleep(120)
        assert world.values == {"app": "1+2", "db": "2"}
        assert ("app", "1+1") not in world.pushes

    play(tmp_path, scenario, traits=LONG, more_checks=(slow,))


async def release(plane: Plane, clock: VirtualClock, **targets: int) -> None:
    """Release assets to what they are in these incarnations."""
    newest = plane.store.intent.newest(PARTITION)
    version, _ = plane.store.records.released(PARTITION)
    assert newest is not None
    at = clock.now()
    found = tuple(
        Release(
            id=f"{version:03}-{id}",
            partition=PARTITION,
            asset=AssetId(id),
            target=target,
            kind=ReleaseKind.FORWARD,
            basis=ReleaseBasis(newest.governance),
            at=at,
        )
        for id, target in targets.items()
    )
    [refused] = await plane.committer.ask(WriteReleases(PARTITION, version, newest.governance, at, found))
    assert refused is None
    await plane.enforcer.releases_changed()


def test_a_dependency_may_be_released_again_before_it_is_looked_at(tmp_path: Path) -> None:
    """Seed 24275 with a rollout policy: it had settled before it was looked at under its former release."""

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        def assets(value: str) -> list[Asset]:
            return [thing("app", value, {DEPENDS_ON: DependsOn(["api"])}), thing("api", value)]

        await plane.publish(*assets("1"))
        await plane.settle()
        await release(plane, clock, app=1, api=1)
        await plane.publish(*assets("2"))
        await release(plane, clock, api=2)
        await plane.settle()
        await plane.control(control(ControlKind.FREEZE, "api", clock))
        await release(plane, clock, api=1)
        await clock.sleep(5)
        assert world.values == {"app": "1", "api": "2"}
        world.looking["app"], world.values["app"] = 10.0, "3"
        await plane.plugin.hints.put(AssetKey(PARTITION, AssetId("app")))
        await clock.sleep(5)
        await release(plane, clock, api=2)
        await clock.sleep(60)
        assert world.values == {"app": "1", "api": "2"}

    play(tmp_path, scenario, traits=LONG)
