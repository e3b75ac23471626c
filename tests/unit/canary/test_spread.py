"""How much replicas differ, and the margin that absorbs it."""

from __future__ import annotations

import pytest

from lehr.canary.spread import (
    Bursts,
    Excess,
    ReplicaTotals,
    Swing,
    Swings,
    excess_of,
    spread_of,
    student_quantile,
)

NONE = Excess()


def replicas(*events: float, exposure: float = 100_000) -> list[ReplicaTotals]:
    expected = sum(events) / len(events)
    return [ReplicaTotals(item, expected, exposure) for item in events]


@pytest.mark.parametrize(
    ("error", "degrees", "value"),
    [(0.025, 10, 2.2281), (0.005, 6, 3.7074), (0.0005, 20, 3.8495), (0.1, 3, 1.6377), (1e-6, 8, 12.11)],
)
def test_quantiles_of_student(error: float, degrees: float, value: float) -> None:
    """From printed tables."""
    assert student_quantile(error, degrees) == pytest.approx(value, rel=0.01)


def test_replicas_that_differ_by_chance_have_no_spread() -> None:
    spread = spread_of(replicas(1000, 1010, 980), replicas(990, 1020, 1000, 970), 0.07, NONE)
    assert spread.measured < 0.01
    assert spread.presumed < 0.07


def test_replicas_that_differ_widen_the_margin() -> None:
    narrow = spread_of(replicas(1000, 1010, 980), replicas(990, 1020, 1000), 0.07, NONE)
    wide = spread_of(replicas(1000, 700, 1300), replicas(800, 1200, 1000), 0.07, NONE)
    assert wide.measured == pytest.approx(0.25, rel=0.2)
    assert wide.margin(0.003) > 1.5 > narrow.margin(0.003)
    assert wide.doubt() > narrow.doubt()


def test_few_events_say_little_about_the_spread() -> None:
    spread = spread_of(replicas(2, 0, 1), replicas(0, 1, 3), 0.07, NONE)
    assert spread.measured < 0.2


def test_more_replicas_need_less_of_a_margin() -> None:
    few = spread_of(replicas(100.0), replicas(100.0), 0.07, NONE)
    many = spread_of(replicas(*[100.0] * 9), replicas(*[100.0] * 9), 0.07, NONE)
    assert few.margin(0.003) > 1.4 > many.margin(0.003)


def test_a_replica_with_most_of_the_traffic_counts_as_one() -> None:
    uneven = [ReplicaTotals(1, 1, 1_000_000), *replicas(1, 1, 1, exposure=1)]
    assert spread_of(uneven, uneven, 0.07, NONE).contrast == pytest.approx(2**0.5, rel=0.01)


def test_a_judge_can_presume_that_replicas_do_not_differ() -> None:
    assert spread_of(replicas(100.0), replicas(100.0), 0.0, NONE).margin(0.001) == 1.0


def test_bursts_are_remembered_by_length() -> None:
    """A burst in one minute of sixteen shows in blocks of one minute, and less in longer ones."""
    group = {name: ReplicaTotals() for name in "abc"}
    bursts = Bursts()
    for minute in range(16):
        events = {"a": 300 if minute == 5 else 10, "b": 10, "c": 10}
        for name, count in events.items():
            group[name].events += count
            group[name].expected += sum(events.values()) / 3
            group[name].exposure += 1000
        bursts.add([group, {}])
    assert bursts.within(1).variance > bursts.within(16).variance > 0
    assert bursts.within(31) == bursts.within(16)
    assert bursts.within(16).variance >= excess_of(group.values()).variance
    assert bursts.within(0) == NONE


def swings(*ratios: float) -> Swings:
    found = Swings()
    for ratio in ratios:
        found.add(round(1000 * ratio), 1000, 1.0)
    return found


def test_a_steady_ratio_does_not_swing() -> None:
    assert swings(*[1.0, 1.02, 0.99, 1.01] * 8).over(16) == Swing(0.0, 1.0)
    assert swings(*[2.0, 2.02, 1.99, 2.01] * 8).over(16).margin(0.001, 0.1) == 1.0


def test_a_ratio_that_swings_needs_a_margin_that_shrinks_with_time() -> None:
    wild = swings(*[0.5, 1.0, 2.0, 1.0] * 8)
    assert wild.over(2).deviation > wild.over(16).deviation > 0
    assert wild.over(2).margin(0.003, 0.0) > 2
    assert wild.over(2).margin(0.003, 0.3) > wild.over(2).margin(0.003, 0.0)


def test_a_regression_that_begins_is_one_change() -> None:
    once = swings(*[1.0] * 16, *[2.0] * 16)
    often = swings(*[1.0, 2.0] * 16)
    assert often.over(1).deviation > 2 * once.over(1).deviation


def test_blocks_without_events_do_not_swing() -> None:
    found = Swings()
    for _ in range(32):
        found.add(0, 5, 1.0)
    assert found.over(32) == Swing(0.0, 1.0)
