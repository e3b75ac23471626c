"""Judges a canary: do some replicas do worse than the others, and is it more than chance?

In: samples of cumulative counters of replicas in two groups, *canary* and *control*, and the definition of a
judge. Out: at each look PASS, FAIL or INCONCLUSIVE, with the evidence for each metric.

| module | what |
|---|---|
| `definition` | what is judged: metrics, margins, error rate, minimum exposure |
| `counters` | from counters to what happened between two looks: resets, gaps, warm-up |
| `evidence` | e-processes for the ratio of two rates, and for a single rate |
| `spread` | how much replicas differ that have nothing wrong, and the margin that absorbs it |
| `outliers` | what remains without the worst replica, and without a burst of another |
| `group` | the counts of one metric in a group of replicas |
| `metric` | one metric: its evidence after each look |
| `judge` | all metrics: the verdict |
| `recording` | samples from CSV |

Architecture invariants:

* Pure: no I/O, clock or chance. A verdict is a function of the definition and of the looks so far. Looks are
  raw counts, so every verdict can be repeated from what was stored.
* Looking more often does not raise the probability of a false FAIL.
* Missing data is never evidence: without enough data the verdict is INCONCLUSIVE.
"""

from __future__ import annotations

from lehr.canary.counters import LookRecorder, looks_of
from lehr.canary.definition import Judge, Metric, default_judge
from lehr.canary.judge import Judgement, judge
from lehr.canary.look import CANARY, CONTROL, Look, ReplicaCounts, Sample
from lehr.canary.verdict import MetricVerdict, Outcome, Verdict

__all__ = [
    "CANARY",
    "CONTROL",
    "Judge",
    "Judgement",
    "Look",
    "LookRecorder",
    "Metric",
    "MetricVerdict",
    "Outcome",
    "ReplicaCounts",
    "Sample",
    "Verdict",
    "default_judge",
    "judge",
    "looks_of",
]
