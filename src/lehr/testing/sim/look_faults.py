"""Looks at simulated production that go wrong."""

from __future__ import annotations

import asyncio

from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError, WaitingError
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import LookFault

LOOK_TIMEOUT = 5.0


async def suffer(fault: LookFault | None, clock: Clock, dice: Dice, garble: str) -> None:
    """Fail or take time as `fault` has it.

    Args:
        garble: is added to messages.
    """
    match fault:
        case LookFault.TRANSIENT:
            raise TransientError("no connection", why=garble)
        case LookFault.STALL:
            raise StalledError("this cannot be compared", fix="fix the access rights")
        case LookFault.WAIT:
            raise WaitingError("busy", until=clock.now() + 5.0)
        case LookFault.PAST:
            raise WaitingError("busy", until=clock.now() - 5.0)
        case LookFault.RAISE:
            raise ValueError("a mistake in the plugin" + garble)
        case LookFault.HANG:
            await asyncio.Event().wait()
        case LookFault.SLOW:
            await clock.sleep(dice.seconds(0.0, LOOK_TIMEOUT * 0.9))


def blinded_by(other: str) -> str:
    """The error of a look that fails because `other` is missing."""
    return f"it is reached through {other}, which is not there"
