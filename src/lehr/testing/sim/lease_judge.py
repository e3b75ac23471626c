"""Who may write, seen from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lehr.model.operation import Operation
from lehr.model.writes import KeepLease, ReturnLease, TakeLease

_JITTER = 1e-6  # seconds; sums of fractions differ


class LeaseJudge:
    """Invariant I5: one writer at a time, by the clocks of those who write.

    Attributes:
        epoch: of the newest lease.
    """

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        """`broken` is called with the rule and what breaks it."""
        self.epoch = 0
        self._broken = broken
        self._owner = ""
        self._until = 0.0
        self._seconds = 0.0
        self._ends = 0.0  # by the clock of the simulation

    def taken(self, write: TakeLease, answer: object) -> None:
        """A process wanted the lease."""
        others = self._owner not in ("", write.owner)
        if not isinstance(answer, int):
            if not others or write.at > self._until + _JITTER:
                self._broken("I5", f"{write.owner} is refused a lease that is free")
            return
        if others and write.at < self._until - _JITTER:
            self._broken("I5", f"{write.owner} takes the lease that {self._owner} has")
        self.epoch, self._owner = answer, write.owner
        self._lasts(write, write.seconds)

    def kept(self, write: KeepLease, answer: float) -> None:
        """A commit was made under the lease."""
        if write.epoch != self.epoch:
            self._broken("I5", f"a commit under epoch {write.epoch} of the lease, after {self.epoch}")
        self._lasts(write, answer)

    def returned(self, write: ReturnLease, answer: None) -> None:
        """A process has no use for the lease any more."""
        if write.epoch == self.epoch:
            self._until = 0.0

    def begins(self, operation: Operation, *, fenced: bool) -> None:
        """A push begins in production."""
        if operation.epoch != self.epoch:
            if not fenced:
                self._broken("I5", f"push of {operation.asset} under a lease that is lost")
        elif _now() > self._ends - self._seconds / 2 + _JITTER:
            self._broken("I5", f"push of {operation.asset} under a lease that was not renewed in time")

    def _lasts(self, write: TakeLease | KeepLease, left: float) -> None:
        self._seconds = write.seconds
        self._until = write.at + left
        self._ends = _now() + left


def _now() -> float:
    return asyncio.get_running_loop().time()
