"""A loop of the Enforcer that stops is seen: assets are due and never queued, or queued and never run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lehr.control.health import STALLED_SECONDS
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import thing
from tests.simulation.playing import play
from tests.world import Plane, World


def _end(name: str) -> None:
    [task] = [task for task in asyncio.all_tasks() if task.get_name() == name]
    task.cancel()


def test_assets_that_are_due_and_never_queued_are_overdue(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(thing("a", "1"))
        await plane.settle()
        await clock.sleep(600)
        assert plane.enforcer.overdue < 1.0
        _end("agenda")
        await clock.sleep(600)
        assert plane.enforcer.overdue > STALLED_SECONDS

    play(tmp_path, scenario)


def test_queued_turns_are_counted(tmp_path: Path) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await plane.publish(*(thing(f"a{number}", "1") for number in range(5)))
        await plane.settle()
        assert plane.enforcer.unsettled_count == 0
        for number in range(5):
            plane.enforcer.wake(thing(f"a{number}").id, "test")
        assert plane.enforcer.queued["WorldPlugin"] == 5
        await plane.settle()
        assert plane.enforcer.queued["WorldPlugin"] == 0

    play(tmp_path, scenario)
