"""Questions about the units of a rollout, and the meaning of their answers. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lehr.model.evidence import CounterSample, MetricLook, UnitLook
from lehr.model.monitoring import Cause, MetricError, Question, Sample, number_of, reading_of
from lehr.rollouts.metrics import About, CanaryAnalysis, PolicyMetric


class Ask(NamedTuple):
    """A question about a unit.

    Attributes:
        name: of the metric, or of the counter.
        counter: whether it is one of the canary analysis.
    """

    unit: str
    name: str
    question: Question
    counter: bool = False


Findings = Mapping[Ask, Sequence[Sample] | MetricError]
"""The answer to each question of a look, or why it has none."""


def asks_about(
    metrics: Mapping[str, PolicyMetric], about: About, look: UnitLook, every: float
) -> Iterator[Ask]:
    """The questions about a unit whose assets are good.

    Args:
        look: how it is now.
        every: seconds between two looks.
    """
    for name, metric in metrics.items():
        if _is_settled(metric, look) and not _is_answered(metric, look.metrics.get(name)):
            try:
                yield Ask(about.unit, name, metric.question(about, every))
            except ValueError:
                continue  # `measured` reports it


def measured(
    metrics: Mapping[str, PolicyMetric],
    about: About,
    look: UnitLook,
    findings: Findings,
    every: float,
    now: float,
) -> dict[str, MetricLook]:
    """The finding for each metric of a unit.

    Args:
        look: how the unit is now, with what was known of its metrics before.
        findings: answers to `asks_about`. Metrics without one are unknown.
        now: wall-clock seconds.
    """
    found = {}
    for name, metric in metrics.items():
        before = look.metrics.get(name)
        if before is not None and _is_answered(metric, before):
            found[name] = before
        elif not _is_settled(metric, look):
            after = metric.window + metric.delay
            found[name] = MetricLook(None, why=f"it is measured {after:g} s after the push")
        else:
            found[name] = _measured(metric, name, about, findings, every, now)
    return found


def _measured(
    metric: PolicyMetric, name: str, about: About, findings: Findings, every: float, now: float
) -> MetricLook:
    try:
        ask = Ask(about.unit, name, metric.question(about, every))
    except ValueError as error:
        return MetricLook(None, why=str(error))
    answer = findings.get(ask)
    if answer is None:
        return MetricLook(None, why="it is not measured yet")
    reading = reading_of(ask.question, answer, now)
    value = reading.value
    shown = value if value is None or math.isfinite(value) else None
    if metric.once and reading.cause is Cause.NOT_A_NUMBER:
        return MetricLook(None, shown, f"{metric.source} has not decided yet")
    if reading.cause.missing:
        return MetricLook(None, shown, f"{metric.source}: {reading.message}")
    return MetricLook(reading.cause is Cause.GOOD, shown, reading.message)


def _is_settled(metric: PolicyMetric, look: UnitLook) -> bool:
    """Whether no value that it may answer with is from before the push."""
    return look.settled is not None and look.settled >= metric.window + metric.delay


def _is_answered(metric: PolicyMetric, look: MetricLook | None) -> bool:
    return metric.once and look is not None and look.good is not None


# --- counters -----------------------------------------------------------------------------


def counter_asks(analysis: CanaryAnalysis, about: About, every: float) -> Iterator[Ask]:
    """The questions about the counters of a unit."""
    try:
        for name, question in analysis.questions(about, every):
            yield Ask(about.unit, name, question, counter=True)
    except ValueError:
        return  # `counters_of` reports it


def counters_of(
    analysis: CanaryAnalysis, about: About, findings: Findings, *, canary: bool, every: float, now: float
) -> tuple[list[CounterSample], str]:
    """The counters of each replica of a unit, and why some are not known.

    Args:
        canary: whether the unit has the new content.
        now: wall-clock seconds.
    """
    values: dict[str, dict[str, float]] = {}
    missing = ""
    try:
        for name, question in analysis.questions(about, every):
            answer = findings.get(Ask(about.unit, name, question, counter=True))
            try:
                for sample in _samples(answer):
                    values.setdefault(_replica(sample), {})[name] = number_of(question, sample, now)
            except MetricError as error:
                missing = missing or f"{name} of {about.unit}: {analysis.source}: {error.message}"
    except ValueError as error:
        missing = str(error)
    samples = [CounterSample(canary, about.unit, replica, counts) for replica, counts in values.items()]
    return samples, missing


def _samples(answer: Sequence[Sample] | MetricError | None) -> Sequence[Sample]:
    if answer is None:
        raise MetricError(Cause.NO_DATA, "it is not asked yet")
    if isinstance(answer, MetricError):
        raise answer
    if not answer:
        raise MetricError(Cause.NO_DATA, "the answer has no value")
    if len({_replica(sample) for sample in answer}) < len(answer):
        raise MetricError(Cause.UNREADABLE, "two values of the answer are of the same replica")
    return answer


def _replica(sample: Sample) -> str:
    return sample.replica or sample.name
