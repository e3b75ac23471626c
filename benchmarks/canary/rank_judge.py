"""A judge like that of Kayenta: a rank test with a limit of effect, at fixed times.

It compares one value per minute and group, the rate over all replicas, as a query of a dashboard gives it.
The canary fails if its values are larger by Mann and Whitney (98 %, with the correction for ties) and their
mean is more than 1.25 times that of the controls, the same margin as Lehr's. Missing values are left out. It
judges each half hour everything since the start; the first FAIL is final.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.canary_judge import rank_test
from lehr.canary import CANARY, CONTROL, Look, Outcome

EVERY = 30
"""Looks."""


def rank_judge(looks: Sequence[Look], every: int = EVERY) -> Outcome:
    """The verdict."""
    for end in range(every, len(looks) + 1, every):
        rates = [_rates(looks[:end], group) for group in (CANARY, CONTROL)]
        if rank_test(*rates):
            return Outcome.FAIL
    known = looks and all(_rates(looks, group) for group in (CANARY, CONTROL))
    return Outcome.PASS if known else Outcome.INCONCLUSIVE


def _rates(looks: Sequence[Look], group: str) -> list[float]:
    found = []
    for look in looks:
        sums: defaultdict[str, float] = defaultdict(float)
        for item in look.replicas:
            if item.group == group and {"requests", "errors"} <= item.counts.keys():
                for name, count in item.counts.items():
                    sums[name] += count
        if sums["requests"]:
            found.append(sums["errors"] / sums["requests"])
    return found
