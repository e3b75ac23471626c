"""The evidence for one metric, look by look."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from lehr.base.text import listed
from lehr.canary.definition import Columns, Judge, Metric
from lehr.canary.evidence import RatioLikelihood, rarer, shown
from lehr.canary.group import Group, Row, row_of
from lehr.canary.look import CANARY, CONTROL, Look
from lehr.canary.outliers import without_outliers
from lehr.canary.spread import Bursts, ReplicaTotals, Spread, Swing, Swings, spread_of
from lehr.canary.verdict import MetricVerdict, Outcome

_START_EVERY = 8
"""Looks. A regression that begins later would have to outweigh all the good looks before it; so evidence is
also collected from later starts, each with its own part of the error rate."""

_FIRST_START = 0.9
"""Part of the error rate for evidence from the beginning on; the others share the rest."""

_FOR_DRAW = 0.7
"""Part of the error rate for the draw of replicas that differ; the rest is for chance in their counts.

If they do not differ, all of it is for chance. A canary fails only by evidence against both."""

_FOR_WARMUP = 0.1
"""Part of the error rate for canaries that are broken from the start."""

_FEW_DEGREES = 3
"""Replicas beyond the first of each group."""


class _Start(NamedTuple):
    """A time from which on evidence is also collected.

    Attributes:
        weight: its part of the error rate.
        surplus: events of the worse group beyond the margin until then.
    """

    number: int
    weight: float
    values: Sequence[float]
    surplus: float
    canaries: dict[str, ReplicaTotals]
    controls: dict[str, ReplicaTotals]


class _Failing(NamedTuple):
    """The strongest evidence for FAIL, over all starts.

    Attributes:
        single: the replica without which the canary is within the margin; empty if there is none.
    """

    log_evidence: float
    margin: float
    single: str = ""


class MetricEvidence:
    """Everything about one metric that its verdict needs; a fold over looks.

    Args:
        alpha: the part of the judge's error rate that is this metric's, for FAIL.
        warmup: judge the canary's warm-up instead of the time after it. It can fail, and never passes.
    """

    def __init__(
        self, judge: Judge, metric: Metric, columns: Columns, alpha: float, *, warmup: bool = False
    ) -> None:
        self.metric = metric
        self.columns = columns
        self._judge = judge
        self._alpha = alpha * (_FOR_WARMUP if warmup else 1 - _FOR_WARMUP)
        self._of_warmup = warmup
        self._warmup = None if warmup else MetricEvidence(judge, metric, columns, alpha, warmup=True)
        self._margin = max(judge.warmup_margin if warmup else 1.0, judge.margin_of(metric))
        self._negligible = judge.negligible_of(metric) if metric.worse == "higher" else 0.0
        self._likelihood = RatioLikelihood(self._margin)
        self._canary, self._control = Group(), Group()
        self._surplus = 0.0
        self._weighted = [0.0, 0.0]
        self._compared = 0
        self._at = 0.0
        self._bursts, self._swings = Bursts(), Swings()
        self._starts = [_Start(0, _FIRST_START, self._likelihood.values, 0.0, {}, {})]
        self._decided: tuple[Outcome, float] | None = None
        self._failing = _Failing(0.0, self._margin)
        self._spread = Spread(judge.replica_spread, 0.0, 1.0, 1.0)

    @property
    def outcome(self) -> Outcome:
        """The verdict after the last look."""
        return Outcome.INCONCLUSIVE if self._decided is None else self._decided[0]

    @property
    def decided_at(self) -> float | None:
        """The look since which the verdict is what it is; None if it is INCONCLUSIVE."""
        return None if self._decided is None else self._decided[1]

    def add(self, look: Look, pushed_at: float | None = None) -> None:
        """Take a look. FAIL is final, PASS is not: what passed can still fail.

        Args:
            pushed_at: when the canary got its version. Samples that may show the time before do not count.
        """
        if self.outcome is Outcome.FAIL:
            return
        if self._warmup is not None and any(item.warmup for item in look.replicas):
            self._warmup.add(look, pushed_at)
            if self._warmup.outcome is Outcome.FAIL:
                self._decided = Outcome.FAIL, look.at
                return
        since = -math.inf if pushed_at is None else pushed_at + self.metric.window + self.metric.delay
        canaries = self._rows(look, CANARY, since)
        controls = self._rows(look, CONTROL, since)
        for group, rows, others in (
            (self._canary, canaries, controls),
            (self._control, controls, canaries),
        ):
            group.see(rows, look.at, bool(others), self._judge.longest_gap_seconds)
        if self._canary.recent and self._control.recent:
            self._compare(self._canary.taken(), self._control.taken())
        self._at = look.at
        outcome = self._judged()
        if outcome is not self.outcome:
            self._decided = None if outcome is Outcome.INCONCLUSIVE else (outcome, look.at)

    def _rows(self, look: Look, group: str, since: float) -> list[Row]:
        """The replicas of a group that were measured after `since` and had something to count.

        The warm-up of canaries is compared with all controls: these have usually run for long.
        """
        any_time = self._of_warmup and group == CONTROL
        rows = (
            row_of(item, self.columns)
            for item in look.replicas
            if item.group == group
            and (any_time or item.warmup is self._of_warmup)
            and item.since(look.at) >= since
        )
        return [row for row in rows if row is not None and row.exposure > 0]

    def _compare(self, canaries: Sequence[Row], controls: Sequence[Row]) -> None:
        if self._compared and self._compared % _START_EVERY == 0:
            self._start()
        self._compared += 1
        events = [sum(row.events for row in rows) for rows in (canaries, controls)]
        exposure = [sum(row.exposure for row in rows) for rows in (canaries, controls)]
        rates = [count / of for count, of in zip(events, exposure, strict=True)]
        self._canary.add(canaries, events[0], exposure[0], rates[1])
        self._control.add(controls, events[1], exposure[1], rates[0])
        self._bursts.add((self._canary.replicas, self._control.replicas))
        if self.metric.worse == "lower":
            events.reverse()
            exposure.reverse()
        share = exposure[0] / exposure[1]
        self._likelihood.add(events[0], events[1], share)
        self._swings.add(events[0], events[1], share)
        self._surplus += events[0] - sum(events) * share * self._margin / (1 + share * self._margin)
        whole = sum(exposure)
        self._weighted[0] += events[0] * exposure[1] / whole
        self._weighted[1] += events[1] * exposure[0] / whole

    def _start(self) -> None:
        """Collect evidence from here on as well, and forget starts that are close to others."""
        number = self._compared // _START_EVERY
        weight = (1 - _FIRST_START) / (number * (number + 1))  # these add up to the rest
        self._starts.append(
            _Start(
                number,
                weight,
                self._likelihood.values,
                self._surplus,
                self._canary.copy(),
                self._control.copy(),
            )
        )
        # The older a start, the fewer are kept around it: of any age there is one, within a factor of 1.5.
        self._starts = [item for item in self._starts if number - item.number < 4 * _step(item.number)]

    def _judged(self) -> Outcome:
        self._failing = self._strongest()
        if self._failing.log_evidence >= math.log(self._fail_at()) and not self._failing.single:
            return Outcome.FAIL
        undecided = self._of_warmup or self._missing() or not self._equal()
        return Outcome.INCONCLUSIVE if undecided else Outcome.PASS

    def _strongest(self) -> _Failing:
        """The strongest evidence over all starts, each weighted by its part of the error rate.

        The first that is enough ends the search.
        """
        best: _Failing | None = None
        for start in self._starts:
            if start.number and self._surplus <= start.surplus:
                continue  # no evidence is possible
            spread = self._spread_since(start)
            error = _FOR_DRAW * self._alpha * start.weight
            drawn = max(1.0, spread.margin(error), self._swing_margin(start, spread, error))
            found = math.log(start.weight) + min(
                self._likelihood.above(self._margin, start.values),
                self._likelihood.above(drawn, start.values) + math.log(1 - _FOR_DRAW),
            )
            margin = max(self._margin, drawn)
            if not start.number:
                self._spread = spread
            enough = found >= math.log(self._fail_at())
            single = self._single(start, margin) if enough else ""
            if enough and not single:
                return _Failing(found, margin)
            if best is None or found > best.log_evidence:
                best = _Failing(found, margin, single)
        assert best is not None  # the first start is always looked at
        return best

    def _single(self, start: _Start, margin: float) -> str:
        """The replica without which the canary is within the margin; empty if there is none."""
        higher = self.metric.worse == "higher"
        states = [item.canaries for item in self._starts if item.number >= start.number]
        states.append(self._canary.replicas)
        blocks = [
            {name: item.since(before.get(name)) for name, item in after.items()}
            for before, after in itertools.pairwise(states)
        ]
        left = without_outliers(blocks, higher=higher)
        worse, better = (left.events, left.baseline) if higher else (left.baseline, left.events)
        return "" if worse > margin * better else left.replica

    def _spread_since(self, start: _Start) -> Spread:
        canaries = self._canary.since(start.canaries)
        controls = self._control.since(start.controls)
        before = self._bursts.within(self._compared - start.number * _START_EVERY)
        return spread_of(canaries, controls, self._judge.replica_spread, before)

    def _swing_margin(self, start: _Start, spread: Spread, error: float) -> float:
        if self._few and not self._swings.known:
            return max(self._margin, self._judge.warmup_margin)  # only what is far worse can be seen yet
        swing = self._swing(self._compared - start.number * _START_EVERY)
        return swing.margin(error, self._judge.replica_spread * spread.contrast)

    @property
    def _few(self) -> bool:
        """Whether there are so few replicas that little can be compared within the groups."""
        return len(self._canary.replicas) + len(self._control.replicas) - 2 <= _FEW_DEGREES

    def _swing(self, looks: int) -> Swing:
        """Swings of the ratio; with more replicas than a few, bursts show between them instead."""
        return self._swings.over(looks) if self._few else Swing(0.0, 1.0)

    def _fail_at(self) -> float:
        return 1 / self._alpha

    def _pass_margin(self) -> float:
        """Below the margin: a lucky draw must not pass."""
        margin = self._judge.margin_of(self.metric)
        return margin / max(self._spread.doubt(), self._swing(self._compared).doubt())

    def _equal(self) -> bool:
        needed = math.log(1 / self._judge.alpha)
        return self._likelihood.below(self._pass_margin()) >= needed or self._log_negligible() >= needed

    def _log_negligible(self) -> float:
        return rarer(self._canary.events, self._canary.exposure, self._negligible)

    def _missing(self) -> str:
        """The data that is missing, without which nothing can pass; empty if nothing is."""
        for name, group in ((CANARY, self._canary), (CONTROL, self._control)):
            if group.stale(self._at):
                return f"{name} replicas have had no new `{self.columns.of}` for {group.unseen} looks"
        present = len(self._canary.last)
        if 2 * present < self._canary.most:
            names = " and ".join(f"`{name}`" for name in self.columns.names())
            return f"only {present} of {self._canary.most} canary replicas have new {names}"
        for name, group in ((CANARY, self._canary), (CONTROL, self._control)):
            if not group.exposure:
                counters = listed(self.columns.names())
                return f"canary and control have not been counted at the same time yet: {counters}"
            if group.exposure < self._judge.minimum_requests:
                return (
                    f"{name} has {group.exposure:,.0f} `{self.columns.of}`, "
                    f"fewer than the minimum of {self._judge.minimum_requests:,.0f}"
                )
            if group.seconds < self._judge.minimum_seconds:
                return (
                    f"samples of {name} cover {group.seconds:,.0f} s, "
                    f"less than the minimum of {self._judge.minimum_seconds:,.0f} s"
                )
            if group.events > group.exposure:
                return f"{name} has more events than `{self.columns.of}`: is one of them in another unit?"
        return ""

    def verdict(self) -> MetricVerdict:
        """The verdict after the last look."""
        if self._warmup is not None and self._warmup.outcome is Outcome.FAIL:
            return self._warmup.verdict()
        first, second = self._weighted
        ratio = first / second if second else None
        low, high = (
            self._likelihood.interval(math.log(self._fail_at())) if self._compared else (0.0, math.inf)
        )
        return MetricVerdict(
            name=self.metric.name,
            verdict=self.outcome,
            margin=self._judge.margin_of(self.metric),
            fail_margin=self._failing.margin,
            pass_margin=self._pass_margin(),
            ratio=ratio,
            interval=(low, None if high == math.inf else high),
            e_fail=shown(self._failing.log_evidence),
            fail_at=self._fail_at(),
            e_pass=shown(self._likelihood.below(self._pass_margin())),
            pass_at=1 / self._judge.alpha,
            e_negligible=shown(self._log_negligible()),
            spread=self._spread.measured,
            canary=self._canary.totals(),
            control=self._control.totals(),
            decided_at=self.decided_at,
            reason=self._reason(low, high),
        )

    def _reason(self, low: float, high: float) -> str:
        if self.outcome is Outcome.FAIL:
            when = " while it starts" if self._of_warmup else ""
            return f"the canary is worse by more than a factor of {self._failing.margin:.3g}{when}"
        if self.outcome is Outcome.PASS:
            if self._likelihood.below(self._pass_margin()) >= math.log(1 / self._judge.alpha):
                return f"the canary is not worse by a factor of {self._margin:.3g}"
            return f"the canary's rate is below {self._negligible:.3g}, which is negligible"
        if missing := self._missing():
            return missing
        if self._failing.single:
            return f"replica {self._failing.single} is worse, but the others are within the margin"
        if not self._canary.events + self._control.events:
            return "there were no events in either group, and too little exposure to call that negligible"
        bounds = "not bounded above" if high == math.inf else f"between {low:.2f} and {high:.2f}"
        below, above = self._pass_margin(), self._failing.margin
        return f"the ratio is {bounds}; to pass it must be below {below:.3g}, to fail above {above:.3g}"


def _step(number: int) -> int:
    """The largest power of two that divides `number`; everything divides 0."""
    return number & -number if number else 1 << 62
