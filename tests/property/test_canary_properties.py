"""Whatever is measured, a canary gets a verdict that can be stored, and counters add up."""

from __future__ import annotations

import json
import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from lehr.canary import CANARY, CONTROL, Judge, Judgement, Outcome, Sample, looks_of

COUNTERS = ["requests", "errors", "latency_le_0.1", "latency_le_inf"]
VALUES = st.dictionaries(st.sampled_from(COUNTERS), st.sampled_from([0.0, 1.0, 5.0, 1e3, 1e6, 1e15]))
SAMPLES = st.lists(
    st.builds(
        Sample,
        st.sampled_from([0.0, 1.0, 15.0, 30.0, 60.0, 61.5, 90.0, 120.0, 1000.0, 1e9]),
        st.sampled_from([CANARY, CONTROL]),
        st.sampled_from("ab"),
        VALUES,
    ),
    max_size=60,
).map(lambda samples: sorted(samples, key=lambda sample: sample.time))


@given(SAMPLES, st.sampled_from([1.0, 60.0, 3600.0]), st.sampled_from([1.01, 1.25, 100.0]))
def test_any_samples_have_a_verdict_that_is_plain_data(
    samples: list[Sample], every: float, margin: float
) -> None:
    judgement = Judgement(Judge(margin=margin), COUNTERS)
    for look in looks_of(samples, every, 60.0, 300.0):
        judgement.add(look)
    verdict = judgement.verdict()
    document = json.loads(msgspec.json.encode(verdict))
    assert document["verdict"] in ("PASS", "FAIL", "INCONCLUSIVE")
    assert (document["decided_at"] is None) == (verdict.verdict is Outcome.INCONCLUSIVE)
    for metric in verdict.metrics:
        assert math.isfinite(metric.e_fail)
        assert math.isfinite(metric.e_pass)
        assert metric.fail_margin >= metric.margin >= metric.pass_margin
        assert metric.reason
    if not {CANARY, CONTROL} <= {sample.group for sample in samples}:
        assert verdict.verdict is Outcome.INCONCLUSIVE


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=50),
    st.sampled_from([10.0, 60.0]),
    st.integers(0, 100),
)
def test_everything_that_a_counter_counts_is_in_one_look(grown: list[int], every: float, warmup: int) -> None:
    samples, value = [], 500
    for number, more in enumerate(grown):
        value += more
        samples.append(Sample(15.0 * number, CANARY, "a", {"requests": value}))
    rows = [row for look in looks_of(samples, every, warmup, 300.0) for row in look.replicas]
    assert sum(row.counts["requests"] for row in rows) == sum(grown[1:])
    assert sum(row.seconds for row in rows) == 15 * (len(grown) - 1)
