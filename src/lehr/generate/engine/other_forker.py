"""Rebuilds outputs to verify them, in a separate interpreter with another hash seed."""

from __future__ import annotations

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox.forker import OtherForker
from lehr.generate.sandbox.forks import Ended, Take, Work
from lehr.generate.sandbox.meter import Overrun

_PAUSE_SECONDS = 5.0


class Elsewhere:
    """An `OtherForker` for a worker: started on first use, and again after it has died.

    Args:
        interrupt: descriptor that the worker must serve first.
        chance: makes each of them different.
        pause: seconds between two calls, which leave the processor to others.
    """

    def __init__(
        self,
        limits: SandboxLimits,
        clock: Clock,
        interrupt: int,
        chance: Chance,
        pause: float = _PAUSE_SECONDS,
    ) -> None:
        self._interrupt = interrupt
        self._chance = chance
        self._clock = clock
        self._pause = pause
        self._due = clock.monotonic()
        self._other: OtherForker | None = None
        self.run = Run(limits, clock, self._call, self._call)

    def ready(self) -> bool:
        """Whether it has started and its pause is over. Starts it."""
        if self._other is None:
            seed = int(self._chance.uniform(1, 1 << 32))
            # Objects are placed by the system's allocator, and sets have another order.
            self._other = OtherForker({"PYTHONHASHSEED": str(seed), "PYTHONMALLOC": "malloc"})
        return self._other.ready() and self._clock.monotonic() >= self._due

    def close(self) -> None:
        """End it, if it exists."""
        if self._other is not None:
            self._other.close()
            self._other = None

    def _call(self, work: Work, limits: SandboxLimits, clock: Clock, take: Take) -> Ended:
        try:
            if self._other is not None:
                return self._other.run(work, limits, clock, take, self._interrupt)
        except (EOFError, OSError):
            self.close()
        finally:
            self._due = clock.monotonic() + self._pause
        return Ended(b"", Overrun.INTERRUPTED, 0)
