"""Calls of assets that have providers: limited each on its own, together within the limits of the plugin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.provider import PROVIDED_BY, PROVIDER, TYPES, Provider
from lehr.model.types import AssetType, Registry
from lehr.plugins.remote.connection import Connection, Opened
from lehr.plugins.remote.limits import ROOM
from lehr.plugins.remote.plugin import RemotePlugin
from lehr.plugins.remote.service import Served, Service
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.provider import provider_of
from lehr.testing.plugins import FixedReader, push_of, target_of
from lehr.testing.sim.remote_plugins import SimulatedChannel
from lehr.testing.virtual import VirtualClock, run


class Line(msgspec.Struct, frozen=True):
    """A line."""


REGISTRY = Registry((AssetType("example.Line", Line), *TYPES))
SECONDS = 10.0


class Slow(AssetPlugin):
    """Takes ten seconds for each call, and counts those under way, by provider."""

    types = ("example.Line",)
    traits = Traits(providers=True, turns=3)

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.under_way: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.hangs = False

    async def diff(self, target: Target, read: Reader) -> Diff:
        provider = provider_of(read, target.id)
        names = ("all", "none" if provider is None else provider.id)
        for name in names:
            self.under_way[name] = self.under_way.get(name, 0) + 1
            self.most[name] = max(self.most.get(name, 0), self.under_way[name])
        try:
            await self.clock.sleep(1e9 if self.hangs else SECONDS)
        finally:
            for name in names:
                self.under_way[name] -= 1
        return Diff()

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return DONE


class Opener:
    """Opens a plugin of this process, whose calls have no faults."""

    def __init__(self, served: Served) -> None:
        self.served = served

    async def open(self) -> Opened:
        return Opened(SimulatedChannel(Service(self.served), self))  # type: ignore[arg-type]

    async def changed(self) -> bool:
        return False

    def fault(self, method: object) -> None:
        return None


class Story:
    """A plugin, and the time since it was made."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.slow = Slow(self.clock)
        served = Served("lines", "1", self.slow, REGISTRY)
        description = Service(served).description()
        connection = Connection("lines", Opener(served), self.clock, description=description)
        self.plugin = RemotePlugin(connection, ["example.Line"], self.clock, room=ROOM)
        self._began = self.clock.monotonic()

    async def diff(self, provider: Asset | None) -> float:
        """Compare an asset; when it was compared."""
        await self.plugin.diff(*asked(provider))
        return self.clock.monotonic() - self._began


def account(name: str, **limits: Any) -> Asset:
    return make_asset(AssetId(name), PROVIDER, Provider(plugin="lines", **limits), {})


def asked(provider: Asset | None, id: str = "x") -> tuple[Target, FixedReader]:
    addons = {} if provider is None else {PROVIDED_BY: {"provider": provider.id}}
    line = make_asset(AssetId(id), "example.Line", Line(), addons)
    others = [] if provider is None else [provider]
    return target_of(line), FixedReader([line, *others], REGISTRY)


def played(story: Callable[[Story], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        told = Story()
        try:
            return await story(told)
        finally:
            await told.plugin.close()

    return run(main, seed=3)


def test_lehr_may_ask_for_more_than_the_plugin_gets_at_once() -> None:
    async def story(told: Story) -> None:
        assert told.plugin.traits.turns == 3 + ROOM
        assert told.plugin.traits.pushes == Traits().pushes
        await asyncio.gather(*(told.diff(None) for _ in range(9)))
        assert told.slow.most["all"] == 3

    played(story)


def test_a_provider_at_its_limit_delays_no_other() -> None:
    async def story(told: Story) -> None:
        a, b = account("a", concurrency=1), account("b", concurrency=2)
        crowd = [asyncio.ensure_future(told.diff(a)) for _ in range(6)]
        await told.clock.sleep(1.0)
        others = await asyncio.gather(told.diff(b), told.diff(b))
        assert max(others) == pytest.approx(1.0 + SECONDS)
        assert max(await asyncio.gather(*crowd)) == pytest.approx(6 * SECONDS)
        assert (told.slow.most["a"], told.slow.most["b"]) == (1, 2)

    played(story)


def test_a_push_is_charged_to_its_provider() -> None:
    async def story(told: Story) -> float:
        a = account("a", rate=0.1)
        target, read = asked(a)
        assert await told.plugin.push(target, read, push_of(target)) == DONE
        return await told.diff(a)

    assert played(story) == pytest.approx(10 + SECONDS)


def test_a_comparison_that_hangs_is_given_up_and_leaves_its_place() -> None:
    async def story(told: Story) -> None:
        a = account("a", concurrency=1)
        told.slow.hangs = True
        began = told.clock.monotonic()
        with pytest.raises(TransientError):
            await told.diff(a)
        waited = told.clock.monotonic() - began
        assert Traits().diff_timeout <= waited <= Traits().diff_timeout + 15
        told.slow.hangs = False
        before = told.clock.monotonic()
        await told.diff(a)
        assert told.clock.monotonic() - before == pytest.approx(SECONDS)

    played(story)


def test_many_are_compared_at_once_but_those_whose_provider_has_limits() -> None:
    async def story(told: Story) -> list[int]:
        limited, free = account("a", rate=1.0), account("b")
        requests = [asked(provider, f"x{index}") for index, provider in enumerate([limited, free, None])]
        return sorted([index async for index, _diff in told.plugin.diff_many(requests)])

    assert played(story) == [1, 2]


def test_a_provider_of_another_plugin_is_never_sent() -> None:
    async def story(told: Story) -> None:
        other = make_asset(AssetId("a"), PROVIDER, Provider(plugin="buckets"), {})
        target, read = asked(other)
        for call in (told.plugin.diff(target, read), told.plugin.push(target, read, push_of(target))):
            with pytest.raises(StalledError) as refused:
                await call
            assert refused.value.code == "PLG182"
        assert told.slow.most == {}

    played(story)
