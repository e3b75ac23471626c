"""One random history: intent, production, people and machines misbehave, and then leave it be.

In the first phase anything may happen, and every write and push is judged as it comes (safety); now
and then nothing happens for a while, and whatever is then held must still be held by something. In
the second phase, faults stay only where they can harm nothing else, and everything else must
settle within a bounded time (liveness).
"""

from __future__ import annotations

import asyncio

from lehr.testing.sim import encounters, final_phase, people, trouble
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.sim.verdict import judge, whole
from lehr.testing.virtual import run

LEAST_EVENTS = 200
"""A history continues until so much has happened; its quiet phase adds to that."""

_LONGEST = 100_000.0
"""Seconds after which a history must be over."""

_QUIET = 0.1
"""How likely nothing happens for a while after a step."""


class History(RandomHarness):
    """Plays one history."""

    @property
    def violations(self) -> list[str]:
        """Rules that were broken, one line each, with the rule's id."""
        return [*self.witness.violations, *self.production.broken]

    def play(self) -> None:
        """Play it to its end, and judge the final state."""
        run(self._main, seed=self.seed)

    async def _main(self) -> None:
        async with asyncio.timeout(_LONGEST):
            await self.open()
            dice, taken = self.dice, 0
            steps = [*people.steps(), *trouble.steps(self), *encounters.steps(self)]
            while taken < self.profile.steps or len(self.trace.events) < LEAST_EVENTS:
                taken += 1
                await self.alive(dice.pick(steps))
                await self.alive(
                    lambda harness: harness.process.pass_time(dice.pick((0.0, 0.1, 1.0, 5.0, 30.0)))
                )
                if dice.happens(_QUIET):
                    await self.alive(RandomHarness.quiet_period)
            await final_phase.pass_by(self)
            self.witness.violations += [*judge(self), *whole(self)]
            await self.close()
