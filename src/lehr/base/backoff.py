"""Delays between tries: exponential, capped, with jitter.

After "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): the delay is uniform between
half of the bound and the bound, so that many losers of one race do not meet again, and no retry
follows immediately.
"""

from __future__ import annotations


def delay(failures: int, jitter: float, *, first: float = 1.0, longest: float = 300.0) -> float:
    """Seconds to wait after `failures` (>= 1) failures in a row; `jitter` is from 0 to 1."""
    bound = min(longest, first * 2.0 ** min(failures - 1, 32))
    return bound * (0.5 + 0.5 * jitter)


_SHORTEST_WAIT = 0.001
"""Seconds: a wait that is only a rounding error would not let time pass."""

_LONGEST_WAIT = 60.0


class RetryBudget:
    """A token bucket that bounds retries over all assets of one plugin.

    When a provider is down, a thousand assets' own backoffs still add up to a flood; the
    budget bounds the sum. First tries are never counted, only retries.

    Those that must wait get different times: if ten thousand came back for the next token, all but
    one would come in vain.
    """

    def __init__(self, *, capacity: float = 20.0, per_second: float = 5.0) -> None:
        self._capacity = capacity
        self._per_second = per_second
        self._tokens = capacity
        self._at: float | None = None
        self._promised = 0.0

    def take(self, monotonic: float) -> float:
        """Take a token. Returns 0.0, or the seconds after which to ask again: at most a minute."""
        if self._at is not None:
            refill = (monotonic - self._at) * self._per_second
            self._tokens = min(self._capacity, self._tokens + refill)
        self._at = monotonic
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        first = monotonic + (1.0 - self._tokens) / self._per_second
        self._promised = max(first, self._promised + 1.0 / self._per_second)
        if self._promised - monotonic > _LONGEST_WAIT:
            self._promised = first
        return max(_SHORTEST_WAIT, self._promised - monotonic)
