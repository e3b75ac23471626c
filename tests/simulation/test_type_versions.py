"""A type changes its form while assets of it are in production: what is old is read, nothing is misread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from lehr.base.clock import Clock
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Status
from lehr.model.declared import TYPE, declaration_id
from lehr.model.diff import NO_DIFF, Change, Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.selector import parse_selector
from lehr.sdk.plugin import Push, Reader, Traits
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION
from tests.world import Plane, World, WorldPlugin

WAS = [{"version": 1, "steps": [{"rename": {"/mail": "/address"}}]}]


def declared(version: int) -> Asset:
    payload = {"schema": {}, "enforced": True, "version": version, "was": WAS[: version - 1]}
    return make_asset(declaration_id("shop.Team"), TYPE, payload, {})


def team(id: str, version: int, text: str) -> Asset:
    payload = {"mail" if version == 1 else "address": text}
    return make_asset(
        AssetId(id), "shop.Team", payload, {}, versions={"shop.Team": version} if version > 1 else None
    )


class Offices(World):
    """Production of teams: under each id, where the team is reached."""

    def __init__(self, understands: int) -> None:
        super().__init__()
        self.understands = understands

    def plugin(self, clock: Clock, traits: Traits | None = None) -> WorldPlugin:
        plugin = TeamPlugin(self, clock, traits)
        plugin.versions = {"shop.Team": self.understands}  # type: ignore[misc]
        return plugin


class TeamPlugin(WorldPlugin):
    """Puts a team where intent says, in the words of the version that it understands."""

    types = ("shop.Team",)

    async def diff(self, target: Target, read: Reader) -> Diff:
        intended, observed = self._intended(target, read), self.world.values.get(target.id)
        return NO_DIFF if intended == observed else Diff((Change("place", intended, observed),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.world.values[target.id] = self._intended(target, read)
        self.world.pushes[target.id, self.world.values[target.id]] += 1
        return DONE

    def _intended(self, target: Target, read: Reader) -> str:
        payload: Mapping[str, str] = read.payload(target.id, dict)
        words = ("mail",) if self.versions["shop.Team"] == 1 else ("address", "mail")
        return next(payload[word] for word in words if word in payload)


def play(folder: Path, understands: int, scenario: Callable[[Plane, VirtualClock], Awaitable[None]]) -> World:
    world = Offices(understands)

    async def main() -> None:
        clock = VirtualClock()
        plane = Plane(folder, world, clock)
        await plane.start()
        try:
            async with asyncio.timeout(86_400.0):
                await scenario(plane, clock)
        finally:
            await plane.kill()

    run(main, seed=1)
    return world


def pin(clock: VirtualClock, id: str, incarnation: int) -> Control:
    return Control(
        id="pin",
        kind=ControlKind.PIN,
        partition=PARTITION,
        selector=parse_selector(id),
        reason="wait",
        actor="ana",
        at=clock.now(),
        incarnation=incarnation,
    )


def test_content_of_before_is_read_in_the_form_that_the_plugin_understands(tmp_path: Path) -> None:
    async def scenario(plane: Plane, clock: VirtualClock) -> None:
        await plane.publish(declared(1), team("web", 1, "hall"), team("css", 1, "attic"))
        await plane.settle()
        await plane.control(pin(clock, "web", 1))
        await plane.publish(declared(2), team("web", 2, "cellar"), team("css", 2, "cellar"))
        await plane.settle()
        assert plane.world.values == {"web": "hall", "css": "cellar"}
        await plane.lift(pin(clock, "web", 1))
        await plane.settle()
        assert plane.world.values["web"] == "cellar"

    world = play(tmp_path, 2, scenario)
    assert set(world.pushes.values()) == {1}


def test_a_plugin_that_does_not_understand_a_new_form_touches_nothing_and_says_why(tmp_path: Path) -> None:
    async def scenario(plane: Plane, clock: VirtualClock) -> None:
        await plane.publish(declared(1), team("web", 1, "hall"))
        await plane.settle()
        await plane.publish(declared(2), team("web", 2, "cellar"))
        while plane.condition("web").status is not Status.STALLED:
            await plane.enforcer.changed()
            await plane.committer.flush()
        condition = plane.condition("web")
        assert "version 2, and its reader understands version 1" in condition.message
        assert "update the reader" in condition.unblock
        assert plane.world.values == {"web": "hall"}

    play(tmp_path, 1, scenario)
