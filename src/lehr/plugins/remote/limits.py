"""Limits of providers: how many comparisons run and start, each provider on its own.

Lehr runs a limited number of comparisons of one plugin at once. One that waits for its provider must not take
the place of another provider's. So the host takes more comparisons than the plugin gets at once (`ROOM`), and
each provider has a share of them. Comparisons beyond that share are asked for again later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from lehr.base.clock import Clock
from lehr.base.errors import WaitingError
from lehr.sdk.provider import ConfiguredProvider

ROOM = 256
"""Comparisons of a plugin that may wait for their providers."""

_LONGEST_WAIT = 60.0
_MOST_SECONDS = 75.0  # more than expected: pushes count, and calls take long
_SHORTEST_WAIT = 1e-6
_BUSY_SECONDS = 5.0


class Bucket:
    """A token bucket: calls that start at once, up to one second's worth, and then at a rate. Pure.

    It may go into debt: later calls then wait longer.
    """

    def __init__(self) -> None:
        self._empty_until = 0.0

    def wait(self, rate: float, now: float, ahead: int = 0) -> float:
        """Seconds until the next call may start.

        Args:
            ahead: calls that start before it.
        """
        burst = max(0.0, 1.0 - 1.0 / rate)
        seconds = max(self._empty_until, now) + ahead / rate - burst - now
        return seconds if seconds > _SHORTEST_WAIT else 0.0

    def take(self, rate: float, now: float) -> None:
        """A call starts."""
        self._empty_until = max(self._empty_until, now) + 1.0 / rate


class Gate:
    """Lets the comparisons of one provider through, in the order in which they come.

    Attributes:
        waiting: how many wait.
        under_way: how many are let through and have not ended.
    """

    def __init__(self, id: str, clock: Clock) -> None:
        self.waiting = 0
        self.under_way = 0
        self._id = id
        self._clock = clock
        self._concurrency: int | None = None
        self._rate: float | None = None
        self._set_at = 0
        self._bucket = Bucket()
        self._line = asyncio.Lock()
        self._changed = asyncio.Event()
        self._later = 0.0

    def set(self, provider: ConfiguredProvider, incarnation: int) -> None:
        """Apply the limits of a provider as an incarnation has it, unless those of a newer one apply."""
        if incarnation >= self._set_at:
            limits = provider.payload
            self._concurrency, self._rate, self._set_at = limits.concurrency, limits.rate, incarnation
            self._changed.set()

    def charge(self) -> None:
        """A push starts: it does not wait, and later comparisons do."""
        if self._rate is not None:
            self._bucket.take(self._rate, self._clock.monotonic())

    @contextlib.asynccontextmanager
    async def passed(self, share: int) -> AsyncIterator[None]:
        """Wait for the limits; within the block, a comparison is under way.

        Args:
            share: how many may wait.

        Raises:
            WaitingError: it would take too long.
        """
        self._require_short_wait(share)
        self.waiting += 1
        try:
            async with asyncio.timeout(_MOST_SECONDS):
                await self._pass()
        except TimeoutError:
            raise self._refusal() from None
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self.under_way -= 1
            self._changed.set()

    async def _pass(self) -> None:
        async with self._line:  # its holder is the first
            while True:
                self._changed.clear()
                if self._concurrency is not None and self.under_way >= self._concurrency:
                    await self._changed.wait()
                    continue
                wait = 0.0 if self._rate is None else self._bucket.wait(self._rate, self._clock.monotonic())
                if not wait:
                    break
                await self._clock.sleep(wait)
            self.under_way += 1
            if self._rate is not None:
                self._bucket.take(self._rate, self._clock.monotonic())

    def _require_short_wait(self, share: int) -> None:
        if self.waiting >= share or self._expected() > _LONGEST_WAIT:
            raise self._refusal()

    def _expected(self) -> float:
        """Seconds that one more comparison waits for the rate."""
        if self._rate is None:
            return 0.0
        return self._bucket.wait(self._rate, self._clock.monotonic(), self.waiting)

    def _refusal(self) -> WaitingError:
        expected, rate, now = self._expected(), self._rate, self._clock.monotonic()
        if rate is None or not expected:
            return WaitingError(
                f"the provider {self._id} is busy with other comparisons",
                until=self._clock.now() + _BUSY_SECONDS,
                code="PLG181",
                fix=f"wait; or raise `concurrency` of {self._id}, if its service allows that",
            )
        # Each at a time of its own, so that they do not all come back at once.
        turn = max(self._later, now + expected)
        self._later = turn + 1.0 / rate
        return WaitingError(
            f"the provider {self._id} is compared at most {rate:g} times a second, and others are first",
            until=self._clock.now() + turn - now,
            code="PLG180",
            fix=f"wait; or raise `rate` of {self._id}, if its service allows that",
        )


class ProviderLimits:
    """The gates of a plugin's providers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gates: dict[str, Gate] = {}

    def gate(self, provider: ConfiguredProvider, incarnation: int) -> Gate | None:
        """The gate of a provider, with its limits as an incarnation has them; None without limits."""
        gate = self._gates.get(provider.id)
        if gate is None:
            if provider.payload.concurrency is None and provider.payload.rate is None:
                return None
            gate = self._gates[provider.id] = Gate(provider.id, self._clock)
        gate.set(provider, incarnation)
        return gate

    @property
    def share(self) -> int:
        """How many comparisons of one provider may wait."""
        return max(1, ROOM // max(1, len(self._gates)))
