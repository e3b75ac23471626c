"""Verdicts, with the evidence that they rest on."""

from __future__ import annotations

import enum

import msgspec


class Outcome(enum.StrEnum):
    """A verdict in a word."""

    PASS = "PASS"  # noqa: S105 - it is not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class GroupTotals(msgspec.Struct, frozen=True):
    """The counts of a group that were compared, over all looks.

    Attributes:
        events: of the metric.
        exposure: what could have been such an event, such as requests.
        seconds: covered by samples.
        rate: events per exposure; None without exposure.
    """

    replicas: int
    events: float
    exposure: float
    seconds: float
    rate: float | None


class MetricVerdict(msgspec.Struct, frozen=True):
    """The verdict on one metric.

    Attributes:
        margin: the ratio up to which the canary counts as equal, as defined.
        fail_margin: the ratio beyond which it fails: larger than `margin` if replicas differ more than that.
        pass_margin: the ratio below which it passes: smaller than `margin` if replicas differ.
        ratio: of the rates, worse over better, stratified by look; None if it cannot be estimated.
        interval: confidence sequence of the ratio; None as a bound where there is none.
        e_fail: evidence against "the ratio is at most `fail_margin`". The metric fails at `fail_at`.
        e_pass: evidence against "the ratio is at least `pass_margin`". The metric passes at `pass_at`.
        e_negligible: evidence against "the rate is at least the negligible one"; also passes at `pass_at`.
        spread: standard deviation of the logarithm of a replica's rate, as far as it was measured.
        decided_at: time of the look since which this is the verdict; None if it is INCONCLUSIVE.
        reason: a sentence.
    """

    name: str
    verdict: Outcome
    margin: float
    fail_margin: float
    pass_margin: float
    ratio: float | None
    interval: tuple[float | None, float | None]
    e_fail: float
    fail_at: float
    e_pass: float
    pass_at: float
    e_negligible: float
    spread: float
    canary: GroupTotals
    control: GroupTotals
    decided_at: float | None
    reason: str


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a canary.

    Attributes:
        decided_at: time of the look since which this is the verdict; None if it is INCONCLUSIVE.
        at: time of the last look that was judged.
        looks: how many were judged.
        restarts: counters that started again from zero.
    """

    verdict: Outcome
    decided_at: float | None
    reason: str
    metrics: tuple[MetricVerdict, ...]
    at: float | None = None
    looks: int = 0
    restarts: int = 0
