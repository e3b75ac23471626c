"""Readings, and what several looks stand for: nothing but good answers lets pushes through."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.model.monitoring import (
    Cause,
    MetricError,
    MetricHistory,
    Question,
    Reading,
    Sample,
    after,
    hold_of,
    reading_of,
)

NOW = 1_800_000_000.0
AT_MOST = Question("prometheus", "errors", at_most=0.05)
ALERTS = Question("prometheus", alerts=(("severity", "page"),))


def read(*values: object, question: Question = AT_MOST, at: float | None = None) -> Reading:
    samples = [Sample(value, f"series-{place}", at) for place, value in enumerate(values)]
    return reading_of(question, samples, NOW)


@pytest.mark.parametrize("value", [0.05, 0, -1.0, 0.0])
def test_a_value_within_its_bounds_is_good(value: float) -> None:
    reading = read(value, at=NOW)
    assert (reading.cause, reading.value, reading.sampled_at) == (Cause.GOOD, value, NOW)


def test_a_reading_says_what_was_read_and_which_values_are_good() -> None:
    question = msgspec.structs.replace(AT_MOST, at_least=0.01)
    reading = read(0.06, question=question)
    assert (reading.source, reading.question, reading.at) == ("prometheus", "errors", NOW)
    assert (reading.value, reading.bounds) == (0.06, "at least 0.01 and at most 0.05")
    assert reading.message == "the value is above 0.05"
    assert read(0.0, question=question).message == "the value is below 0.01"


def test_every_series_must_be_within_the_bounds_and_the_worst_is_named() -> None:
    reading = read(0.01, 0.2, 0.1)
    assert (reading.cause, reading.value, reading.series) == (Cause.OUT_OF_BOUNDS, 0.2, "series-1")


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ([], Cause.NO_DATA),
        ([float("nan")], Cause.NOT_A_NUMBER),
        ([float("inf")], Cause.NOT_A_NUMBER),
        ([float("-inf")], Cause.NOT_A_NUMBER),
        ([10**400], Cause.NOT_A_NUMBER),
        ([-(10**400)], Cause.NOT_A_NUMBER),
        (["0.01"], Cause.NOT_A_NUMBER),
        ([None], Cause.NOT_A_NUMBER),
        ([[0.01]], Cause.NOT_A_NUMBER),
        ([True], Cause.NOT_A_NUMBER),
        ([0.01, float("nan")], Cause.NOT_A_NUMBER),
        ([float("nan"), 0.01], Cause.NOT_A_NUMBER),
    ],
)
def test_what_is_no_number_is_never_good(values: list[Any], cause: Cause) -> None:
    reading = read(*values)
    assert reading.cause is cause
    assert reading.cause.missing
    assert reading.message


def test_a_reading_can_be_stored_whatever_the_answer_has() -> None:
    question = msgspec.structs.replace(AT_MOST, at_most=None, at_least=0.0)
    reading = reading_of(question, [Sample(10**30, "a\n" * 1000)], NOW)
    assert (reading.cause, reading.value) == (Cause.GOOD, 1e30)
    assert len(reading.series) <= 300
    assert "\n" not in reading.series
    assert msgspec.json.decode(msgspec.json.encode(reading), type=Reading) == reading


def test_without_bounds_a_value_must_be_true() -> None:
    question = Question("status", value="/healthy")
    assert read(True, question=question).cause is Cause.GOOD
    assert read(True, False, question=question).cause is Cause.OUT_OF_BOUNDS
    assert read(1, question=question).cause is Cause.NOT_A_NUMBER
    assert read("true", question=question).cause is Cause.NOT_A_NUMBER


@pytest.mark.parametrize(
    ("at", "cause"),
    [
        (NOW - 121, Cause.STALE),
        (NOW + 121, Cause.CLOCK),
        (float("nan"), Cause.UNREADABLE),
        (float("inf"), Cause.UNREADABLE),
        (NOW - 119, Cause.GOOD),
        (NOW + 119, Cause.GOOD),
    ],
)
def test_an_old_value_and_one_of_the_future_do_not_count(at: float, cause: Cause) -> None:
    assert read(0.01, at=at).cause is cause


def test_one_old_series_among_fresh_ones_does_not_count() -> None:
    samples = [Sample(0.01, "a", NOW), Sample(0.01, "b", NOW - 600)]
    assert reading_of(AT_MOST, samples, NOW).cause is Cause.STALE


def test_an_alert_that_fires_says_since_when() -> None:
    firing = [Sample(True, "Slow", NOW), Sample(True, "HighErrors", NOW - 300)]
    reading = reading_of(ALERTS, firing, NOW)
    assert (reading.cause, reading.series, reading.sampled_at) == (Cause.FIRING, "HighErrors", NOW - 300)
    assert reading.message == "alert HighErrors fires since 2027-01-15T07:55:00Z, and 1 more"
    assert reading_of(ALERTS, [], NOW).cause is Cause.GOOD


def test_an_alert_that_fires_for_days_is_not_stale() -> None:
    assert reading_of(ALERTS, [Sample(True, "Old", NOW - 10**6)], NOW).cause is Cause.FIRING


def looks(*found: float | MetricError | None, every: float = 30.0) -> MetricHistory:
    history = None
    for place, value in enumerate(found):
        answer = value if isinstance(value, MetricError) else [Sample(value)]
        history = after(history, reading_of(AT_MOST, answer, NOW + place * every))
    assert history is not None
    return history


def hold(*found: float | MetricError | None, late: float = 0.0) -> Any:
    history = looks(*found)
    return hold_of(AT_MOST, history, history.last.at + late)


DOWN = MetricError(Cause.TIMEOUT, "no answer within 10s")


def test_good_looks_hold_nothing() -> None:
    assert hold(0.01) is None
    assert hold(0.01, 0.02, 0.03) is None


def test_a_look_that_is_not_good_holds_at_once() -> None:
    assert hold(0.01, 0.06).message == "the value is above 0.05 since 2027-01-15T08:00:30Z"
    assert hold(0.01, DOWN).cause is Cause.TIMEOUT


def test_the_message_stays_the_same_while_the_cause_does() -> None:
    assert hold(0.01, 0.06) == hold(0.01, 0.06, 0.07, 0.5)


@pytest.mark.parametrize("trouble", [0.06, DOWN, None])
def test_a_flapping_answer_lets_nothing_through_between_its_looks(trouble: Any) -> None:
    assert hold(0.01, trouble, 0.01).cause is Cause.GOOD
    assert hold(0.01, trouble, 0.01, 0.01).cause is Cause.GOOD
    assert hold(0.01, trouble, 0.01, 0.01, trouble, 0.01, 0.01) is not None
    assert hold(0.01, trouble, 0.01, 0.01, 0.01) is None


def test_an_answer_that_nobody_renewed_is_too_old() -> None:
    assert hold(0.01, late=119) is None
    assert hold(0.01, late=121).cause is Cause.STALE
    assert hold(0.01, late=121).until == NOW + 121 + 30
    assert hold(0.01, late=-121).cause is Cause.STALE  # the clock was set back


@given(st.lists(st.sampled_from([0.01, 0.06, DOWN, None, float("nan")]), min_size=1, max_size=20))
def test_pushes_pass_only_after_good_looks(found: list[Any]) -> None:
    good = [value == 0.01 for value in found]
    passes = all(good[-3:]) if not all(good) else True
    assert (hold(*found) is None) is passes


@given(
    st.lists(
        st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans(), st.lists(st.integers())),
        max_size=5,
    ),
    st.one_of(st.none(), st.floats()),
)
def test_no_answer_breaks_a_look_and_every_good_one_is_within_bounds(values: list[Any], at: Any) -> None:
    reading = read(*values, at=at)
    if reading.cause is Cause.GOOD:
        assert values
        assert all(value <= 0.05 for value in values)
    else:
        assert reading.message
    assert msgspec.json.decode(msgspec.json.encode(reading), type=Reading) == reading
