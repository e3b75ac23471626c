"""Choices from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lehr.base.chance import Chance

T = TypeVar("T")


class Dice:
    """A history's random choices. The same seed makes the same choices."""

    def __init__(self, seed: int) -> None:
        self._chance = Chance(seed)

    def happens(self, probability: float) -> bool:
        return self._chance.uniform(0.0, 1.0) < probability

    def seconds(self, low: float, high: float) -> float:
        return self._chance.uniform(low, high)

    def number(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return min(int(self._chance.uniform(low, high + 1)), high)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.number(0, len(items) - 1)]
