"""When a program that keeps ending soon after its start may be started again. Pure."""

from __future__ import annotations

from lehr.base.backoff import delay

MOST_WITHOUT_PAUSE = 10
"""Early ends in a row after which it is started again at once: after a short trouble, all is well soon."""

_EARLY_SECONDS = 60.0
_LONGEST_PAUSE = 60.0


class EarlyEnds:
    """Counts the early ends of a program in a row. A program that has run for a minute did not end early.

    A program that crashes at each call starts well each time, so failed starts alone do not slow it down.

    Attributes:
        count: how many there were.
    """

    def __init__(self) -> None:
        self.count = 0
        self._started_at = 0.0

    def started(self, now: float) -> None:
        """It was started, at these monotonic seconds."""
        self._started_at = now

    def ended(self, now: float) -> float:
        """It has ended. Returns for how many seconds it should not be started: mostly 0, at most a minute."""
        self.count = self.count + 1 if now - self._started_at < _EARLY_SECONDS else 0
        excess = self.count - MOST_WITHOUT_PAUSE
        return delay(excess, 1.0, longest=_LONGEST_PAUSE) if excess > 0 else 0.0
