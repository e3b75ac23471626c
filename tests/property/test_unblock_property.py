"""The commands that are said to unblock an asset do unblock it, and none of them can be left out.

A control plane runs over simulated production, with what people have said, pushes that fail, and assets that
depend on each other. Its dry turns end as its turns did, and the commands are then given to it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lehr.checks import CHECKS, TYPES
from lehr.checks.calendar import Calendar, Window
from lehr.checks.freeze import FREEZE_TYPE, Freeze
from lehr.dry_run.suppositions import Supposition
from lehr.dry_run.unblock import Unblocking, unblocking
from lehr.dry_run.what_if import WhatIf
from lehr.model.addons import DEPENDS_ON, DependsOn
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.diff import Target
from lehr.model.operation import Outcome, Result
from lehr.model.selector import Selector
from lehr.sdk.plugin import Push
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, thing
from tests.situation import Situation, control
from tests.world import Plane, World

CASES = 40
IDS = ("a", "b", "c", "d")
SELECTORS = ("all", "a", "b", "a,b", "c", "a*", "type=test.Thing")
CALENDAR = "lehr.Calendar"


class Case:
    """Intent, what people say, and which pushes fail."""

    def __init__(self, number: int) -> None:
        self._draw = random.Random(number)
        self.world = World()
        for id in self._some(IDS, 0.3):
            self.world.behave[id] = _ending(self._draw.choice([Result.FAILED, Result.STALLED]))
        self.first = [thing(id, "1") for id in IDS]
        self.second = [self._thing(place, id) for place, id in enumerate(IDS)]
        if self._draw.random() < 0.15:
            payload: object = Freeze(Selector(ids=("a", "c")), "nobody is in the office")
            self.second.append(make_asset(AssetId("freeze"), FREEZE_TYPE.name, payload, {}))
        if self._draw.random() < 0.4:
            # Closed when the simulation begins, and for as long as it lasts.
            hours = (Window(("sat",), "03:00", "04:00"),)
            overridable = self._draw.random() < 0.7
            payload = Calendar(Selector(ids=("a", "b")), "UTC", hours, override=overridable)
            self.second.append(make_asset(AssetId("hours"), CALENDAR, payload, {}))
        kinds = (ControlKind.FREEZE, ControlKind.PAUSE, ControlKind.PIN)
        self.said = [
            (self._draw.choice(kinds), self._draw.choice(SELECTORS))
            for _n in range(self._draw.choice([0, 1, 1, 2, 3]))
        ]

    def _thing(self, place: int, id: str) -> Asset:
        addons: dict[str, Any] = {}
        if before := self._some(IDS[:place], 0.2):
            addons[DEPENDS_ON] = DependsOn(assets=[*before])
        return thing(id, self._draw.choice("12"), addons, destroys=self._draw.random() < 0.3)

    def _some(self, of: tuple[str, ...], share: float) -> list[str]:
        return [item for item in of if self._draw.random() < share]


def _ending(result: Result) -> Callable[[Target, Push], Outcome]:
    return lambda target, push: Outcome(result, "as told")


async def at_rest(case: Case, folder: Path, clock: VirtualClock) -> Situation:
    checks = [check() for check in CHECKS]
    plane = Plane(folder, case.world, clock, checks=checks, types=TYPES)
    behave, case.world.behave = case.world.behave, {}
    await plane.start()
    await plane.publish(*case.first)
    await plane.settle()
    case.world.behave = behave
    for kind, selector in case.said:
        at = {"incarnation": 1} if kind is ControlKind.PIN else {}
        await plane.control(control(kind, selector, clock.now(), **at))
        await clock.sleep(1)
    await plane.publish(*case.second)
    await clock.sleep(45)
    await plane.committer.flush()
    return Situation(plane, case.world, clock)


def search(folder: Path, number: int, then: Callable[[Situation, WhatIf, AssetId, Unblocking], Any]) -> None:
    """Find what unblocks each asset of a case, and see about it."""

    async def main() -> None:
        clock = VirtualClock()
        situation = await at_rest(Case(number), folder, clock)
        try:
            for id in map(AssetId, IDS):
                if situation.plane.condition(id).status is not Status.PUSHING:
                    what_if = situation.what_if(id)
                    await then(situation, what_if, id, await unblocking(what_if))
        finally:
            await situation.plane.kill()

    run(main, seed=number)


def parsed(what_if: WhatIf, found: Unblocking) -> tuple[Supposition, ...]:
    assert found.then is not None
    return what_if.parsed(found.then.commands)


@pytest.mark.parametrize("number", range(CASES))
def test_no_command_can_be_left_out(tmp_path: Path, number: int) -> None:
    async def then(situation: Situation, what_if: WhatIf, id: AssetId, found: Unblocking) -> None:
        condition = situation.plane.condition(id)
        assert found.now.planned.reason == condition.reason, "a dry turn ends as its turn did"
        assert found.complete
        if found.then is None:
            assert found.otherwise is not None
            candidates = what_if.candidates()
            for size in range(min(len(candidates), 4) + 1):
                for some in itertools.combinations(candidates, size):
                    assert not (await what_if.turn(some)).unblocked
            return
        commands = parsed(what_if, found)
        assert len(commands) <= 4
        assert (await what_if.turn(commands)).unblocked
        for size in range(len(commands)):
            for fewer in itertools.combinations(commands, size):
                assert not (await what_if.turn(fewer)).unblocked

    search(tmp_path, number, then)


@pytest.mark.parametrize("number", range(CASES))
def test_the_commands_unblock_it(tmp_path: Path, number: int) -> None:
    done: list[AssetId] = []

    async def then(situation: Situation, what_if: WhatIf, id: AssetId, found: Unblocking) -> None:
        if done or found.then is None or not found.then.commands:
            return
        done.append(id)
        plane = situation.plane
        number_before = plane.store.records.decisions(PARTITION, id, 1)[0][0]
        for supposition in parsed(what_if, found):
            await situation.give(id, supposition)
            await situation.clock.sleep(0.5)
            await plane.committer.flush()
        since = [
            decision.condition
            for at, decision in plane.store.records.decisions(PARTITION, id, 100)
            if at > number_before
        ]
        pushed = any(item.status is Status.PUSHING for item in since)
        settled = plane.condition(id).reason == "AsIntended"
        assert pushed or settled, (found.then.commands, since)
        assert pushed == (found.then.planned.result == "will be pushed")

    search(tmp_path, number, then)


def test_the_cases_have_sets_of_every_size_and_assets_that_no_command_unblocks(tmp_path: Path) -> None:
    sizes: set[int | None] = set()

    async def then(situation: Situation, what_if: WhatIf, id: AssetId, found: Unblocking) -> None:
        sizes.add(None if found.then is None else len(found.then.commands))

    for number in range(CASES):
        (tmp_path / str(number)).mkdir()
        search(tmp_path / str(number), number, then)
    assert sizes >= {None, 0, 1, 2, 3}
