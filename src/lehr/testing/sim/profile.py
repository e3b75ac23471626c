"""How a random history behaves."""

from __future__ import annotations

import msgspec

from lehr.sdk.plugin import Fencing
from lehr.testing.sim.dice import Dice

NEVER = 1e7
"""A resync so long that every turn must come from an event."""


class Profile(msgspec.Struct, frozen=True):
    """How a history behaves, chosen by its seed.

    Attributes:
        gentle: nothing happens that only a person or the resync can notice or fix, so that
            everything must converge by events alone.
        resync: of the plugin, in seconds.
        jumps: the wall clock jumps.
        fencing: of the provider. Only where it keeps late writers out may two control planes be
            at work; elsewhere the lock of the state folder sees to it that there is one.
        pushes: of the plugin, at once.
        steps: how many things are done, at least.
        commits, looks: seconds that a commit, or a look at the source, takes at most.
        guarded: one change may take away only so much.
    """

    gentle: bool
    resync: float
    jumps: bool
    fencing: Fencing
    pushes: int
    steps: int
    commits: float
    looks: float
    guarded: bool


def profile(dice: Dice) -> Profile:
    """How the history of these dice behaves."""
    gentle = dice.happens(0.5)
    return Profile(
        gentle,
        NEVER if gentle else dice.pick((20.0, 60.0, 200.0)),
        not gentle and dice.happens(0.3),
        dice.pick(tuple(Fencing)),
        dice.pick((1, 2, 8)),
        dice.number(24, 46),
        dice.pick((0.0, 0.0, 0.05, 0.5, 2.0)),
        dice.pick((0.0, 0.0, 1.0)),
        dice.happens(0.2),
    )
