"""The e-values of counts, computed again: binomial probabilities, a continuous prior, and all outcomes."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from lehr.canary.evidence import RatioLikelihood
from tests.unit.canary.simulated import poisson

SCALE = 0.4
"""Of the prior: the difference of the logarithm of the ratio from the margin is exponentially distributed."""

Look = tuple[int, int, float]


def log_probability(looks: list[Look], ratio: float) -> float:
    """Of the first group's events, given those of both, in looks of (first, second, share of exposure)."""
    found = 0.0
    for first, second, share in looks:
        chance = share * ratio / (1 + share * ratio)
        found += math.log(math.comb(first + second, first))
        found += first * math.log(chance) + second * math.log(1 - chance)
    return found


def integrated(looks: list[Look], margin: float, steps: int = 2000, widest: float = 5.0) -> float:
    """Log of the likelihood ratio against the margin, integrated over the prior by Simpson's rule."""
    base = log_probability(looks, margin)
    step = widest / steps
    total = 0.0
    for number in range(steps + 1):
        beyond = number * step
        ratio = margin * math.exp(beyond)
        weight = 1 if number in (0, steps) else 4 if number % 2 else 2
        total += weight * math.exp(log_probability(looks, ratio) - base - beyond / SCALE) / SCALE
    return math.log(total * step / 3)


@pytest.mark.parametrize("seed", range(12))
def test_the_mixture_is_that_of_a_continuous_prior(seed: int) -> None:
    chance = random.Random(seed)
    margin, ratio, mean = (
        chance.choice([1.25, 1.5]),
        chance.choice([1.25, 1.5, 2, 3]),
        chance.choice([1, 8, 60]),
    )
    looks, likelihood = [], RatioLikelihood(margin)
    for _ in range(4):
        share = chance.uniform(0.2, 1.5)
        looks.append((poisson(chance, mean * share * ratio), poisson(chance, mean), share))
        likelihood.add(*looks[-1])
    assert likelihood.above(margin) == pytest.approx(integrated(looks, margin), abs=0.4)


@pytest.mark.parametrize(("ratio", "most"), [(1.25, 1 + 1e-9), (1.1, 1.0), (0.7, 1.0)])
def test_over_all_outcomes_of_two_looks_the_expectation_is_one_at_the_margin(
    ratio: float, most: float
) -> None:
    events, shares = (9, 14), (0.4, 1.3)
    expectation = 0.0
    for firsts in itertools.product(*(range(count + 1) for count in events)):
        looks = [(it, n - it, share) for it, n, share in zip(firsts, events, shares, strict=True)]
        likelihood = RatioLikelihood(1.25)
        for look in looks:
            likelihood.add(*look)
        expectation += math.exp(log_probability(looks, ratio) + likelihood.above(1.25))
    assert expectation <= most
    assert ratio != 1.25 or expectation == pytest.approx(1)


def test_the_bound_holds_for_all_paths_of_two_looks() -> None:
    """The probability, at the margin, that an e-value of 20 is reached at either look."""
    events, share, reached = (25, 25), 1.0, 0.0
    for firsts in itertools.product(*(range(count + 1) for count in events)):
        likelihood = RatioLikelihood(1.25)
        looks: list[Look] = []
        highest = 0.0
        for it, count in zip(firsts, events, strict=True):
            looks.append((it, count - it, share))
            likelihood.add(*looks[-1])
            highest = max(highest, likelihood.above(1.25))
        if highest >= math.log(20):
            reached += math.exp(log_probability(looks, 1.25))
    assert 0 < reached <= 1 / 20
