"""How often the judge of canaries is right on a corpus of known truth, next to a rank test like Kayenta's.

python -m benchmarks.canary [RUNS] [SHAPE]    so many recordings of each shape, variant and level of traffic

Every recording is read as `lehr validate-canary` reads it, with a look each minute for two hours. Full
traffic is 100 requests per second and replica, with three canaries and seven controls, of which 1 % fail; a
tenth and a hundredth have as many times less. Of the variants, `good` has nothing wrong, `bad` has twice the
errors, and `mild` 1.5 times. `unknown` is a canary whose errors are not measured.

* recall: share of FAIL among bad canaries. INCONCLUSIVE does not count as found. It is reported apart, and
  so is PASS.
* precision: share of bad ones among the canaries that fail, of as many good as bad ones.
* false alarms: share of FAIL among good canaries.

Bounds are those of Clopper and Pearson, one-sided, 95 %.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.canary.corpus import FULL, SHAPES, Service, Shape, recording
from benchmarks.canary.rank_judge import rank_judge
from benchmarks.canary_judge import upper_bound
from benchmarks.figures import Peer, percentile, report, size
from lehr.canary import Judge, Judgement, Outcome, looks_of
from lehr.canary.recording import read_recording

LEVELS = {"full": FULL, "a tenth": FULL / 10, "a hundredth": FULL / 100}
PEER = "a rank test each half hour"
_EVERY = 60.0
_SOON = 3


@dataclass
class Tally:
    """How the recordings of one kind were judged.

    Attributes:
        minutes: until FAIL.
    """

    ours: Counter[Outcome] = field(default_factory=Counter)
    peer: Counter[Outcome] = field(default_factory=Counter)
    minutes: list[int] = field(default_factory=list)

    def plus(self, other: Tally) -> Tally:
        return Tally(self.ours + other.ours, self.peer + other.peer, self.minutes + other.minutes)

    @property
    def runs(self) -> int:
        return self.ours.total()


def judged(shape: Shape, variant: str, traffic: float, runs: int) -> Tally:
    """Judge so many recordings of a shape."""
    tally = Tally()
    for seed in range(runs):
        read = read_recording("recording", recording(shape, variant, Service(traffic), seed))
        assert not read.diagnostics, read.diagnostics
        judge = Judge()
        looks = list(looks_of(read.samples, _EVERY, judge.warmup_seconds, judge.longest_gap_seconds))
        judgement = Judgement(judge, read.counters)
        for number, look in enumerate(looks, start=1):
            if judgement.add(look) is Outcome.FAIL:
                tally.minutes.append(number)
                break
        tally.ours[judgement.outcome] += 1
        tally.peer[rank_judge(looks)] += 1
    return tally


def main() -> None:
    """Report each shape, and each level of traffic."""
    runs = size(40)
    shapes = [shape for shape in SHAPES if shape.name in (sys.argv[2:] or [shape.name])]
    good, bad = Tally(), Tally()
    for level, traffic in LEVELS.items():
        sums = {variant: Tally() for variant in ("good", "mild", "bad", "unknown")}
        for shape in shapes:
            if shape.traffic < 1 and traffic < FULL:
                continue  # it has the hundredth of full traffic by itself
            for variant in shape.variants:
                tally = judged(shape, variant, traffic, runs)
                sums[variant] = sums[variant].plus(tally)
                show(f"{variant}: FAIL", tally, Outcome.FAIL, level, shape=shape.name)
        for variant, tally in sums.items():
            for outcome in Outcome:
                show(f"{variant}: {outcome}", tally, outcome, level)
        show_precision(sums["bad"], sums["good"], level)
        good, bad = good.plus(sums["good"]), bad.plus(sums["bad"])
    show_precision(bad, good, "all")


def show(figure: str, tally: Tally, outcome: Outcome, level: str, **facts: Any) -> None:
    """Report the share of an outcome."""
    runs = tally.runs
    if not runs:
        return
    if outcome is Outcome.FAIL and tally.minutes:
        facts["minutes_median"] = percentile(tally.minutes, 50)
        facts["minutes_95"] = percentile(tally.minutes, 95)
        facts["within_3_minutes"] = sum(found <= _SOON for found in tally.minutes) / runs
    show_share(figure, tally.ours[outcome], runs, tally.peer[outcome] / runs, level, **facts)


def show_precision(bad: Tally, good: Tally, level: str) -> None:
    """Report the share of bad ones among those that failed."""
    peer_failed = bad.peer[Outcome.FAIL] + good.peer[Outcome.FAIL]
    failed = bad.ours[Outcome.FAIL] + good.ours[Outcome.FAIL]
    if failed:
        peer = bad.peer[Outcome.FAIL] / max(1, peer_failed)
        show_share("precision", bad.ours[Outcome.FAIL], failed, peer, level)
    show_share("recall", bad.ours[Outcome.FAIL], bad.runs, bad.peer[Outcome.FAIL] / max(1, bad.runs), level)


def show_share(figure: str, found: int, runs: int, peer: float, level: str, **facts: Any) -> None:
    """Report a share with its bounds."""
    report(
        figure,
        found / runs,
        "share",
        runs,
        peer=Peer(PEER, peer),
        traffic=level,
        at_least=round(1 - upper_bound(runs - found, runs), 4) if found else 0.0,
        at_most=round(upper_bound(found, runs), 4) if found < runs else 1.0,
        **facts,
    )


if __name__ == "__main__":
    main()
