"""A policy whose selection is somebody else's: whatever it answers, its rollout keeps the limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.evidence import Selected
from lehr.model.governance import ROLLOUT_POLICY
from lehr.rollouts.services import RefusedAnswerError
from lehr.sdk.runtime import Runtime
from lehr.sdk.target_selection import SelectionQuestion, SelectionService
from lehr.strategist.strategist import Strategist
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, THING
from tests.world import Plane, World

Answering = Callable[[SelectionQuestion], dict[str, Any]]
NAMES = ("a", "b", "c")


class Service:
    """Answers in virtual time.

    Attributes:
        seconds: for each answer.
        asked: all questions.
        most: the largest number of questions at a time.
    """

    name = "mine"

    def __init__(self, answering: Answering, clock: VirtualClock, seconds: float = 0.5) -> None:
        self.answering = answering
        self.seconds = seconds
        self.asked: list[SelectionQuestion] = []
        self.most = 0
        self._clock = clock
        self._now = 0

    async def ask(self, question: bytes) -> bytes:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            self.asked.append(msgspec.json.decode(question, type=SelectionQuestion))
            await self._clock.sleep(self.seconds)
            return json.dumps(self.answering(self.asked[-1])).encode()
        finally:
            self._now -= 1


def things(value: int) -> list[Asset]:
    return [make_asset(AssetId(name), THING, {"value": str(value)}, {}) for name in NAMES]


def policy(service: str = "mine", **limits: Any) -> Asset:
    payload = {
        "select": {"ids": ["a", "b"]},
        "selected_by": {"service": service, "settings": {"regions": ["eu"]}},
        "target_selection": limits,
    }
    return make_asset(AssetId("gradually"), ROLLOUT_POLICY, payload, {})


OWN = make_asset(AssetId("own"), ROLLOUT_POLICY, {"select": {"ids": ["c"]}}, {})
"""Has Lehr's own selection, and waits for nobody else's."""


class Stage:
    """A world with a policy, and content that is to be released."""

    def __init__(self, plane: Plane, clock: VirtualClock, service: Service) -> None:
        self.plane = plane
        self.clock = clock
        self.service = service

    @property
    def updated(self) -> set[str]:
        return {name for name in ("a", "b") if self.plane.world.values.get(name) == "2"}

    @property
    def other_is_updated(self) -> bool:
        return self.plane.world.values.get("c") == "2"

    async def until(self, count: int, seconds: float) -> None:
        """Wait until so many are updated, at most so long."""
        async with asyncio.timeout(seconds):
            while len(self.updated) < count:
                await self.clock.sleep(1)


@contextlib.asynccontextmanager
async def staged(folder: Path, answering: Answering, **limits: Any) -> AsyncIterator[Stage]:
    clock = VirtualClock()
    service = Service(answering, clock)

    def selections(name: str) -> SelectionService:
        if name != "mine":
            raise LehrError(f"there is no selection {name!r}", code="SDK120")
        return service

    plane = Plane(folder, World(), clock)
    await plane.start()
    runtime = Runtime(
        PARTITION, plane.store, plane.registry, clock, plane.chance, Inline(), selections=selections
    )
    strategist = Strategist(runtime, plane.committer, plane.enforcer)
    await plane.publish(*things(1))
    await plane.settle()
    named = limits.pop("service", "mine")
    governing = (policy(named, **limits), OWN)
    await plane.publish(*things(1), *governing)
    task = asyncio.create_task(strategist.run())
    await clock.sleep(60)
    await plane.publish(*things(2), *governing)
    try:
        yield Stage(plane, clock, service)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.kill()


def one_by_one(question: SelectionQuestion) -> dict[str, Any]:
    unvalidated = any(unit.updated and not unit.validated for unit in question.units)
    ready = [] if unvalidated else [unit.id for unit in question.candidates][:1]
    return {"update": ready, "others": {unit.id: "later" for unit in question.units if unit.id not in ready}}


def test_units_are_updated_as_it_answers(tmp_path: Path) -> None:
    async def main() -> None:
        async with staged(tmp_path, one_by_one, at_most=2) as stage:
            await stage.until(1, 60)
            assert stage.updated == {"a"}
            await stage.until(2, 600)
            first = stage.service.asked[0]
            assert first.selection == {"regions": ["eu"], "at_most": 2, "new": "in_wave"}
            assert stage.service.most == 1
            answers = [
                (item.fact.service, item.fact.update)
                for item in stage.plane.store.records.evidence(PARTITION)
                if isinstance(item.fact, Selected)
            ]
            assert answers == [("mine", ("a",)), ("mine", ("b",))]

    run(main, seed=1)


def all_of_them(question: SelectionQuestion) -> dict[str, Any]:
    return {"update": [unit.id for unit in question.units]}


def raises(question: SelectionQuestion) -> dict[str, Any]:
    raise RefusedAnswerError("the selection service did not answer in time", code="ROL114")


@pytest.mark.parametrize(
    "answering",
    [
        all_of_them,
        raises,
        lambda question: {"update": ["z"]},
        lambda question: {"update": "a"},
        lambda question: {"done": True},
        lambda question: {"hold": "not today"},
        lambda question: 1 / 0,
    ],
)
def test_an_answer_that_cannot_be_used_updates_nothing(answering: Answering, tmp_path: Path) -> None:
    async def main() -> None:
        async with staged(tmp_path, answering, at_most=1) as stage:
            await stage.clock.sleep(600)
            assert stage.updated == set()
            assert 2 <= len(stage.service.asked) <= 70, "it is asked again, and not without end"
            stage.service.answering = one_by_one
            await stage.until(2, 600)

    run(main, seed=1)


def test_a_service_that_hangs_delays_no_step(tmp_path: Path) -> None:
    async def main() -> None:
        async with staged(tmp_path, one_by_one) as stage:
            stage.service.seconds = 1e6
            await stage.clock.sleep(600)
            assert stage.updated <= {"a"}
            assert stage.other_is_updated
            assert stage.service.most == 1

    run(main, seed=1)


def test_an_unknown_selection_updates_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with staged(tmp_path, one_by_one, service="yours") as stage:
            await stage.clock.sleep(600)
            assert stage.updated == set()
            assert stage.service.asked == []

    run(main, seed=1)
