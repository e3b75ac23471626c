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


class CohortJudgement:
    """The judgement of a cohort so far.

    Attributes:
        judge: with the part of the error rate that is the cohort's.
        counted: what was judged.
    """

    def __init__(self, judge: Judge, counters: Sequence[str]) -> None:
        self.judge = judge
        self.counted: list[Counted] = []
        self._recorder = LookRecorder(judge.warmup_seconds, judge.longest_gap_seconds)
        self._judgement = Judgement(judge, counters)

    def take(self, counted: Counted) -> None:
        """Judge one more look."""
        for item in counted.samples:
            group = CANARY if item.canary else CONTROL
            self._recorder.add(Sample(counted.at, group, f"{item.unit}/{item.replica}", item.values))
        self._judgement.add(self._recorder.look(counted.at))
        self.counted.append(counted)

    def verdict(self) -> Verdict:
        """The verdict after the last look."""
        return self._judgement.verdict()


class _Judged:
    """A cohort, and the verdict on it so far."""

    def __init__(self, cohort: CohortJudgement) -> None:
        self.cohort = cohort
        self.verdict = cohort.verdict()


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
        judge = judge_of(analysis, cohort, waves)
        key = rollout.id, cohort
        judged = self._known.pop(key, None)
        if judged is None or not _continues(judged.cohort, judge, rollout.counted):
            judged = _Judged(CohortJudgement(judge, list(analysis.counters)))
        if new := rollout.counted[len(judged.cohort.counted) :]:
            for counted in new:
                judged.cohort.take(counted)
            judged.verdict = judged.cohort.verdict()
        self._known[key] = judged
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return judged.verdict


def _continues(cohort: CohortJudgement, judge: Judge, counted: tuple[Counted, ...]) -> bool:
    judged = cohort.counted
    if cohort.judge != judge or len(judged) > len(counted):
        return False
    return judged[-1:] == [*counted[len(judged) - 1 : len(judged)]]


def judge_of(analysis: CanaryAnalysis, cohort: int, waves: int) -> Judge:
    """The judge of a cohort, with its part of the error rate."""
    return replace(analysis.judge, alpha=alpha_of(analysis.judge.alpha, cohort, waves))


def alpha_of(alpha: float, cohort: int, waves: int) -> float:
    """The part of a rollout's error rate that is a cohort's, from 1.

    Each wave has the same part. Another one is for cohorts beyond that, which units make that join an earlier
    wave later: the first has half of it, the next a quarter, and so on.
    """
    part = alpha / (waves + 1)
    return part if cohort <= waves else part / 2.0 ** min(cohort - waves, 60)
