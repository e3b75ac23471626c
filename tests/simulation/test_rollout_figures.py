"""The Strategist publishes figures of rollouts as it carries them out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from lehr.base.blocking import Inline
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.governance import ROLLOUT_POLICY
from lehr.rollouts.figures import RolloutState
from lehr.sdk.runtime import Runtime
from lehr.strategist.strategist import Strategist
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, THING
from tests.world import Plane, World

SOAK = 600.0
POLICY = AssetId("waves")


def things(value: int) -> list[Asset]:
    return [make_asset(AssetId(name), THING, {"value": str(value)}, {}) for name in ("a", "b", "c")]


def policy(**more: Any) -> Asset:
    selection = {"waves": [{"units": 1, "soak_seconds": SOAK}, {}], **more}
    return make_asset(
        POLICY, ROLLOUT_POLICY, {"select": {"ids": ["a", "b", "c"]}, "target_selection": selection}, {}
    )


def test_figures_follow_a_rollout_from_its_beginning_to_the_end_of_its_policy(tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        plane = Plane(tmp_path, World(), clock)
        await plane.start()
        runtime = Runtime(PARTITION, plane.store, plane.registry, clock, plane.chance, Inline())
        strategist = Strategist(runtime, plane.committer, plane.enforcer)
        await plane.publish(*things(1))
        await plane.settle()
        task = asyncio.create_task(strategist.run())
        await plane.publish(*things(1), policy())
        await clock.sleep(SOAK)
        assert strategist.figures[POLICY].state is RolloutState.IDLE
        await plane.publish(*things(2), policy())
        began = clock.now()
        await clock.sleep(SOAK / 2)
        found = strategist.figures[POLICY]
        assert (found.state, found.waiting, found.updated, found.validated) == (RolloutState.RUNNING, 2, 0, 1)
        assert found.begun_at is not None
        assert began <= found.begun_at < began + 30
        await plane.publish(*things(2), policy(order="labels.nothing"))
        await clock.sleep(SOAK)
        assert strategist.figures[POLICY].state is RolloutState.HOLDING
        assert strategist.figures[POLICY].waiting == 2
        await plane.publish(*things(2), policy())
        await clock.sleep(2 * SOAK)
        assert strategist.figures[POLICY].state is RolloutState.IDLE
        await plane.publish(*things(2))
        await clock.sleep(SOAK)
        assert strategist.figures == {}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.kill()

    run(main, seed=1)
