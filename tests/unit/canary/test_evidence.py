"""E-processes: what they must never do, and what they must find."""

from __future__ import annotations

import math
import random

import pytest

from lehr.canary.evidence import RatioLikelihood, grid, rarer


def log_binomial(chance: random.Random, trials: int, share: float) -> int:
    return sum(chance.random() < share for _ in range(trials))


@pytest.mark.parametrize("margin", [1.01, 1.25, 3.0, 100.0])
def test_the_margin_is_on_the_grid(margin: float) -> None:
    points = grid(margin)
    assert math.log(margin) in points
    assert 0.0 in points
    assert list(points) == sorted(set(points))


def test_nothing_is_evidence_of_nothing() -> None:
    likelihood = RatioLikelihood(1.25)
    assert likelihood.above(1.25) == pytest.approx(0)
    assert likelihood.below(1.25) == pytest.approx(0)
    assert likelihood.interval(5.0) == (0.0, math.inf)


@pytest.mark.parametrize("share", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("above", [True, False])
def test_the_expectation_is_at_most_one_at_the_border_of_the_null(share: float, above: bool) -> None:
    """One event more, from every state: the expectation over where it falls is what it was."""
    margin = 1.25
    for first in range(6):
        for second in range(6):

            def evidence(canary: int, control: int) -> float:
                likelihood = RatioLikelihood(margin)
                likelihood.add(canary, control, share)
                return math.exp(likelihood.above(margin) if above else likelihood.below(margin))

            odds = share * margin
            after = (odds * evidence(first + 1, second) + evidence(first, second + 1)) / (1 + odds)
            assert after == pytest.approx(evidence(first, second))


@pytest.mark.parametrize(("ratio", "above"), [(1.0, True), (0.3, True), (1.5, False), (9.0, False)])
def test_within_the_null_the_expectation_only_falls(ratio: float, above: bool) -> None:
    def evidence(canary: int, control: int) -> float:
        likelihood = RatioLikelihood(1.25)
        likelihood.add(canary, control, 0.5)
        return math.exp(likelihood.above(1.25) if above else likelihood.below(1.25))

    odds = 0.5 * ratio
    for first in range(6):
        for second in range(6):
            after = (odds * evidence(first + 1, second) + evidence(first, second + 1)) / (1 + odds)
            assert after < evidence(first, second)


def test_looking_at_each_event_reaches_the_bound_in_few_runs_only() -> None:
    """Ville: with alpha of 10 %, in at most 10 % of the runs, however long one looks."""
    chance = random.Random(5)
    crossed = 0
    share = 0.5 * 1.25 / (1 + 0.5 * 1.25)
    for _ in range(300):
        likelihood = RatioLikelihood(1.25)
        for _ in range(120):
            first = log_binomial(chance, 5, share)
            likelihood.add(first, 5 - first, 0.5)
            if likelihood.above(1.25) >= math.log(10):
                crossed += 1
                break
    assert crossed <= 30


def test_evidence_grows_with_the_ratio_and_the_interval_covers_it() -> None:
    likelihood = RatioLikelihood(1.25)
    likelihood.add(300, 300, 0.5)  # twice the rate
    assert likelihood.above(1.25) > math.log(1e4)
    assert likelihood.above(1.5) < likelihood.above(1.25)
    assert likelihood.below(1.25) < 0
    low, high = likelihood.interval(math.log(100))
    assert 1.25 < low < 2 < high < 3


def test_a_ratio_beyond_the_grid_is_no_evidence() -> None:
    likelihood = RatioLikelihood(1.25)
    likelihood.add(1000, 0, 0.5)
    assert likelihood.above(1e6) == 0.0
    assert likelihood.below(1e-9) == 0.0


def test_evidence_from_a_later_start_ignores_what_was_before() -> None:
    likelihood = RatioLikelihood(1.25)
    likelihood.add(100, 400, 1.0)
    since = likelihood.values
    likelihood.add(90, 40, 1.0)
    alone = RatioLikelihood(1.25)
    alone.add(90, 40, 1.0)
    assert likelihood.above(1.25, since) == pytest.approx(alone.above(1.25))
    assert likelihood.above(1.25) < 0 < likelihood.above(1.25, since)


def test_no_events_in_much_exposure_show_that_a_rate_is_small() -> None:
    assert rarer(0, 100_000, 0.0002) > math.log(100)
    assert rarer(0, 1_000, 0.0002) < math.log(100)
    assert rarer(20, 100_000, 0.0002) < math.log(100)
    assert rarer(0, 0, 0.0002) == rarer(0, 100, 0.0) == 0.0


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_the_expectation_of_evidence_for_a_small_rate_is_at_most_one(rate: float) -> None:
    chances = [math.comb(20, k) * rate**k * (1 - rate) ** (20 - k) for k in range(21)]
    assert sum(p * math.exp(rarer(k, 20, 0.01)) for k, p in enumerate(chances)) <= 1.0
