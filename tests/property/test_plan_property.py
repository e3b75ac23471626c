"""A plan says of each asset what its first turn after a start comes to, from any state that was stored.

Where several assets want what is left of a limit, as many are planned to get it as get it. Cases are drawn
by number, as histories of the simulation are: one that fails is found again by its number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lehr.checks.freeze import FREEZE_TYPE, Freeze
from lehr.checks.rate_limit import RATE_LIMIT_TYPE, RateLimit
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Turndown
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.control import ControlKind
from lehr.model.diff import Target
from lehr.model.governance import OBSERVE_ONLY, ObserveOnly
from lehr.model.operation import Outcome, Result
from lehr.model.selector import Selector
from lehr.model.types import addon_names
from lehr.sdk.plugin import Push
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, registry, thing
from tests.simulation.dry_runs import PUSHING, Controls, Said, both
from tests.world import Plane, World

PIN = ControlKind.PIN
CASES = 120
IDS = ("a", "b", "c", "d", "e")
ROOM = {PUSHING, "RateLimited", "LimitReached"}
"""Reasons that an asset may have at a limit: which of them depends on who comes first."""


class Case:
    """One history, what people say then, and what is published at last."""

    def __init__(self, number: int) -> None:
        self._draw = random.Random(number)
        self.world = World()
        self.world.seconds = self._draw.choice([1.0, 30.0])
        for id in self._some(IDS, 0.2):
            self.world.behave[id] = _coming_to(self._draw.choice([*Result]))
        self._order = self._draw.sample(IDS, len(IDS))
        self.first = self._intent()
        second = self._intent()
        # Who refers to others does not depart: whether that was seen depends on who comes first.
        kept = {asset.id for asset in second}
        stay = [asset for asset in self.first if asset.id not in kept and DEPENDS_ON in addon_names(asset)]
        self.second = [*second, *stay]

    async def history(self, plane: Plane, world: World, clock: VirtualClock) -> None:
        """Have a control plane be killed while it may still be pushing, and things be changed by hand."""
        await plane.publish(*self.first)
        await clock.sleep(20)
        world.values.update({id: self._draw.choice("123") for id in self._some(IDS, 0.3)})

    def words(self, controls: Controls) -> None:
        """Say something about some of the assets."""
        needed = {mention.target for asset in self.second for mention in registry().mentions(asset)}
        # Who is pinned is seen, and sees others, as it is not to become. Whether pushes of that have begun
        # depends on who comes first. So it does for what leaves.
        orders = needed | {asset.id for asset in self.first if DEPENDS_ON in addon_names(asset)}
        if any(TURNDOWN in addon_names(asset) for asset in self.second):
            orders.update(map(AssetId, IDS))
        for id in self._some(IDS, 0.3):
            kind = self._draw.choice([item for item in ControlKind if item is not PIN or id not in orders])
            if kind is not ControlKind.APPROVAL:
                at = {"incarnation": 1} if kind is PIN else {}
                controls.give(kind, id, **at)
            elif controls.decided_on(id):
                controls.approve(id)
        # That a push has ended is found out by one turn, and seen by those that come after it alone.
        under_way = {operation.asset for operation in controls.records.open_operations(PARTITION)}
        self.world.running = {id for id in under_way if id in needed or self._draw.random() < 0.5}

    def _some(self, of: tuple[str, ...], share: float) -> list[str]:
        return [item for item in of if self._draw.random() < share]

    def _intent(self) -> list[Asset]:
        found = [self._thing(place, id) for place, id in enumerate(self._order) if self._draw.random() < 0.9]
        if self._draw.random() < 0.2:
            payload: object = ObserveOnly(self._selector(), "it is adopted")
            found.append(make_asset(AssetId("look"), OBSERVE_ONLY, payload, {}))
        if self._draw.random() < 0.2:
            payload = Freeze(self._selector(), "nobody is in the office")
            found.append(make_asset(AssetId("freeze"), FREEZE_TYPE.name, payload, {}))
        if self._draw.random() < 0.5:
            payload = RateLimit(Selector(all=True), self._draw.choice([1, 2, 3]), 3600.0)
            found.append(make_asset(AssetId("limit"), RATE_LIMIT_TYPE.name, payload, {}))
        return found

    def _thing(self, place: int, id: str) -> Asset:
        addons: dict[str, Any] = {}
        if before := self._some(tuple(self._order[:place]), 0.3):
            addons[DEPENDS_ON] = DependsOn(assets=[*before])
        if self._draw.random() < 0.15:
            stand, fence = self._draw.choice([0.0, 1e6]), self._draw.choice([0.0, 1e6])
            addons[TURNDOWN] = Turndown("old", stand, fence)
        return thing(id, self._draw.choice("123"), addons, destroys=self._draw.random() < 0.2)

    def _selector(self) -> Selector:
        return Selector(ids=tuple(self._draw.sample(IDS, 2)))


def _coming_to(result: Result) -> Callable[[Target, Push], Outcome]:
    return lambda target, push: Outcome(result, "as told")


@pytest.mark.parametrize("number", range(CASES))
def test_a_plan_is_the_first_turn_after_a_start(tmp_path: Path, number: int) -> None:
    case = Case(number)
    found = both(
        tmp_path, case.second, history=case.history, controls=case.words, world=case.world, seed=number
    )
    planned, turned = found.said, found.turned
    at_limits = {id for id in planned if planned[id].reason in ROOM and turned[id].reason in ROOM}
    assert _without(planned, at_limits) == _without(turned, at_limits)
    assert _pushed(planned, at_limits) == _pushed(turned, at_limits)


def _without(said: Mapping[str, Said], ids: set[str]) -> dict[str, Said]:
    return {id: item for id, item in said.items() if id not in ids}


def _pushed(said: Mapping[str, Said], ids: set[str]) -> int:
    return sum(said[id].reason == PUSHING for id in ids)
