"""The only door to time.

Architecture invariant: no other module reads the wall clock or sleeps on its own; a lint rule
checks it. Durations and deadlines inside the program are monotonic, so that a wall clock that jumps
delays nothing; wall time is only ever recorded, shown, and compared with calendars.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Protocol


class Clock(Protocol):
    """Source of time. Implementations: `SystemClock`, `lehr.testing.VirtualClock`."""

    def now(self) -> float:
        """Wall-clock time in seconds since the epoch (UTC). May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start. Never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Suspend the calling task for at least `seconds`."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time_ns() // 1_000 / 1e6  # so that what is written can be read back unchanged

    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        # A tenth of what `lehr why` takes; commands that only read never sleep.
        import asyncio  # noqa: PLC0415

        await asyncio.sleep(seconds)


processor_seconds = time.process_time
"""Seconds of processor time that this process has used, in all its threads."""


def iso(timestamp: float) -> str:
    """`timestamp` (seconds since the epoch) as ISO 8601 in UTC, to the second."""
    moment = dt.datetime.fromtimestamp(timestamp, tz=dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
