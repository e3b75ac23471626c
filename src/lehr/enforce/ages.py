"""Ages of dated states, by a clock that does not jump.

Dates that outlive a process come from the wall clock. From when this process first sees a date, its
age grows with monotonic time only: setting the wall clock ahead or back neither hastens nor
delays a removal.
"""

from __future__ import annotations

from lehr.base.clock import Clock


class Ages:
    """Remembers when the dates of one asset were first seen; one date for each of its aspects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun: dict[str, tuple[float, float]] = {}

    def since(self, aspect: str, at: float) -> float:
        """Start of the period that `at` dates, in seconds of the wall clock as it is set now.

        A date in the future when it is first seen counts as now: it comes from another clock.
        """
        now, monotonic = self._clock.now(), self._clock.monotonic()
        dated, begun = self._begun.get(aspect, (None, 0.0))
        if dated != at:
            begun = monotonic - max(0.0, now - at)
            self._begun[aspect] = at, begun
        return now - (monotonic - begun)
