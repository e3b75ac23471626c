"""Places on an axis: within its ends for every value, in their order, and with round marks."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.page.plots import Axis, decades, path

NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_every_value_has_a_place_between_the_ends(low: float, high: float, value: float) -> None:
    assert 48 <= Axis(low, high, 48, 628).place(value) <= 628


@given(st.lists(NUMBERS, min_size=2, max_size=5))
def test_greater_values_are_further_along(values: list[float]) -> None:
    axis = Axis(min(values), max(values), 172, 12)
    places = [axis.place(value) for value in sorted(values)]
    assert places == sorted(places, reverse=True)


def test_equal_ends_have_everything_in_the_middle() -> None:
    assert Axis(5, 5, 0, 100).place(7) == 50
    assert Axis(5, 5, 0, 100).times(8) == ()


@given(st.integers(0, 2 * 10**9), st.floats(0.1, 1e8), st.integers(2, 12))
def test_marks_are_round_few_and_in_order(low: int, length: float, most: int) -> None:
    axis = Axis(low, low + length, 0, 600)
    marks = axis.times(most)
    assert len(marks) <= most
    assert [mark.value for mark in marks] == sorted({mark.value for mark in marks})
    assert all(axis.low <= mark.value <= axis.high for mark in marks)
    assert all(mark.value == int(mark.value) for mark in marks)


@pytest.mark.parametrize(("seconds", "step"), [(7, 1), (50, 10), (400, 60), (86_400, 21_600), (1e6, 172_800)])
def test_marks_are_at_round_times(seconds: float, step: float) -> None:
    marks = Axis(0, seconds, 0, 600).times(8)
    assert {later.value - mark.value for mark, later in itertools.pairwise(marks)} == {step}


@pytest.mark.parametrize("value", [0.0, 1e-300, 1.0])
def test_less_than_one_is_no_evidence(value: float) -> None:
    assert decades(value) == 0.0
    assert decades(1000.0) == pytest.approx(3.0)
    assert math.isfinite(decades(1e300))


def test_a_path_has_a_point_for_each_value() -> None:
    assert path([(48.04, 12), (628.0, 172.26)]) == "48,12 628,172.3"
