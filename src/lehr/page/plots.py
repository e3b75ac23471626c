"""Geometry of pictures: values to places on an axis, and the marks along it. Pure; templates draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Seconds between the marks of an axis of time, of which people think as round."""

_DAY = 86_400


class Mark(NamedTuple):
    """A mark along an axis.

    Attributes:
        at: where it is.
        value: of the axis there.
    """

    at: float
    value: float


class Axis(NamedTuple):
    """A range of values, and the range of places that shows it.

    Attributes:
        low, high: values; equal ones have all places in the middle.
        begin, end: places of these. The end may come before the beginning, as on an axis that points up.
    """

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Where a value is. One outside is at the nearer end."""
        if not self.high > self.low:
            return _rounded((self.begin + self.end) / 2)
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return _rounded(self.begin + share * (self.end - self.begin))

    def times(self, most: int) -> tuple[Mark, ...]:
        """Marks at round seconds, at most so many."""
        length = self.high - self.low
        if not length > 0:
            return ()
        step: float = next((item for item in _STEPS if length / item < most), 0)
        if not step:
            step = _DAY * math.ceil(length / _DAY / (most - 1))
        first = math.ceil(self.low / step)
        return tuple(
            Mark(self.place(number * step), number * step)
            for number in range(first, math.floor(self.high / step) + 1)
        )


def path(points: Sequence[tuple[float, float]]) -> str:
    """The `points` of an SVG polyline."""
    return " ".join(f"{_rounded(x):g},{_rounded(y):g}" for x, y in points)


def decades(value: float) -> float:
    """The decimal logarithm of evidence, from 0 on: less than 1 is not evidence."""
    return math.log10(value) if value > 1 else 0.0


def _rounded(value: float) -> float:
    return round(value, 1)
