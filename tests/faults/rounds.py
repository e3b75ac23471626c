"""How often each fault is tried, and with what chance.

`ROUNDS=200` in the environment tries each two hundred times, `SEED=7` at other moments. Without it,
each is tried once, and those which a lesser test stands for not at all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

CONVERGES = 30.0
"""Seconds in which production is as intended again, whatever was done."""

_PATIENCE = 2 * CONVERGES

ROUNDS = int(os.environ.get("ROUNDS") or 1)

only_when_asked_for = pytest.mark.skipif("ROUNDS" not in os.environ, reason="make faults tries it")


def timeout(waits: int) -> pytest.MarkDecorator:
    """A limit that only a test which hangs comes to; it waits so often in a round for convergence."""
    return pytest.mark.timeout(60 + _PATIENCE * waits * ROUNDS)


def chance(name: str) -> random.Random:
    """The chance of one test: the same in every run with the same seed."""
    return random.Random(f"{os.environ.get('SEED') or 1} {name}")


class Tally:
    """How long production took to be as intended again, round by round."""

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self._seconds: list[float] = []

    def add(self, seconds: float) -> None:
        """One more round."""
        self._seconds.append(seconds)

    def tell(self, *more: str) -> None:
        """Print the sum, for whoever runs `make faults`."""
        print(", ".join((f"{self._fault}: {_told(self._seconds)}", *more)))  # noqa: T201


def _told(seconds: Sequence[float]) -> str:
    if not seconds:
        return "never tried"
    ordered = sorted(seconds)
    median, slowest = ordered[len(ordered) // 2], ordered[-1]
    return f"{len(ordered)} rounds, converged after {median:.1f} s, at most {slowest:.1f} s"
