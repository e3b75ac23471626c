"""How much do replicas differ that have nothing wrong?

Replicas differ: they run on other machines, and serve other users. With three canary replicas this alone can
raise the rate of the group by a tenth, and no amount of data makes that difference disappear. It is therefore
measured within the groups (an A/A comparison), and a canary fails only beyond what the draw of its replicas
explains. Bursts of errors in single replicas also show here: within the time that is judged, and before. With
few replicas little can be compared within the groups; then the swings of their ratio in time count as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

_PRIOR_WEIGHT = 6.0
"""The presumed spread counts as much as measuring it on this many replicas."""

_HEAVY_TAILS = 10.0
"""Most degrees of freedom of what was measured in many blocks: bursts are not normally distributed."""

_FEWEST_PAIRS = 3.0

_LARGEST = 4.0
"""Logarithm of the widest margin: a ratio of 55."""


class ReplicaTotals:
    """The contribution of one replica.

    Attributes:
        events: what was observed.
        expected: what would have been expected of it, by its share of its group's exposure in each look.
        baseline: what would have been expected of it, by the rate of the other group in each look.
    """

    __slots__ = ("baseline", "events", "expected", "exposure")

    def __init__(
        self, events: float = 0.0, expected: float = 0.0, exposure: float = 0.0, baseline: float = 0.0
    ) -> None:
        self.events = events
        self.expected = expected
        self.exposure = exposure
        self.baseline = baseline

    def copy(self) -> ReplicaTotals:
        """The totals as they are now."""
        return ReplicaTotals(self.events, self.expected, self.exposure, self.baseline)

    def since(self, former: ReplicaTotals | None) -> ReplicaTotals:
        """Without what it had contributed before."""
        if former is None:
            return self
        return ReplicaTotals(
            self.events - former.events,
            self.expected - former.expected,
            self.exposure - former.exposure,
            self.baseline - former.baseline,
        )


class Excess(NamedTuple):
    """Spread beyond that of random counts: the moments of DerSimonian and Laird (1986).

    Attributes:
        excess: sum of squared deviations, relative to what chance explains.
        information: `excess` over this is the variance of the logarithm of a replica's rate.
        degrees: degrees of freedom.
    """

    excess: float = 0.0
    information: float = 0.0
    degrees: float = 0.0

    def plus(self, other: Excess) -> Excess:
        """Both together."""
        return Excess(
            self.excess + other.excess, self.information + other.information, self.degrees + other.degrees
        )

    def times(self, factor: float) -> Excess:
        """As if the variance were that many times as large."""
        return self._replace(excess=self.excess * factor)

    @property
    def variance(self) -> float:
        """Estimated variance of the logarithm of a replica's rate."""
        return max(0.0, self.excess / self.information) if self.information > 0 else 0.0

    def weight(self, prior: float) -> float:
        """Degrees of freedom, less where counts are small: beyond chance, few events show little."""
        likely = max(self.variance, prior * prior)
        if not likely or self.information <= 0:
            return 0.0
        return self.degrees * (likely / (likely + self.degrees / self.information)) ** 2


class Spread(NamedTuple):
    """The spread of replicas.

    Attributes:
        presumed: standard deviation of the logarithm of a replica's rate, with the prior.
        measured: the same, by the replicas alone; shrunk to 0 where they had few events.
        degrees: degrees of freedom of `presumed`.
        contrast: standard deviation of the difference of two groups, in units of the spread of one replica.
    """

    presumed: float
    measured: float
    degrees: float
    contrast: float

    def margin(self, error: float) -> float:
        """The ratio that the draw of replicas alone exceeds with probability `error`."""
        return _margin(self.presumed * self.contrast, error, self.degrees)

    def doubt(self) -> float:
        """One standard deviation of the ratio, by what was measured. It does not shrink with time."""
        return math.exp(min(self.measured * self.contrast, _LARGEST))


class Swing(NamedTuple):
    """By how much the ratio of two groups swings.

    Attributes:
        deviation: standard deviation of its logarithm beyond chance.
    """

    deviation: float
    degrees: float

    def margin(self, error: float, spread: float) -> float:
        """The ratio that is exceeded with probability `error` by groups that also differ by `spread`."""
        return _margin(math.hypot(self.deviation, spread), error, self.degrees) if self.deviation else 1.0

    def doubt(self) -> float:
        """Two standard deviations of the ratio. They shrink with time, so they only delay."""
        return math.exp(min(2 * self.deviation, _LARGEST))


class _Block:
    """The events of both groups in some looks, and their ratio stratified by look (Mantel and Haenszel)."""

    __slots__ = ("first", "second", "weighted_first", "weighted_second")

    def __init__(self) -> None:
        self.first = self.second = self.weighted_first = self.weighted_second = 0.0

    def add(self, first: float, second: float, share: float) -> None:
        self.first += first
        self.second += second
        self.weighted_first += first / (1 + share)
        self.weighted_second += second * share / (1 + share)

    def ratio(self) -> tuple[float, float] | None:
        """Its logarithm, and the variance of that by chance; None without events in both."""
        if not self.first or not self.second:
            return None
        return math.log(self.weighted_first / self.weighted_second), 1 / self.first + 1 / self.second


class Swings:
    """How much the ratio of two groups changes between neighbouring blocks of 1, 2, 4, ... looks.

    Only neighbours are compared (von Neumann, 1941): a regression that begins is one change, not many.
    """

    def __init__(self) -> None:
        self._looks = 0
        self._blocks: list[_Block] = []
        self._before: list[tuple[float, float] | None] = []
        self._found: list[Excess] = []

    def add(self, first: float, second: float, share: float) -> None:
        """Take the events of a look, as for `RatioLikelihood.add`."""
        self._looks += 1
        if self._looks & (self._looks - 1) == 0:
            self._blocks.append(_Block())
            self._before.append(None)
            self._found.append(Excess())
        for scale, block in enumerate(self._blocks):
            block.add(first, second, share)
            if self._looks % (1 << scale) == 0:
                ratio, before = block.ratio(), self._before[scale]
                if ratio is not None and before is not None:
                    chance = before[1] + ratio[1]
                    change = Excess((ratio[0] - before[0]) ** 2 / chance - 1, 2 / chance, 1.0)
                    self._found[scale] = self._found[scale].plus(change)
                self._before[scale] = ratio
                self._blocks[scale] = _Block()

    @property
    def known(self) -> bool:
        """Whether there were enough looks to see swings."""
        return bool(self._found) and self._found[0].degrees >= _FEWEST_PAIRS

    def over(self, looks: int) -> Swing:
        """The largest swing that can be expected of a time of so many looks."""
        largest = Swing(0.0, 1.0)
        for scale, found in enumerate(self._found):
            length = 1 << scale
            if length > looks or found.degrees < _FEWEST_PAIRS:
                break
            weight = found.weight(0.0)
            variance = found.variance * weight / (_PRIOR_WEIGHT + weight) * length / looks
            if variance > largest.deviation**2:
                largest = Swing(math.sqrt(variance), min(_PRIOR_WEIGHT + weight, _HEAVY_TAILS))
        return largest


class Bursts:
    """How much replicas differ within blocks of 1, 2, 4, ... looks, on average over all blocks so far."""

    def __init__(self) -> None:
        self._looks = 0
        self._begins: list[list[dict[str, ReplicaTotals]]] = []
        self._found: list[Excess] = []

    def add(self, groups: Sequence[Mapping[str, ReplicaTotals]]) -> None:
        """Take the totals of both groups after a look."""
        self._looks += 1
        scale = 0
        while self._looks % (1 << scale) == 0:
            if scale == len(self._found):
                self._found.append(Excess())
                self._begins.append([{} for _ in groups])
            for group, begin in zip(groups, self._begins[scale], strict=True):
                block = [item.since(begin.get(name)) for name, item in group.items()]
                self._found[scale] = self._found[scale].plus(excess_of(block))
            self._begins[scale] = [{name: item.copy() for name, item in group.items()} for group in groups]
            scale += 1

    def within(self, looks: int) -> Excess:
        """Of blocks that are at most so long, and more than half of it.

        There may be only one such block. Shorter ones show more of bursts, which shrink with their number.
        """
        scale = looks.bit_length() - 1
        known = self._found[: scale + 1]
        scaled = [found.times(0.5 ** (scale - length)) for length, found in enumerate(known)]
        return max(scaled, key=lambda found: found.variance, default=Excess())


def spread_of(
    canaries: Iterable[ReplicaTotals],
    controls: Iterable[ReplicaTotals],
    prior: float,
    before: Excess,
) -> Spread:
    """The spread of replicas within their groups: what is measured now, or has been before if that is more.

    Args:
        prior: the spread that is presumed of many replicas without data.
        before: what was measured in earlier blocks of the same length.
    """
    groups = [[item for item in group if item.exposure > 0] for group in (canaries, controls)]
    now = excess_of(groups[0]).plus(excess_of(groups[1]))
    contrast = math.sqrt(sum(map(_inverse_size, groups)))
    degrees = sum(max(0, len(group) - 1) for group in groups)
    # The fewer replicas can be compared, the less shows that they differ more than is presumed.
    prior *= 1 + 1 / (2 + degrees)
    spreads = [_with_prior(now, prior, contrast)]
    if before.variance > now.variance:
        known = _with_prior(before, prior, contrast)
        spreads.append(known._replace(degrees=min(known.degrees, _HEAVY_TAILS)))
    return max(spreads, key=lambda item: item.presumed)


def _with_prior(found: Excess, prior: float, contrast: float) -> Spread:
    weight = found.weight(prior)
    known = _PRIOR_WEIGHT + weight
    presumed = math.sqrt((_PRIOR_WEIGHT * prior * prior + weight * found.variance) / known)
    measured = math.sqrt(found.variance * weight / found.degrees) if found.degrees else 0.0
    return Spread(presumed, measured, known, contrast)


def excess_of(replicas: Iterable[ReplicaTotals]) -> Excess:
    """How much the replicas of a group differ beyond chance."""
    size = 0
    total = squares = heterogeneity = 0.0
    for item in replicas:
        expected = item.expected
        if expected > 0:
            size += 1
            total += expected
            squares += expected * expected
            heterogeneity += (item.events - expected) ** 2 / expected
    if size < 2:
        return Excess()
    degrees = size - 1.0
    return Excess(heterogeneity - degrees, total - squares / total, degrees)


def _inverse_size(group: list[ReplicaTotals]) -> float:
    """One over the number of replicas, or more if their exposures differ."""
    total = sum(item.exposure for item in group)
    return sum(item.exposure * item.exposure for item in group) / total**2 if total else 1.0


def _margin(deviation: float, error: float, degrees: float) -> float:
    return math.exp(min(deviation * student_quantile(error, degrees), _LARGEST))


def student_quantile(error: float, degrees: float) -> float:
    """What Student's t exceeds with probability `error`: Hill, "Algorithm 396" (CACM, 1970)."""
    two = 2 * error
    a = 1 / (degrees - 0.5)
    b = 48 / (a * a)
    c = ((20_700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * degrees
    y = (d * two) ** (2 / degrees)
    if y > a + 0.05:
        x = NormalDist().inv_cdf(error)
        y = x * x
        if degrees < 5:
            c += 0.3 * (degrees - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = (
            (
                1 / (((degrees + 6) / (degrees * y) - 0.089 * d - 0.822) * (degrees + 2) * 3)
                + 0.5 / (degrees + 4)
            )
            * y
            - 1
        ) * (degrees + 1) / (degrees + 2) + 1 / y
    return math.sqrt(degrees * y)
