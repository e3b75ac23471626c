"""The evidence of a canary analysis as it grew: its last point is the verdict, and the time left follows."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from lehr.canary import Outcome
from lehr.model.asset import AssetId
from lehr.rollouts.canary_trace import CanaryTrace, canary_trace
from lehr.rollouts.course import Course
from lehr.rollouts.policy import Policy
from tests.unit.rollouts.test_measuring import ANALYSIS, Rolling, Traffic, compared

WAVES = AssetId("waves")


def trace_of(rolling: Rolling) -> CanaryTrace | None:
    return canary_trace(Policy(WAVES, rolling.rules), rolling.course)


def after(looks: int, bad: float = 0.01) -> CanaryTrace:
    rolling = compared("a", "b", "c")
    for _ in range(looks):
        rolling.look(Traffic(rolling, bad=bad))
    found = trace_of(rolling)
    assert found is not None
    return found


def test_before_anything_was_counted_there_is_nothing_to_show() -> None:
    assert trace_of(compared("a", "b")) is None
    assert canary_trace(Policy(WAVES, compared("a", "b").rules), Course()) is None


def test_the_evidence_grows_until_the_last_look() -> None:
    found = after(5)
    assert (found.policy, found.cohort, found.canaries, found.ended) == (WAVES, 1, ("a",), False)
    assert set(found.controls) == {"b", "c"}
    [metric] = found.metrics
    assert [point.seconds for point in metric.points] == sorted(point.seconds for point in metric.points)
    assert metric.points[-1].seconds == found.seconds > 0
    last = metric.points[-1]
    assert (last.e_fail, last.e_pass) == (metric.now.e_fail, metric.now.e_pass)
    assert (last.ratio, last.interval) == (metric.now.ratio, metric.now.interval)
    assert metric.now == found.verdict.metrics[0]


def test_the_rule_is_that_of_the_cohort() -> None:
    rule = after(2).rule
    assert 0 < rule.alpha < ANALYSIS.judge.alpha
    assert rule.minimum_requests == ANALYSIS.judge.minimum_requests
    assert rule.minimum_seconds == ANALYSIS.judge.minimum_seconds


def test_a_worse_canary_is_decided_at_the_look_that_decides() -> None:
    found = after(30, bad=0.3)
    assert found.verdict.verdict is Outcome.FAIL
    assert found.decided_after is not None
    assert 0 <= found.decided_after <= found.seconds
    [metric] = found.metrics
    assert metric.decided_after == found.decided_after
    assert (metric.passes_in, metric.fails_in) == (None, None)
    deciding = next(point for point in metric.points if point.e_fail >= metric.now.fail_at)
    assert deciding.seconds == metric.decided_after
    assert found.ended, "the rollout was rolled back, and its evidence is still there"


def test_the_time_that_is_left_follows_from_the_evidence_so_far() -> None:
    undecided = [
        (found.seconds, metric)
        for looks in range(2, 8)
        for bad in (0.012, 0.02, 0.1)
        for found in (after(looks, bad=bad),)
        for metric in found.metrics
        if metric.now.verdict is Outcome.INCONCLUSIVE and metric.now.e_fail > 1
    ]
    assert undecided
    for seconds, metric in undecided:
        assert metric.fails_in is not None
        grown = math.log(metric.now.e_fail) * (seconds + metric.fails_in) / seconds
        assert math.isclose(grown, math.log(metric.now.fail_at))


@pytest.mark.parametrize("looks", [119, 120, 121, 400])
def test_of_many_looks_some_are_shown_and_always_the_last(looks: int) -> None:
    rolling = compared("a", "b", "c")
    for _ in range(3):
        rolling.look(Traffic(rolling))
    last = rolling.course.last
    assert last is not None
    counted = tuple(replace(last.counted[-1], at=10.0 * number) for number in range(looks))
    many = canary_trace(
        Policy(WAVES, rolling.rules), replace(rolling.course, last=replace(last, counted=counted))
    )
    assert many is not None
    points = many.metrics[0].points
    assert len(points) <= 120
    assert points[-1].seconds == many.seconds == 10.0 * (looks - 1)
