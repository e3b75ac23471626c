"""Verdicts: what fails, what passes, and what must stay open."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from lehr.canary import (
    CANARY,
    CONTROL,
    Judge,
    Judgement,
    Look,
    Metric,
    Outcome,
    ReplicaCounts,
    Verdict,
    default_judge,
    judge,
)
from lehr.canary.definition import default_metrics
from lehr.canary.judge import parts_of_alpha
from tests.unit.canary.simulated import COUNTERS, looks

ERRORS = Judge(metrics=(Metric("errors", events="errors"),))


def verdict(found: Iterable[Look], definition: Judge = ERRORS) -> Verdict:
    return judge(definition, found)


def test_thirty_percent_errors_fail_at_the_first_look() -> None:
    found = verdict(looks(1, ratio=30))
    assert (found.verdict, found.decided_at, found.looks) == (Outcome.FAIL, 60.0, 1)
    assert found.metrics[0].ratio == pytest.approx(30, rel=0.2)
    assert "errors" in found.reason


@pytest.mark.parametrize("seed", range(5))
def test_a_doubled_rate_fails_within_minutes(seed: int) -> None:
    found = verdict(looks(seed, ratio=2.0))
    assert found.verdict is Outcome.FAIL
    assert found.decided_at is not None
    assert found.decided_at <= 10 * 60


def test_half_as_much_again_fails_with_more_data() -> None:
    assert verdict(looks(3, ratio=1.5, count=120)).verdict is Outcome.FAIL


@pytest.mark.parametrize("seed", range(3))
def test_an_equal_canary_passes(seed: int) -> None:
    found = verdict(looks(seed))
    assert found.verdict is Outcome.PASS
    assert found.decided_at is not None
    assert found.decided_at >= 5 * 60
    assert found.metrics[0].pass_margin == pytest.approx(1.25, rel=0.05)


def test_a_canary_at_the_margin_does_neither() -> None:
    assert verdict(looks(4, ratio=1.25)).verdict is Outcome.INCONCLUSIVE


def test_a_better_canary_passes() -> None:
    assert verdict(looks(5, ratio=0.3)).verdict is Outcome.PASS


def test_few_requests_never_pass() -> None:
    found = verdict(looks(6, requests=3, count=60))
    assert found.verdict is Outcome.INCONCLUSIVE
    assert found.decided_at is None
    assert "minimum" in found.reason


def test_a_short_time_never_passes() -> None:
    found = verdict(looks(7, requests=1_000_000, count=4))
    assert found.verdict is Outcome.INCONCLUSIVE
    assert found.metrics[0].e_pass > found.metrics[0].pass_at
    assert verdict(looks(7, requests=1_000_000, count=5)).verdict is Outcome.PASS


def test_no_data_never_passes() -> None:
    assert verdict([]).verdict is Outcome.INCONCLUSIVE
    assert verdict([Look(60.0 * n, ()) for n in range(100)]).verdict is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("group", [CANARY, CONTROL])
def test_one_group_alone_never_passes(group: str) -> None:
    only = [
        Look(item.at, tuple(row for row in item.replicas if row.group == group)) for item in looks(8, rate=0)
    ]
    found = verdict(only)
    assert found.verdict is Outcome.INCONCLUSIVE
    assert {CANARY: CONTROL, CONTROL: CANARY}[group] in found.reason


@pytest.mark.parametrize("group", [CANARY, CONTROL])
def test_a_group_that_stopped_reporting_does_not_pass(group: str) -> None:
    before = list(looks(9))
    after = [Look(item.at, tuple(row for row in item.replicas if row.group != group)) for item in before[40:]]
    assert verdict(before[:40]).verdict is Outcome.PASS
    found = verdict([*before[:40], *after])
    assert found.verdict is Outcome.INCONCLUSIVE
    assert group in found.reason


def test_a_counter_that_is_missing_in_the_canary_does_not_pass() -> None:
    def without(item: Look) -> Look:
        rows = (
            ReplicaCounts(row.group, row.replica, row.seconds, {"requests": row.counts["requests"]})
            if row.group == CANARY
            else row
            for row in item.replicas
        )
        return Look(item.at, tuple(rows))

    assert verdict(map(without, looks(10))).verdict is Outcome.INCONCLUSIVE


def test_no_errors_at_all_pass_once_the_rate_must_be_negligible() -> None:
    found = verdict(looks(11, rate=0, requests=2000))
    assert found.verdict is Outcome.PASS
    assert "negligible" in found.metrics[0].reason
    assert verdict(looks(11, rate=0, requests=20)).verdict is Outcome.INCONCLUSIVE


def test_fail_is_final_and_later_looks_change_nothing() -> None:
    bad, good = list(looks(12, ratio=5, count=5)), list(looks(12, count=200))
    judgement = Judgement(ERRORS, COUNTERS)
    for item in bad:
        judgement.add(item)
    before = judgement.verdict()
    assert before.verdict is Outcome.FAIL
    for item in good:
        assert judgement.add(item) is Outcome.FAIL
    assert judgement.verdict() == before


def test_what_passed_can_still_fail() -> None:
    """A regression that begins after hours of good looks does not have to outweigh them."""
    history = list(looks(13, ratio=2.0, onset=180, count=240))
    assert verdict(history[:180]).verdict is Outcome.PASS
    found = verdict(history)
    assert found.verdict is Outcome.FAIL
    assert found.decided_at is not None
    assert found.decided_at <= 210 * 60


def test_a_verdict_depends_on_the_past_only() -> None:
    history = list(looks(14, ratio=1.6, count=60))
    judgement = Judgement(ERRORS, COUNTERS)
    for number, item in enumerate(history, start=1):
        judgement.add(item)
        if number % 10 == 0:
            assert judgement.verdict() == verdict(history[:number])


def test_looks_are_plain_data_and_repeat_the_verdict() -> None:
    history = list(looks(15, ratio=1.4))
    stored = msgspec.json.encode(history)
    assert verdict(msgspec.json.decode(stored, type=list[Look])) == verdict(history)


def test_traffic_that_moves_between_the_groups_is_no_evidence() -> None:
    """Errors rise with the hour, and so does the canary's share: totals alone would show a regression."""
    chance = random.Random(16)
    history = []
    for minute in range(60):
        late = minute >= 30
        rows = []
        for group in (CANARY, CONTROL):
            served = 6000 if (group == CANARY) == late else 1000
            failed = round(served * (0.05 if late else 0.005) * chance.uniform(0.9, 1.1))
            for number in range(3):
                counts = {"requests": served, "errors": failed}
                rows.append(ReplicaCounts(group, str(number), 60.0, counts))
        history.append(Look((minute + 1) * 60.0, tuple(rows)))
    found = verdict(history)
    totals = found.metrics[0]
    assert totals.canary.rate is not None
    assert totals.control.rate is not None
    assert totals.canary.rate > 3 * totals.control.rate
    assert found.verdict is Outcome.PASS
    assert totals.ratio == pytest.approx(1, rel=0.05)


def test_one_canary_replica_with_a_burst_is_not_a_bad_canary() -> None:
    def with_burst(item: Look) -> Look:
        rows = []
        for row in item.replicas:
            more = 6 if (row.group, row.replica) == (CANARY, "0") and item.at in (600.0, 660.0) else 1
            counts = {"requests": row.counts["requests"], "errors": row.counts["errors"] * more}
            rows.append(ReplicaCounts(row.group, row.replica, row.seconds, counts))
        return Look(item.at, tuple(rows))

    assert verdict(map(with_burst, looks(17))).verdict is not Outcome.FAIL


def test_alpha_is_divided_over_metrics() -> None:
    one = verdict(looks(18, count=5))
    two = verdict(
        looks(18, count=5), Judge(metrics=(Metric("a", events="errors"), Metric("b", events="errors")))
    )
    assert two.metrics[0].fail_at == pytest.approx(2 * one.metrics[0].fail_at)
    assert two.metrics[0].pass_at == one.metrics[0].pass_at


def test_all_bounds_of_a_histogram_share_the_part_of_one_metric() -> None:
    bounds = tuple(Metric(f"above {n}", histogram="latency", above=n) for n in (0.1, 0.5, 1.0))
    parts = parts_of_alpha((Metric("errors", events="errors"), *bounds))
    assert parts == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    assert parts_of_alpha(()) == []


def test_one_bad_metric_is_enough_to_fail_and_all_are_needed_to_pass() -> None:
    def hits(item: Look) -> Look:
        rows = (
            ReplicaCounts(
                row.group,
                row.replica,
                row.seconds,
                {**row.counts, "hits": row.counts["requests"] * (0.4 if row.group == CANARY else 0.8)},
            )
            for row in item.replicas
        )
        return Look(item.at, tuple(rows))

    history = [hits(item) for item in looks(19)]
    fewer = Judge(metrics=(*ERRORS.metrics, Metric("hits", events="hits", worse="lower")))
    found = verdict(history, fewer)
    assert found.verdict is Outcome.FAIL
    assert {item.name: item.verdict for item in found.metrics}["hits"] is Outcome.FAIL
    more = Judge(metrics=(*ERRORS.metrics, Metric("hits", events="hits")))
    assert verdict(history, more).verdict is Outcome.PASS


def test_a_metric_has_a_margin_of_its_own() -> None:
    tolerant = Judge(metrics=(Metric("errors", events="errors", margin=3.0),))
    found = verdict(looks(20, ratio=1.8), tolerant)
    assert found.verdict is Outcome.PASS
    assert found.metrics[0].margin == 3.0


def test_the_default_judges_errors_and_each_bound_of_a_histogram() -> None:
    counters = [
        "requests",
        "errors",
        "bytes",
        "latency_le_0.05",
        "latency_le_1",
        "latency_le_+Inf",
        "latency_sum",
    ]
    assert [metric.name for metric in default_metrics(counters)] == [
        "errors",
        "latency_above_0.05",
        "latency_above_1",
    ]
    assert default_judge(["bytes"]).metrics == ()
    assert default_metrics(["errors"]) == (), "there is nothing to compare errors with"


def slower(ratio: float, rate: float = 0.02) -> list[Look]:
    history = []
    for item in looks(21, rate=rate, ratio=ratio, count=30):
        rows = []
        for row in item.replicas:
            served, slow = row.counts["requests"], row.counts["errors"]
            rows.append(
                ReplicaCounts(
                    row.group,
                    row.replica,
                    row.seconds,
                    {"requests": served, "latency_le_0.25": served - slow, "latency_le_inf": served},
                )
            )
        history.append(Look(item.at, tuple(rows)))
    return history


def test_slow_requests_are_judged_from_a_histogram() -> None:
    found = verdict(slower(2.0), Judge())
    assert found.verdict is Outcome.FAIL
    assert [item.name for item in found.metrics] == ["latency_above_0.25"]
    assert verdict(slower(1.0), Judge()).verdict is Outcome.PASS


def test_nothing_to_judge_does_not_pass() -> None:
    found = verdict([Look(60.0, (ReplicaCounts(CANARY, "a", 60.0, {"bytes": 1}),))], Judge())
    assert found.verdict is Outcome.INCONCLUSIVE
    assert found.metrics == ()


def test_false_alarms_stay_below_alpha() -> None:
    """Nothing is wrong, and there is a look each minute; replicas differ by 15 %."""
    runs = 60
    failed = sum(verdict(looks(seed, spread=0.15, count=90)).verdict is Outcome.FAIL for seed in range(runs))
    assert failed <= 3  # with the bound of 1 %, more has a probability below 0.1 %


def test_replicas_that_differ_widen_the_margin() -> None:
    """The canary is 1.6 times worse, but so are single controls."""
    factors = {(CONTROL, str(number)): factor for number, factor in enumerate((0.5, 1.7, 0.8, 1.2, 0.8))}
    rows = []
    for minute in range(60):
        replicas = [(CANARY, "0", 1.6), *((group, name, it) for (group, name), it in factors.items())]
        rows.append(
            Look(
                (minute + 1) * 60.0,
                tuple(
                    ReplicaCounts(group, name, 60.0, {"requests": 5000, "errors": 50 * factor})
                    for group, name, factor in replicas
                ),
            )
        )
    found = verdict(rows)
    assert found.verdict is Outcome.INCONCLUSIVE
    [metric] = found.metrics
    assert metric.spread == pytest.approx(0.46, abs=0.1)
    assert metric.fail_margin > 2
    assert metric.pass_margin < 1.25
    assert metric.interval[0] is not None
    assert metric.interval[0] > 1.25, "by the counts alone it would have failed"


def test_later_starts_share_the_error_rate() -> None:
    """Evidence just after a later start has to be stronger than at the beginning."""
    history = list(looks(22, count=200))
    judgement = Judgement(ERRORS, COUNTERS)
    for item in history:
        judgement.add(item)
    weights = [start.weight for start in judgement._metrics[0]._starts]
    assert sum(weights) < 1
    assert weights == sorted(weights, reverse=True)
    assert len(weights) < 20, "old starts are forgotten"


def one_each(burst: float) -> Verdict:
    """Every fourth minute the canary has more errors, as it always had; in other minutes the control has."""
    history = []
    for minute in range(60):
        worse = {0: CANARY, 2: CONTROL}.get(minute % 4)
        rows = (
            ReplicaCounts(group, "0", 60.0, {"requests": 1000, "errors": burst if group == worse else 10})
            for group in (CANARY, CONTROL)
        )
        history.append(Look((minute + 1) * 60.0, tuple(rows)))
    return verdict(history)


def test_with_one_replica_each_a_ratio_that_swings_needs_a_wider_margin() -> None:
    steady, swinging = one_each(10), one_each(40)
    assert steady.metrics[0].fail_margin < 1.75
    assert swinging.metrics[0].fail_margin > 2
    assert swinging.verdict is not Outcome.FAIL


def test_a_warm_up_never_passes() -> None:
    warm = [
        Look(item.at, tuple(msgspec.structs.replace(row, warmup=True) for row in item.replicas))
        for item in looks(23)
    ]
    found = verdict(warm)
    assert found.verdict is Outcome.INCONCLUSIVE
    assert found.metrics[0].canary.exposure == 0


def test_the_warm_up_of_a_canary_is_compared_with_controls_that_run_for_long() -> None:
    history = [
        Look(
            item.at,
            tuple(msgspec.structs.replace(row, warmup=row.group == CANARY) for row in item.replicas),
        )
        for item in looks(24, ratio=30)
    ]
    found = verdict(history)
    assert (found.verdict, found.decided_at) == (Outcome.FAIL, 60.0)
    assert "while it starts" in found.reason


def test_the_warm_up_has_a_part_of_the_error_rate() -> None:
    """All parts together are alpha: evidence has to be stronger than 1 / alpha by each of them."""
    history = list(looks(25, ratio=30, count=1))
    later = verdict(history).metrics[0].fail_at
    warm = Look(60.0, tuple(msgspec.structs.replace(row, warmup=True) for row in history[0].replicas))
    early = verdict([warm]).metrics[0].fail_at
    assert 1 / later + 1 / early == pytest.approx(ERRORS.alpha)
    assert early > later


def test_bounds_that_almost_nothing_exceeds_do_not_keep_a_canary_from_passing() -> None:
    found = verdict(slower(1.0, rate=0.0008), Judge())
    assert found.verdict is Outcome.PASS
    assert found.metrics[0].e_pass < found.metrics[0].pass_at
    assert verdict(slower(20.0, rate=0.0008), Judge()).verdict is Outcome.FAIL


def with_bursts(item: Look, minutes: Mapping[str, Sequence[int]], times: int = 10) -> Look:
    """More errors of some canaries in some minutes."""
    rows = []
    for row in item.replicas:
        more = times if row.group == CANARY and int(item.at / 60) in minutes.get(row.replica, ()) else 1
        counts = {"requests": row.counts["requests"], "errors": row.counts["errors"] * more}
        rows.append(ReplicaCounts(row.group, row.replica, row.seconds, counts))
    return Look(item.at, tuple(rows))


def test_one_bad_replica_of_three_is_not_a_bad_version() -> None:
    found = verdict(with_bursts(item, {"0": tuple(range(60))}) for item in looks(26, requests=6000, count=20))
    assert found.verdict is Outcome.INCONCLUSIVE


def test_two_bursts_in_two_canaries_are_not_a_bad_version() -> None:
    bursts = {"0": (10, 11, 12), "1": (14, 15, 16)}
    for seed in range(5):
        history = [with_bursts(item, bursts, 20) for item in looks(seed, requests=6000, count=30)]
        assert verdict(history).verdict is not Outcome.FAIL


def test_bursts_in_all_canaries_are_a_bad_version() -> None:
    always = tuple(range(5, 60))
    found = verdict(
        with_bursts(item, dict.fromkeys("012", always), 4) for item in looks(27, requests=6000, count=30)
    )
    assert found.verdict is Outcome.FAIL


def without(history: Iterable[Look], replicas: set[str], since: int, counter: str = "") -> list[Look]:
    """Some canaries are gone after some looks, or one of their counters."""
    changed = []
    for number, item in enumerate(history):
        rows = []
        for row in item.replicas:
            gone = number >= since and row.group == CANARY and row.replica in replicas
            if not gone:
                rows.append(row)
            elif counter:
                left = {name: value for name, value in row.counts.items() if name != counter}
                rows.append(msgspec.structs.replace(row, counts=left))
        changed.append(Look(item.at, tuple(rows)))
    return changed


@pytest.mark.parametrize("counter", ["", "errors"])
def test_most_canaries_must_have_data_to_pass(counter: str) -> None:
    history = list(looks(28, requests=6000))
    assert verdict(without(history, {"0"}, 10, counter)).verdict is Outcome.PASS
    found = verdict(without(history, {"0", "1"}, 30, counter))
    assert found.verdict is Outcome.INCONCLUSIVE
    assert "only 1 of 3" in found.reason or "only 1 of 3" in found.metrics[0].reason


def test_more_events_than_requests_do_not_pass() -> None:
    """Requests in thousands, for example."""
    history = [
        Look(
            item.at,
            tuple(
                msgspec.structs.replace(row, counts={**row.counts, "errors": row.counts["errors"] * 1000})
                for row in item.replicas
            ),
        )
        for item in looks(29)
    ]
    found = verdict(history)
    assert found.verdict is Outcome.INCONCLUSIVE
    assert "unit" in found.metrics[0].reason


def test_a_bucket_that_exceeds_all_observations_is_not_measured() -> None:
    def wrong(item: Look) -> Look:
        rows = (
            msgspec.structs.replace(row, counts={"requests": 100.0, "latency_le_0.25": 300.0})
            for row in item.replicas
        )
        return Look(item.at, tuple(rows))

    assert verdict(map(wrong, looks(30)), Judge()).verdict is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("metric", "expected"), [({}, Outcome.FAIL), ({"window": 240, "delay": 60}, Outcome.PASS)]
)
def test_a_window_that_was_bad_before_the_push_is_no_evidence(
    metric: dict[str, Any], expected: Outcome
) -> None:
    """The first five minutes still show what was before."""
    history = []
    for number, item in enumerate(looks(31, count=60)):
        history.append(with_bursts(item, dict.fromkeys("012", range(6)), 4) if number < 5 else item)
    definition = Judge(metrics=(Metric("errors", events="errors", **metric),))
    found = verdict(history, definition)
    assert found.verdict is expected
    if expected is Outcome.PASS:
        assert found.metrics[0].canary.seconds == 55 * 60


def test_nothing_from_before_the_push_counts() -> None:
    """Replicas were updated in place, and had been bad before."""
    judgement = Judgement(ERRORS, COUNTERS, pushed_at=600.0)
    for number, item in enumerate(looks(32, count=60)):
        judgement.add(with_bursts(item, dict.fromkeys("012", range(11)), 9) if number < 10 else item)
    assert judgement.outcome is Outcome.PASS
    assert judgement.verdict().metrics[0].canary.seconds == 50 * 60


def test_with_few_replicas_the_first_looks_show_only_what_is_far_worse() -> None:
    """Nothing is known yet about how much the ratio of two replicas swings."""
    first = [looks(33, requests=60_000, ratio=ratio, canaries=1, controls=1, count=2) for ratio in (4, 30)]
    assert [verdict(item).verdict for item in first] == [Outcome.INCONCLUSIVE, Outcome.FAIL]
    later = verdict(looks(33, requests=60_000, ratio=4, canaries=1, controls=1, count=8))
    assert later.verdict is Outcome.FAIL
