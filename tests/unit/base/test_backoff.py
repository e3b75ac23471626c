"""Delays between tries, and the budget that bounds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.backoff import RetryBudget, delay


def test_delays_double_up_to_the_longest() -> None:
    assert [delay(n, 1.0) for n in range(1, 6)] == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert delay(20, 1.0) == 300.0
    assert delay(10_000, 1.0) == 300.0, "many failures are no overflow"
    assert delay(3, 1.0, first=0.1, longest=0.3) == pytest.approx(0.3)


@given(st.integers(1, 1000), st.floats(0, 1))
def test_jitter_takes_at_most_half(failures: int, jitter: float) -> None:
    assert delay(failures, 1.0) / 2 <= delay(failures, jitter) <= delay(failures, 1.0)


def test_a_budget_gives_what_it_holds_and_then_says_when() -> None:
    budget = RetryBudget(capacity=3.0, per_second=2.0)
    assert [budget.take(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert budget.take(100.0) == 0.5
    assert budget.take(100.4) == pytest.approx(0.6), "the token of 100.5 is for the one that waits for it"
    assert budget.take(100.5) == 0.0


def test_of_many_that_wait_for_a_budget_no_more_come_back_at_a_time_than_it_has_tokens() -> None:
    budget = RetryBudget(capacity=3.0, per_second=2.0)
    waits = [budget.take(100.0) for _ in range(123)][3:]
    assert waits == pytest.approx([0.5 * (place + 1) for place in range(120)])
    assert max(budget.take(100.0) for _ in range(10_000)) <= 60.0


def test_a_wait_for_a_budget_lets_time_pass() -> None:
    budget = RetryBudget(capacity=1.0, per_second=5.0)
    now = 1000.1
    budget.take(now)
    for _ in range(20):
        while wait := budget.take(now):
            assert now + wait > now
            now += wait


def test_a_budget_does_not_save_more_than_it_holds() -> None:
    budget = RetryBudget(capacity=3.0, per_second=2.0)
    budget.take(0.0)
    taken = [budget.take(1e6) for _ in range(10)]
    assert taken.count(0.0) == 3


@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=200))
def test_over_any_time_no_more_is_given_than_capacity_and_rate(pauses: list[float]) -> None:
    budget = RetryBudget(capacity=5.0, per_second=10.0)
    now, given_away = 50.0, 0
    for pause in pauses:
        now += pause
        given_away += budget.take(now) == 0.0
    assert given_away <= 5.0 + 10.0 * (now - 50.0) + 1e-6
