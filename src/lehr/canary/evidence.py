"""E-processes: evidence that stays valid however often it is looked at.

An e-process for a null hypothesis is a process without negative values whose expectation is at most 1 at
every stopping time while the hypothesis holds. By Ville's inequality it ever reaches 1/alpha with probability
at most alpha.

Sources:

* Howard, Ramdas, McAuliffe, Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences" (Annals
  of Statistics, 2021): mixtures over alternatives.
* Lindon, Malek, "Anytime-valid inference for multinomial count data" (NeurIPS 2022): counts of two groups,
  compared by conditioning on their sum.
* Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting" (JRSS B, 2024): one-sided
  nulls, and their confidence sequences.
* Vovk, Wang, "E-values: calibration, combination and applications" (Annals of Statistics, 2021): averages of
  e-values are e-values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

_FINE, _FINE_TO = 0.04, 1.2
_COARSER = 1.3
_WIDEST = 6.0
_SCALE = 0.4
"""Mean distance of the alternatives from the margin, as a difference of logarithms: a ratio of 1.5.

Far ones need little weight, since few events show them."""

_LARGEST = 690.0
"""Logarithm of the largest e-value that is shown: larger ones do not fit a float."""


@functools.cache
def grid(margin: float) -> tuple[float, ...]:
    """Logarithms of the ratios that are compared, fine around 1; `margin` is one of them."""
    points = [step * _FINE for step in range(1, round(_FINE_TO / _FINE) + 1)]
    distance = _FINE * _COARSER
    while points[-1] < _WIDEST:
        points.append(points[-1] + distance)
        distance *= _COARSER
    at = math.log(margin)
    both = [0.0, *points, *(-point for point in points)]
    return tuple(sorted([*(point for point in both if abs(point - at) > 1e-9), at]))


@functools.cache
def _weights(margin: float, null: int, above: bool) -> tuple[float, ...]:
    """Logarithms of the prior weights of the alternatives on one side of the grid point `null`."""
    points = grid(margin)
    chosen = range(null + 1, len(points)) if above else range(null)
    weights = []
    for index in chosen:
        left, right = points[max(index - 1, 0)], points[min(index + 1, len(points) - 1)]
        weights.append(math.exp(-abs(points[index] - points[null]) / _SCALE) * (right - left))
    total = sum(weights)
    return tuple(math.log(weight / total) for weight in weights)


class RatioLikelihood:
    """Log-likelihoods of the ratio of two groups' rates, over `grid(margin)`.

    Given the events of both groups together, each belongs to the first group with a probability that follows
    from the ratio and from the exposures of that look. So nothing has to be known about the rate itself: it
    may change with the time of day, and incidents that hit both groups cancel out.
    """

    __slots__ = ("_ratios", "margin", "points", "values")

    def __init__(self, margin: float) -> None:
        self.margin = margin
        self.points = grid(margin)
        self._ratios = [math.exp(point) for point in self.points]
        self.values: Sequence[float] = [0.0] * len(self.points)

    def add(self, first: float, second: float, share: float) -> None:
        """Take the events of both groups in a look.

        Args:
            share: exposure of the first group over that of the second.
        """
        events = first + second
        log1p = math.log1p
        self.values = [
            value + first * point - events * log1p(share * ratio)
            for value, point, ratio in zip(self.values, self.points, self._ratios, strict=True)
        ]

    def above(self, ratio: float, since: Sequence[float] | None = None) -> float:
        """Log e-value against "the true ratio is at most `ratio`"; no evidence beyond the grid.

        Args:
            since: `values` at the time from which on events count; None for the beginning.
        """
        at = math.log(ratio) - 1e-9
        null = next((index for index, point in enumerate(self.points) if point >= at), len(self.points))
        return self._evidence(null, True, since)

    def below(self, ratio: float) -> float:
        """Log e-value against "the true ratio is at least `ratio`"; no evidence beyond the grid."""
        at = math.log(ratio) + 1e-9
        return self._evidence(sum(point <= at for point in self.points) - 1, False, None)

    def interval(self, threshold: float) -> tuple[float, float]:
        """Confidence sequence: the ratios that are not rejected at the log e-value `threshold`.

        0 and inf where it is not bounded.
        """
        last = len(self.points) - 1
        likely = max(range(last + 1), key=self.values.__getitem__)
        low = self._crossing(range(min(likely, last - 1), -1, -1), True, threshold)
        high = self._crossing(range(max(likely, 1), last + 1), False, threshold)
        return (0.0 if low is None else math.exp(low)), (math.inf if high is None else math.exp(high))

    def _crossing(self, nulls: Sequence[int], above: bool, threshold: float) -> float | None:
        """Where the evidence reaches `threshold`, interpolated between points of the grid."""
        before: tuple[float, float] | None = None
        for null in nulls:
            point, found = self.points[null], self._evidence(null, above, None)
            if found >= threshold:
                if before is None or found == before[1]:
                    return point
                return before[0] + (point - before[0]) * (threshold - before[1]) / (found - before[1])
            before = point, found
        return None

    def _evidence(self, null: int, above: bool, since: Sequence[float] | None) -> float:
        """The mixture of likelihood ratios over alternatives on one side.

        It is an e-process for the whole null, however the ratio moves within it: the likelihood ratio of a
        farther alternative grows with the share, so its expectation is largest at the border of the null.
        """
        if not (0 <= null < len(self.points) - 1 if above else 0 < null < len(self.points)):
            return 0.0
        values = self.values
        chosen = slice(null + 1, None) if above else slice(None, null)
        terms: list[float]
        if since is None:
            base = values[null]
            terms = [
                value - base + weight
                for value, weight in zip(values[chosen], _weights(self.margin, null, above), strict=True)
            ]
        else:
            base = values[null] - since[null]
            terms = [
                value - former - base + weight
                for value, former, weight in zip(
                    values[chosen], since[chosen], _weights(self.margin, null, above), strict=True
                )
            ]
        return _log_sum(terms)


def rarer(events: float, exposure: float, rate: float) -> float:
    """Log e-value against "the rate is at least `rate`", of events among independent trials.

    The average of likelihood ratios of Poisson counts, whose expectations are also at most 1 for trials.
    """
    if rate <= 0 or exposure <= 0:
        return 0.0
    shares = (0.02, 0.1, 0.3, 0.6)
    terms = [events * math.log(share) + exposure * rate * (1 - share) for share in shares]
    return _log_sum(terms) - math.log(len(shares))


def shown(log_value: float) -> float:
    """An e-value from its logarithm."""
    return math.exp(min(max(log_value, -_LARGEST), _LARGEST))


def _log_sum(terms: Sequence[float]) -> float:
    most = max(terms)
    return most + math.log(sum(math.exp(term - most) for term in terms))
