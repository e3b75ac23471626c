"""The sequel of some random histories: events that meet after everything has settled.

It has dice of its own, so a history is the same up to here with and without a sequel.
In a world at rest, one cause has one effect: an asset that does not settle again was forgotten then.
"""

from __future__ import annotations

from lehr.control.messages import Retry
from lehr.testing.sim import people, removal_encounters, timely_encounters
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.final_phase import blocking_controls, come_to_rest, settle
from lehr.testing.sim.random_harness import RandomHarness, Step
from lehr.testing.sim.sequel_encounters import ENCOUNTERS, LAST
from lehr.testing.sim.verdict import judge

_SALT = 0x5E9E1
"""Makes other dice of a history's seed."""

_SHARE = 0.3
_ENCOUNTERS = 2


def has_sequel(seed: int) -> bool:
    """Whether the history of `seed` has one, if nothing goes wrong before and its clock does not jump."""
    return Dice(seed ^ _SALT).happens(_SHARE)


def encounters_of(seed: int) -> list[Step]:
    """The events in the sequel of `seed`, in this order."""
    dice = Dice(seed ^ _SALT ^ 1)
    removal = Dice(seed ^ _SALT ^ 2).pick(removal_encounters.ENCOUNTERS)
    timely = Dice(seed ^ _SALT ^ 3).pick(timely_encounters.ENCOUNTERS)
    return [*(dice.pick(ENCOUNTERS) for _ in range(_ENCOUNTERS)), dice.pick(LAST), removal, timely]


async def play(harness: RandomHarness) -> bool:
    """Play the sequel, if the history has one, and judge after each encounter. False if it has none."""
    if not has_sequel(harness.seed) or harness.profile.jumps or harness.broken():
        return False
    await harness.alive(_heal)
    for encounter in encounters_of(harness.seed):
        await harness.alive(encounter)
        await _calm(harness)
        harness.witness.violations += judge(harness)
        if harness.broken():
            break
    return True


async def _heal(harness: RandomHarness) -> None:
    """Nothing is in trouble any more."""
    harness.trace.note("phase", "everything has settled, and a sequel begins")
    if harness.lost:
        harness.production.heal()
        harness.lost = frozenset()
        await harness.command(Retry(selector="all"))


async def _calm(harness: RandomHarness) -> None:
    """Everything that holds assets ends, and everything settles again."""
    harness.trace.note("phase", "all is well again")
    harness.production.heal()
    harness.production.seconds, harness.production.looking = 1.0, {}
    harness.intent.calm()
    harness.edit()
    for control in blocking_controls(harness):
        await people.lift(harness, control)
    await settle(harness)
    await come_to_rest(harness)
