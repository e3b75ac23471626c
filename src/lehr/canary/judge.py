"""The verdict on a canary, from looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lehr.canary.definition import Judge, Metric, columns_of, default_metrics
from lehr.canary.look import CANARY, Look
from lehr.canary.metric import MetricEvidence
from lehr.canary.verdict import Outcome, Verdict


def parts_of_alpha(metrics: Sequence[Metric]) -> list[float]:
    """The part of the error rate of each metric.

    A canary fails if one metric fails, so they share the error rate. All bounds of a histogram have the part
    of one metric: many bounds do not make errors harder to find. A canary passes only if all metrics pass, so
    for PASS each may use the whole.
    """
    subjects = [metric.histogram or (metric.name, metric.events) for metric in metrics]
    sizes = Counter(subjects)
    return [1 / (len(sizes) * sizes[subject]) for subject in subjects]


class Judgement:
    """Judges a canary look by look.

    It can be rebuilt from the looks at any time: nothing else has to be stored.

    Args:
        counters: names of the counters that exist.
        pushed_at: when the canary got its version; None for its first sample.
    """

    def __init__(self, judge: Judge, counters: Sequence[str], pushed_at: float | None = None) -> None:
        metrics = judge.metrics or default_metrics(counters)
        self._metrics = [
            MetricEvidence(judge, metric, columns_of(metric, counters), judge.alpha * part)
            for metric, part in zip(metrics, parts_of_alpha(metrics), strict=True)
        ]
        self._looks = self._restarts = 0
        self._at: float | None = None
        self._pushed_at = pushed_at

    @property
    def outcome(self) -> Outcome:
        """The verdict after the last look."""
        outcomes = [metric.outcome for metric in self._metrics]
        if Outcome.FAIL in outcomes:
            return Outcome.FAIL
        passed = bool(outcomes) and all(outcome is Outcome.PASS for outcome in outcomes)
        return Outcome.PASS if passed else Outcome.INCONCLUSIVE

    def add(self, look: Look) -> Outcome:
        """Take a look; the verdict after it. FAIL is final; PASS holds until later looks contradict it."""
        if self.outcome is not Outcome.FAIL:
            self._looks += 1
            self._restarts += look.restarts
            self._at = look.at
            if self._pushed_at is None:
                times = (item.since(look.at) for item in look.replicas if item.group == CANARY)
                self._pushed_at = min(times, default=None)
            for metric in self._metrics:
                metric.add(look, self._pushed_at)
        return self.outcome

    def verdict(self) -> Verdict:
        """The verdict after the last look, with its evidence."""
        metrics = tuple(metric.verdict() for metric in self._metrics)
        outcome = self.outcome
        deciding = [item for item in metrics if item.verdict is outcome]
        times = [item.decided_at for item in deciding if item.decided_at is not None]
        decided = None
        if times:
            decided = min(times) if outcome is Outcome.FAIL else max(times)
        reason = "; ".join(f"{item.name}: {item.reason}" for item in deciding)
        if outcome is Outcome.PASS:
            reason = "no metric is worse by its margin"
        return Verdict(
            outcome,
            None if outcome is Outcome.INCONCLUSIVE else decided,
            reason or "nothing is judged",
            metrics,
            self._at,
            self._looks,
            self._restarts,
        )


def judge(definition: Judge, looks: Iterable[Look]) -> Verdict:
    """The verdict after these looks."""
    listed = list(looks)
    counters = {name: None for look in listed for item in look.replicas for name in item.counts}
    judgement = Judgement(definition, list(counters))
    for look in listed:
        judgement.add(look)
    return judgement.verdict()
