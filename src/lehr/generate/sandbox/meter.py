"""Measures a fork's resource usage from outside, because the fork can cancel its own timers."""

from __future__ import annotations

import enum

from lehr.generate.outcome.protocol import SandboxLimits

GRACE_SECONDS = 2.0
"""Extra processor time for a fork to notice that it exceeded its limit, and report the line."""


class Overrun(enum.StrEnum):
    """The limit that ended a fork."""

    NOTHING = ""
    TIME = "time"
    PROCESSOR = "processor"
    TIME_IN_ALL = "total time"
    PROCESSOR_IN_ALL = "total processor time"
    ANSWER = "answer"
    ANSWERS = "answers"
    INTERRUPTED = "interrupted"


class Meter:
    """Measures one fork. Times are seconds since its start, without those in which it was not watched.

    An empty frame also earns time, but little, and there cannot be more frames than calls.
    """

    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits
        self._answers = 0
        self._bytes = 0
        self._answered_at = 0.0
        self._used_at_answer: float | None = 0.0

    def answer(self, size: int, at: float) -> Overrun:
        """Note a frame of `size` bytes; one too many is an overrun."""
        if self._answers == self._limits.calls:
            return Overrun.ANSWERS
        self._answers += 1
        self._bytes += size
        self._answered_at = at
        self._used_at_answer = None  # known at the next check
        return Overrun.NOTHING

    def look(self, at: float, used: float) -> Overrun:
        """Whether the fork has overrun a limit.

        Args:
            used: seconds of processor time, all threads together.
        """
        limits = self._limits
        if self._used_at_answer is None:
            self._used_at_answer = used
        if at - self._answered_at >= limits.wall_seconds:
            return Overrun.TIME
        if used - self._used_at_answer > limits.cpu_seconds + GRACE_SECONDS:
            return Overrun.PROCESSOR
        if used > limits.cpu_seconds_in_all(self._answers, self._bytes) + GRACE_SECONDS:
            return Overrun.PROCESSOR_IN_ALL
        if at > limits.wall_seconds_in_all(self._answers, self._bytes):
            return Overrun.TIME_IN_ALL
        return Overrun.NOTHING
