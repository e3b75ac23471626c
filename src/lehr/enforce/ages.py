"""How long something has stood, by a clock that does not jump.

What is kept over the end of a process can only be dated by the wall clock. From when this process
first sees a date, its age grows with monotonic time alone: a wall clock that is set ahead brings no
removal nearer, one that is set back puts none off.
"""

from __future__ import annotations

from lehr.base.clock import Clock


class Ages:
    """Remembers when the dates of one asset were first seen; one date for each of its aspects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[str, tuple[float, float]] = {}

    def since(self, aspect: str, at: float) -> float:
        """When that which was dated `at` began, in seconds of the wall clock as it is set now.

        A date that lies ahead when it is first seen is taken for now: it comes from another clock.
        """
        now, monotonic = self._clock.now(), self._clock.monotonic()
        dated, begun = self._begun.get(aspect, (None, 0.0))
        if dated != at:
            begun = monotonic - max(0.0, now - at)
            self._begun[aspect] = at, begun
        return now - (monotonic - begun)
