"""One random history: intent, production, people and machines misbehave, and then leave it be.

In the first phase anything may happen, and every write and push is judged as it comes (safety); now
and then nothing happens for a while, and whatever is then held must still be held by something. In
the second phase, faults stay only where they can harm nothing else, and everything else must come to
rest within a bounded time (liveness).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from lehr.testing.sim.encounters import Encounters
from lehr.testing.sim.lull import Lull
from lehr.testing.sim.people import People
from lehr.testing.sim.quiet import Quiet
from lehr.testing.sim.scene import Scene
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.trouble import Trouble
from lehr.testing.sim.verdict import judge, whole
from lehr.testing.sim.witness import Witness
from lehr.testing.virtual import run

LEAST_EVENTS = 200
"""A history continues until so much has happened; its quiet phase adds to that."""

_LONGEST = 100_000.0
"""Seconds after which a history must be over."""

_LULL = 0.1
"""How likely nothing happens for a while after a step."""


class History:
    """Plays one history."""

    def __init__(self, seed: int, folder: Path) -> None:
        """The history of `seed`, which keeps its state in `folder`."""
        self.seed = seed
        self._scene = Scene(seed, folder)

    @property
    def trace(self) -> Trace:
        """What happened, for debugging."""
        return self._scene.trace

    @property
    def witness(self) -> Witness:
        return self._scene.witness

    @property
    def violations(self) -> list[str]:
        """Rules that were broken, one line each, with the rule's id."""
        return [*self._scene.witness.violations, *self._scene.production.broken]

    def play(self) -> None:
        """Play it to its end, and judge the final state."""
        run(self._bounded, seed=self.seed)

    async def _bounded(self) -> None:
        async with asyncio.timeout(_LONGEST):
            await self._main()

    async def _main(self) -> None:
        scene = self._scene
        lull = Lull(scene)
        people = People(scene, lull)
        await scene.open()
        dice, taken = scene.dice, 0
        steps = [*people.steps(), *Trouble(scene, people, lull).steps(), *Encounters(scene, lull).steps()]
        while taken < scene.manners.steps or len(scene.trace.events) < LEAST_EVENTS:
            taken += 1
            await scene.alive(dice.pick(steps))
            await scene.alive(lambda: scene.process.pass_time(dice.pick((0.0, 0.1, 1.0, 5.0, 30.0))))
            if dice.happens(_LULL):
                await scene.alive(lull.pass_by)
        await Quiet(scene, people).pass_by()
        scene.witness.violations += [*judge(scene), *whole(scene)]
        await scene.close()
