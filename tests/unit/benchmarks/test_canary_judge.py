"""The bench of the judge of canaries: its peers are right, and its rollouts can be repeated."""

from __future__ import annotations

import pytest

from benchmarks.canary_judge import SCENARIOS, played, rank_test, upper_bound, z_value


@pytest.mark.parametrize(
    ("found", "runs", "bound"), [(0, 100, 0.0295), (3, 100, 0.0757), (0, 10_000, 0.0003)]
)
def test_the_bound_of_a_share_is_that_of_printed_tables(found: int, runs: int, bound: float) -> None:
    assert upper_bound(found, runs) == pytest.approx(bound, rel=0.02)


def test_the_z_test_is_that_of_two_shares() -> None:
    assert z_value([30, 20], [1000, 1000]) == pytest.approx(1.432, abs=0.001)
    assert z_value([0, 0], [10, 10]) == z_value([1, 1], [0, 10]) == 0.0


def test_the_rank_test_needs_both_order_and_size() -> None:
    assert rank_test([2.0] * 20, [1.0] * 20)
    assert not rank_test([1.1] * 20, [1.0] * 20), "the effect is too small"
    assert not rank_test([2.0, 2.0], [1.0, 1.0]), "there are too few values"
    assert not rank_test([], [1.0])


def test_a_scenario_gives_the_same_result_again() -> None:
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    assert len(by_name) == len(SCENARIOS)
    first = played(by_name["30 % errors"], 2)
    assert first == played(by_name["30 % errors"], 2)
    assert first.failed == [1, 1]
