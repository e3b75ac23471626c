"""Machines that are cut off for longer than their lease lasts, and another one that takes over."""

from __future__ import annotations

from lehr.sdk.plugin import Fencing
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.harness import OWNER
from lehr.testing.sim.random_harness import RandomHarness

_SALT = 0xFA11
"""Makes other dice of a history's seed."""

_ELSEWHERE = "there"


class Failovers:
    """When another machine takes over.

    Its dice are its own: histories without it stay as they are.
    """

    def __init__(self, harness: RandomHarness) -> None:
        """Failovers of a history, if its production keeps late writers out."""
        self._dice = dice = Dice(harness.seed ^ _SALT)
        possible = harness.profile.fencing is Fencing.NATIVE
        self._at = [dice.seconds(20.0, 900.0) for _ in range(2)] if possible and dice.happens(0.5) else []

    async def happen(self, harness: RandomHarness) -> None:
        """Play the failovers that are due."""
        now = harness.clock.monotonic()
        due = [at for at in self._at if at <= now]
        self._at = [at for at in self._at if at > now]
        for _ in due:
            await harness.alive(self._fail_over)

    async def _fail_over(self, harness: RandomHarness) -> None:
        """The machine continues, and stands by; then it takes over in turn, or goes for good."""
        cut_off, dice = harness.process, self._dice
        harness.fault(f"the machine of {cut_off.name} is cut off")
        cut_off.hold()
        harness.owner = _ELSEWHERE if harness.owner == OWNER else OWNER
        try:
            await harness.begin()
            await harness.process.pass_time(dice.seconds(0.0, 20.0))
            cut_off.release()
            await harness.process.pass_time(dice.seconds(0.0, 40.0))
            if dice.happens(0.5) and not cut_off.dead:
                await self._comes_back(harness)
        finally:
            if harness.process is not cut_off and not cut_off.gone:
                await cut_off.kill()

    async def _comes_back(self, harness: RandomHarness) -> None:
        """The machine that took over goes for good, and the one before is there again."""
        *others, cut_off, successor = harness.processes
        harness.fault(f"the machine of {successor.name} goes for good")
        await successor.kill()
        harness.processes = [*others, successor, cut_off]
        harness.owner = cut_off.owner
        while cut_off.plane.standby:
            await cut_off.pass_time(1.0)
