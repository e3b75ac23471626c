"""Verdicts on cohorts, from the counters that were stored. Pure, but for a memory that changes no answer."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lehr.canary import CANARY, CONTROL, Judge, Judgement, LookRecorder, Sample, Verdict
from lehr.model.evidence import Counted
from lehr.rollouts.course import Rollout
from lehr.rollouts.metrics import CanaryAnalysis

_REMEMBERED = 100
"""Cohorts that are judged at the same time: more policies than that only cost time."""


class _Judged:
    """The judgement of a cohort so far."""

    def __init__(self, judge: Judge, counters: Sequence[str]) -> None:
        self.judge = judge
        self.recorder = LookRecorder(judge.warmup_seconds, judge.longest_gap_seconds)
        self.judgement = Judgement(judge, counters)
        self.counted: list[Counted] = []
        self.verdict = self.judgement.verdict()


class Verdicts:
    """Judges each look at a cohort once, as long as it is asked about the same rollouts again."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Judged] = {}

    def of(self, analysis: CanaryAnalysis, rollout: Rollout, waves: int) -> Verdict | None:
        """The verdict on the newest cohort that was counted; None before that.

        Args:
            waves: how many there are.
        """
        if not rollout.counted:
            return None
        cohort = rollout.counted[-1].cohort
        judge = replace(analysis.judge, alpha=alpha_of(analysis.judge.alpha, cohort, waves))
        key = rollout.id, cohort
        judged = self._known.pop(key, None)
        if judged is None or judged.judge != judge or not _continues(judged.counted, rollout.counted):
            judged = _Judged(judge, list(analysis.counters))
        if new := rollout.counted[len(judged.counted) :]:
            for counted in new:
                _judge(judged, counted)
            judged.verdict = judged.judgement.verdict()
        self._known[key] = judged
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return judged.verdict


def _continues(judged: list[Counted], counted: tuple[Counted, ...]) -> bool:
    return len(judged) <= len(counted) and judged[-1:] == [*counted[len(judged) - 1 : len(judged)]]


def _judge(judged: _Judged, counted: Counted) -> None:
    for item in counted.samples:
        group = CANARY if item.canary else CONTROL
        judged.recorder.add(Sample(counted.at, group, f"{item.unit}/{item.replica}", item.values))
    judged.judgement.add(judged.recorder.look(counted.at))
    judged.counted.append(counted)


def alpha_of(alpha: float, cohort: int, waves: int) -> float:
    """The part of a rollout's error rate that is a cohort's, from 1.

    Each wave has the same part. Another one is for cohorts beyond that, which units make that join an earlier
    wave later: the first has half of it, the next a quarter, and so on.
    """
    part = alpha / (waves + 1)
    return part if cohort <= waves else part / 2.0 ** min(cohort - waves, 60)
