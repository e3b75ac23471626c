"""The evidence of a canary analysis as it grew, look by look, and the rule that ends it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from lehr.canary import Judge, MetricVerdict, Outcome, Verdict
from lehr.model.asset import AssetId
from lehr.model.evidence import Counted
from lehr.rollouts.course import Course
from lehr.rollouts.policy import Policy
from lehr.rollouts.verdicts import CohortJudgement, judge_of

_MOST_POINTS = 120
"""Looks whose evidence is kept: a picture is not wide enough for more."""


class CanaryPoint(msgspec.Struct, frozen=True):
    """The evidence for a metric after a look.

    Attributes:
        seconds: since the first look.
        e_fail, e_pass, ratio, interval: as in `lehr.canary.MetricVerdict`.
    """

    seconds: float
    e_fail: float
    e_pass: float
    ratio: float | None
    interval: tuple[float | None, float | None]


class CanaryMetric(msgspec.Struct, frozen=True):
    """A metric.

    Attributes:
        now: the verdict on it after the last look.
        decided_after: seconds from the first look to this verdict; None while there is none.
        passes_in, fails_in: seconds until it is decided, if evidence grows as it has done so far; None if it
            does not grow, or the metric is decided.
        points: some of the looks, oldest first; the last one among them.
    """

    now: MetricVerdict
    decided_after: float | None
    passes_in: float | None
    fails_in: float | None
    points: tuple[CanaryPoint, ...]


class StoppingRule(msgspec.Struct, frozen=True):
    """When the analysis of a cohort ends.

    Attributes:
        alpha: the part of the error rate that is this cohort's.
        minimum_requests, minimum_seconds: of each group, without which nothing passes.
    """

    alpha: float
    minimum_requests: float
    minimum_seconds: float


class CanaryTrace(msgspec.Struct, frozen=True):
    """The canary analysis of the newest cohort of a policy's newest rollout.

    Attributes:
        ended: whether the rollout is over.
        cohort: units that were updated in one wave; the first is 1.
        canaries: its units. `controls`: those that it is compared with.
        seconds: from the first look to the last.
        decided_after: seconds from the first look to the verdict; None while it is INCONCLUSIVE.
        missing: why the counters of some units were not known at the last look.
    """

    policy: AssetId
    rollout: str
    target: int
    ended: bool
    cohort: int
    canaries: tuple[str, ...]
    controls: tuple[str, ...]
    rule: StoppingRule
    verdict: Verdict
    seconds: float
    decided_after: float | None
    missing: str
    metrics: tuple[CanaryMetric, ...]


def canary_trace(policy: Policy, course: Course) -> CanaryTrace | None:
    """The canary analysis of the newest rollout; None if it has none, or nothing was counted yet."""
    analysis, rollout = policy.payload.validation.canary, course.last
    if analysis is None or rollout is None or not rollout.counted:
        return None
    counted = rollout.counted
    cohort, first, last = counted[-1].cohort, counted[0].at, counted[-1]
    judge = judge_of(analysis, cohort, len(policy.payload.target_selection.waves))
    judgement = CohortJudgement(judge, list(analysis.counters))
    points: dict[str, list[CanaryPoint]] = {}
    kept = _kept(len(counted))
    verdict = judgement.verdict()
    for number, look in enumerate(counted):
        judgement.take(look)
        if number in kept:
            verdict = judgement.verdict()
            for item in verdict.metrics:
                points.setdefault(item.name, []).append(_point(item, look.at - first))
    seconds = last.at - first
    return CanaryTrace(
        policy=policy.id,
        rollout=rollout.id,
        target=rollout.target,
        ended=rollout.ended is not None,
        cohort=cohort,
        canaries=_units(counted, canary=True),
        controls=_units(counted, canary=False),
        rule=StoppingRule(judge.alpha, judge.minimum_requests, judge.minimum_seconds),
        verdict=verdict,
        seconds=seconds,
        decided_after=None if verdict.decided_at is None else verdict.decided_at - first,
        missing=last.missing,
        metrics=tuple(_metric(item, judge, first, seconds, points[item.name]) for item in verdict.metrics),
    )


def _kept(looks: int) -> frozenset[int]:
    """The numbers of some looks, as far from each other as possible; the last is among them."""
    stride = max(1, math.ceil(looks / _MOST_POINTS))
    return frozenset(range(looks - 1, -1, -stride))


def _point(item: MetricVerdict, seconds: float) -> CanaryPoint:
    return CanaryPoint(seconds, item.e_fail, item.e_pass, item.ratio, item.interval)


def _units(counted: Iterable[Counted], *, canary: bool) -> tuple[str, ...]:
    found = {item.unit for look in counted for item in look.samples if item.canary is canary}
    return tuple(sorted(found))


def _metric(
    item: MetricVerdict, judge: Judge, first: float, seconds: float, points: Sequence[CanaryPoint]
) -> CanaryMetric:
    decided = item.verdict is not Outcome.INCONCLUSIVE
    passes = None
    if (grown := _left(item.e_pass, item.pass_at, seconds)) is not None:
        groups = (item.canary, item.control)
        passes = max(grown, *(_collected(judge, group.exposure, group.seconds, seconds) for group in groups))
    return CanaryMetric(
        now=item,
        decided_after=None if item.decided_at is None else item.decided_at - first,
        passes_in=None if decided or passes == math.inf else passes,
        fails_in=None if decided else _left(item.e_fail, item.fail_at, seconds),
        points=tuple(points),
    )


def _left(evidence: float, needed: float, seconds: float) -> float | None:
    """Seconds until there is enough evidence, whose logarithm grows evenly; None if it does not grow."""
    if evidence >= needed:
        return 0.0
    if evidence <= 1.0 or not seconds:
        return None
    return seconds * (math.log(needed) / math.log(evidence) - 1.0)


def _collected(judge: Judge, exposure: float, covered: float, seconds: float) -> float:
    """Seconds until a group has its minimum of requests and time; infinite if it collects none."""

    def until(have: float, need: float) -> float:
        if have >= need:
            return 0.0
        return seconds * (need / have - 1.0) if have else math.inf

    return max(until(exposure, judge.minimum_requests), until(covered, judge.minimum_seconds))
