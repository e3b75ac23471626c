"""Playing a scenario: a control plane with every check over simulated production, for a virtual day."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from lehr.checks import CHECKS, TYPES
from lehr.model.addons import TURNDOWN, Turndown
from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.plugin import AssetPlugin, Traits
from lehr.sdk.store import Store
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION
from tests.world import Plane, World

Scenario = Callable[[Plane, World, VirtualClock], Awaitable[None]]

DAY = 86_400.0
NEVER = 1e7
"""A resync so long that every turn must come from an event."""


def play(
    folder: Path,
    scenario: Scenario,
    *,
    traits: Traits | None = None,
    seed: int = 1,
    more_checks: tuple[CheckPlugin, ...] = (),
    types: Sequence[AssetType] = (),
    plugins: Sequence[AssetPlugin] = (),
    wrap: Callable[[Store], Store] = lambda store: store,
    claims: Claims | None = None,
) -> None:
    """Run `scenario` with a started control plane."""

    async def main() -> None:
        clock, world = VirtualClock(), World()
        checks = [*(check() for check in CHECKS), *more_checks]
        plane = Plane(
            folder,
            world,
            clock,
            checks=checks,
            types=(*TYPES, *types),
            plugins=plugins,
            traits=traits,
            seed=seed,
            wrap=wrap,
            claims=claims,
        )
        await plane.start()
        try:
            async with asyncio.timeout(DAY):
                await scenario(plane, world, clock)
        finally:
            await plane.kill()

    run(main, seed=seed)


def control(kind: ControlKind, selector: str, clock: VirtualClock, **fields: object) -> Control:
    """A person's word."""
    return Control(
        id=f"{clock.now():.3f}-{kind}",
        kind=kind,
        partition=PARTITION,
        selector=parse_selector(selector),
        reason="because",
        actor="ana",
        at=clock.now(),
        **fields,  # type: ignore[arg-type]
    )


def turned_down(stand: float = 0.0, fence: float = 0.0) -> dict[str, Turndown]:
    """The addon that asks for it."""
    return {TURNDOWN: Turndown("old", stand, fence)}
