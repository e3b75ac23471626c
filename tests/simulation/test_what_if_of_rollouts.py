"""What unblocks an asset that a rollout has not reached: supposed, found, and then done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Inline
from lehr.base.errors import LehrError
from lehr.checks import CHECKS, TYPES
from lehr.dry_run.unblock import unblocking
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.control import ControlKind
from lehr.model.evidence import RolloutCommand
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.operation import Outcome, Result
from lehr.sdk.runtime import Runtime
from lehr.strategist.strategist import Strategist
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, thing
from tests.situation import Situation, control
from tests.world import Plane, World

A, B, C = NAMES = (AssetId("a"), AssetId("b"), AssetId("c"))
SOAK = 600.0
PROMOTE = "lehr rollout promote waves --reason TEXT"


def intent(value: str, **selection: Any) -> list[Asset]:
    payload = {
        "select": {"ids": list(NAMES)},
        "target_selection": {"waves": [{"units": 1, "soak_seconds": SOAK}, {}], **selection},
    }
    policy = make_asset(AssetId("waves"), ROLLOUT_POLICY, payload, {})
    return [*(thing(name, value) for name in NAMES), policy]


@asynccontextmanager
async def rolling_out(
    folder: Path, world: World, clock: VirtualClock, **selection: Any
) -> AsyncIterator[Situation]:
    """A rollout whose first wave, `a`, has new content and soaks, or has failed."""
    plane = Plane(folder, world, clock, checks=[check() for check in CHECKS], types=TYPES)
    await plane.start()
    runtime = Runtime(PARTITION, plane.store, plane.registry, clock, plane.chance, Inline())
    await plane.publish(*intent("1", **selection))
    task = asyncio.create_task(Strategist(runtime, plane.committer, plane.enforcer).run())
    try:
        await clock.sleep(3 * SOAK)
        await plane.publish(*intent("2", **selection))
        await clock.sleep(60.0)
        yield Situation(plane, world, clock)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.kill()


async def unblocked_by(situation: Situation, id: AssetId) -> list[str] | None:
    """What is said to unblock an asset; done, and found to unblock it."""
    what_if = situation.what_if(id)
    found = await unblocking(what_if)
    assert found.complete
    if found.then is None:
        return None
    for supposition in what_if.parsed(found.then.commands):
        await situation.give(id, supposition)
        await situation.clock.sleep(1.0)
    await situation.clock.sleep(40.0)  # nothing wakes the Strategist here, as `lehr run` does
    assert situation.world.values[id] == "2"
    return list(found.then.commands)


def test_what_soaks_is_promoted(tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with rolling_out(tmp_path, World(), clock) as situation:
            assert situation.world.values == {"a": "2", "b": "1", "c": "1"}
            assert await unblocked_by(situation, A) == []
            assert await unblocked_by(situation, B) == [PROMOTE]

    run(main, seed=1)


def test_a_freeze_that_holds_the_unit_is_lifted_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with rolling_out(tmp_path, World(), clock) as situation:
            await situation.plane.control(control(ControlKind.FREEZE, "c", clock.now()))
            assert await unblocked_by(situation, C) == ["lehr unfreeze id=c", PROMOTE]

    run(main, seed=1)


def test_a_paused_rollout_is_resumed_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with rolling_out(tmp_path, World(), clock) as situation:
            await situation.command(RolloutCommand.PAUSE, AssetId("waves"))
            await clock.sleep(5.0)
            assert await unblocked_by(situation, B) == [PROMOTE, "lehr rollout resume waves"]

    run(main, seed=1)


def test_content_that_has_failed_is_tried_again(tmp_path: Path) -> None:
    async def main() -> None:
        clock, world = VirtualClock(), World()
        world.behave[A] = lambda target, push: (
            Outcome(Result.STALLED, "no space") if push.operation.content > 1 and world.values else None
        )
        async with rolling_out(tmp_path, world, clock) as situation:
            assert world.values == dict.fromkeys(NAMES, "1")
            del world.behave[A]
            assert await unblocked_by(situation, A) == ["lehr rollout retry waves --reason TEXT"]

    run(main, seed=1)


def test_a_wave_after_the_next_is_not_reached_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        waves = [{"units": 1, "soak_seconds": SOAK}, {"units": 2, "soak_seconds": SOAK}, {}]
        async with rolling_out(tmp_path, World(), clock, waves=waves) as situation:
            assert await unblocked_by(situation, C) is None
            assert await unblocked_by(situation, B) == [PROMOTE]
            assert await unblocked_by(situation, C) == [PROMOTE]

    run(main, seed=1)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("rollout resume", "CTL143"),
        ("rollout promote other", "CTL140"),
        ("rollout release", "CTL146"),
    ],
)
def test_a_command_that_would_be_refused_is_refused(tmp_path: Path, command: str, code: str) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with rolling_out(tmp_path, World(), clock) as situation:
            what_if = situation.what_if(B)
            with pytest.raises(LehrError) as raised:
                await what_if.turn(what_if.parsed([command]))
            assert raised.value.code == code

    run(main, seed=1)
