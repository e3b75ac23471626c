"""An asset that follows another one is pushed after its removal, as a server after that of a vhost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from lehr.checks import CHECKS, TYPES
from lehr.model.addons import TURNDOWN, Turndown
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import NO_DIFF, Change, Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.types import AssetType, Followed
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import thing
from tests.simulation.playing import NEVER
from tests.world import Plane, World

SERVER = "test.Server"


class Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Takes up when it is pushed what the things that it follows are in production then."""

    follows: list[Followed] = []


def server(*follows: str) -> Asset:
    return make_asset(AssetId("server"), SERVER, Server(list(follows)), {})


def vhost(down: Turndown | None = None) -> Asset:
    return thing("vhost", "1", {} if down is None else {TURNDOWN: down})


class ServerPlugin(AssetPlugin):
    """Knows what it was started with; `serves` is what it found in production then."""

    types = (SERVER,)
    traits = Traits(resync=NEVER)

    def __init__(self, world: World) -> None:
        self.world = world
        self.started_with: list[str] | None = None
        self.serves: dict[str, str] = {}
        self.pushes = 0

    async def diff(self, target: Target, read: Reader) -> Diff:
        intended = _content(target, read)
        return NO_DIFF if intended == self.started_with else Diff((Change("content", intended, None),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.started_with, self.serves = _content(target, read), dict(self.world.values)
        self.pushes += 1
        return DONE


def _content(target: Target, read: Reader) -> list[str]:
    followed = (read.asset(AssetId(id)) for id in read.payload(target.id, Server).follows)
    return [str(asset.document()["payload"]) for asset in followed if asset is not None]


Scenario = Callable[[Plane, ServerPlugin, VirtualClock], Awaitable[None]]


def play(folder: Path, scenario: Scenario) -> None:
    async def main() -> None:
        clock, world = VirtualClock(), World()
        plugin = ServerPlugin(world)
        checks = [check() for check in CHECKS]
        types = [*TYPES, AssetType(SERVER, Server)]
        plane = Plane(folder, world, clock, checks=checks, types=types, plugins=[plugin])
        await plane.start()
        try:
            async with asyncio.timeout(86_400.0):
                await plane.publish(server("vhost", "main"), vhost(), thing("main", "1"))
                await plane.settle()
                assert plugin.serves == {"vhost": "1", "main": "1"}
                await scenario(plane, plugin, clock)
        finally:
            await plane.kill()

    run(main, seed=1)


def test_what_is_followed_is_removed_and_then_the_follower_is_pushed(tmp_path: Path) -> None:
    async def scenario(plane: Plane, plugin: ServerPlugin, clock: VirtualClock) -> None:
        await plane.publish(server("vhost", "main"), vhost(down=Turndown("old")), thing("main", "1"))
        await plane.settle()
        assert plane.world.values == {"main": "1"}
        assert plugin.serves == {"main": "1"}
        assert plugin.pushes == 2, "one at first, and one after the removal"
        await plane.publish(server("main"), thing("main", "1"))
        await plane.settle()
        assert plugin.pushes == 2, "to let go of what is gone changes nothing"

    play(tmp_path, scenario)


def test_a_follower_is_not_held_up_by_what_is_on_its_way_out(tmp_path: Path) -> None:
    async def scenario(plane: Plane, plugin: ServerPlugin, clock: VirtualClock) -> None:
        down = vhost(down=Turndown("old", 600.0, 600.0))
        await plane.publish(server("vhost", "main"), down, thing("main", "1"))
        await clock.sleep(900)  # fenced by now
        await plane.publish(server("vhost", "main"), down, thing("main", "2"))
        await clock.sleep(60)
        assert plugin.serves == {"vhost": "fenced 1", "main": "2"}
        await plane.settle()
        assert plugin.serves == {"main": "2"}

    play(tmp_path, scenario)


def test_what_comes_back_is_taken_up_again(tmp_path: Path) -> None:
    async def scenario(plane: Plane, plugin: ServerPlugin, clock: VirtualClock) -> None:
        await plane.publish(server("vhost", "main"), vhost(down=Turndown("old")), thing("main", "1"))
        await plane.settle()
        await plane.publish(server("vhost", "main"), vhost(), thing("main", "1"))
        await plane.settle()
        assert plugin.serves == {"vhost": "1", "main": "1"}

    play(tmp_path, scenario)
