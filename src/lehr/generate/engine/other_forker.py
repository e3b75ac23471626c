"""Where outputs are made once more to verify them: in an interpreter of its own, with another seed."""

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
    """An `OtherForker` for a worker: there when it has first been asked for, and again after it has died.

    Args:
        interrupt: descriptor of whoever the worker must listen to first.
        chance: makes each of them another one.
        pause: seconds from one call to the next, so that the processor is there for others.
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
        """Whether it has started, and has had its pause. Starts it."""
        if self._other is None:
            seed = int(self._chance.uniform(1, 1 << 32))
            # Objects lie where the system's allocator puts them, and sets have another order.
            self._other = OtherForker({"PYTHONHASHSEED": str(seed), "PYTHONMALLOC": "malloc"})
        return self._other.ready() and self._clock.monotonic() >= self._due

    def close(self) -> None:
        """End it, if it is there."""
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
