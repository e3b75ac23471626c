"""The tenures of a process one after another, and the times between them."""

from __future__ import annotations

from collections.abc import Callable

from lehr.base.clock import Clock
from lehr.base.errors import TransientError
from lehr.base.log import Log
from lehr.control.tenure import Tenure
from lehr.enforce.enforcer import LeaseHeldError
from lehr.model.asset import Partition
from lehr.model.writes import LeaseLostError

log = Log()

LOOK_AGAIN_SECONDS = 5.0
"""After a failure, until the next attempt."""

_SOON_SECONDS = 0.1
_STARTING = "the store has not answered yet"


class StandingByError(TransientError):
    """This process does nothing, because another one enforces the partition."""


class Tenures:
    """Takes the lease, and stands by while another process has it.

    Attributes:
        current: the last tenure; it may not have begun, or be over.
        standby: why this process does nothing; empty while it enforces.
    """

    def __init__(self, new: Callable[[], Tenure], partition: Partition, owner: str, clock: Clock) -> None:
        """`new` makes a tenure that has not begun; `owner` is as in `control.parts.Parts`."""
        self.current = new()
        self.standby = _STARTING
        self._new = new
        self._partition = partition
        self._owner = owner
        self._clock = clock

    @property
    def known(self) -> bool:
        """False until the store has answered who has the lease."""
        return self.standby != _STARTING

    def require(self) -> None:
        """Raise a `StandingByError` unless this process enforces."""
        if self.standby:
            raise StandingByError(
                "this process does not enforce the partition", code="CTL136", why=self.standby
            )

    async def take(self) -> None:
        """Begin a tenure as soon as no other process has the lease."""
        while True:
            try:
                await self.current.begin(self._owner)
            except LeaseHeldError as error:
                if error.what != self.standby:
                    self.standby = error.what
                    log.warning("standing by", partition=self._partition, why=error.what)
                left = error.until - self._clock.now()
                await self._clock.sleep(min(max(left, _SOON_SECONDS), LOOK_AGAIN_SECONDS))
            else:
                self.standby = ""
                return

    async def stand_by(self, lost: LeaseLostError) -> None:
        """Stop what acts under the lease that was lost, and take it back when it is free.

        Raises:
            LeaseLostError: a process with the same owner has taken it: they would take it from each other
                forever.
        """
        if lost.owner == self._owner:
            raise lost
        self.standby = lost.what
        log.warning("the lease is lost; standing by", partition=self._partition, why=str(lost))
        await self.current.end()
        await self._retake()
        log.warning("the lease is taken again", partition=self._partition)

    async def _retake(self) -> None:
        while True:
            ended, self.current = self.current, self._new()
            ended.enforcer.end_waits()  # those who began to wait after it stopped
            try:
                await self.take()
            except TransientError as error:
                log.warning("the lease cannot be taken; retrying", error=str(error))
            else:
                return
            await self.current.end()
            await self._clock.sleep(LOOK_AGAIN_SECONDS)
