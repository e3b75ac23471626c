"""The screen of a canary analysis: pictures of its evidence, and every number as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from lehr.base.moments import span
from lehr.page.answers import attributes
from lehr.page.plots import Axis, decades, path

WIDTH, HEIGHT = 640, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 628, 12, 172

INTERVAL_HEIGHT = 64
_MOST_DECADES = 12.0
"""Evidence beyond this is decided many times over, and would flatten the rest."""

PASS, FAIL, INCONCLUSIVE = "PASS", "FAIL", "INCONCLUSIVE"


class Line(NamedTuple):
    """The evidence for one outcome over time.

    Attributes:
        outcome: PASS or FAIL.
        points: as of an SVG polyline.
        at: the height of its last point. `needed`: of the evidence at which it is decided.
    """

    outcome: str
    points: str
    at: float
    needed: float


class Growth(NamedTuple):
    """A picture of evidence over time, with a logarithmic scale."""

    lines: tuple[Line, ...]
    times: tuple[tuple[float, str], ...]
    decades: tuple[tuple[float, str], ...]
    decided: float | None


class Interval(NamedTuple):
    """A picture of a ratio between canary and control, with a logarithmic scale.

    Attributes:
        low, high: the ends of the interval. `ratio`: the estimate; None without one.
        same: where both are equal. `margin`: up to where the canary counts as equal.
        open_end: whether the interval has no upper end.
    """

    low: float
    high: float
    ratio: float | None
    same: float
    margin: float
    open_end: bool
    marks: tuple[tuple[float, str], ...]


class MetricView(NamedTuple):
    """A metric.

    Attributes:
        rows: names and values.
        groups: canary and control, each with the values of its columns.
        growth: None before the second look.
        interval: None before anything was compared.
        words: both pictures as a sentence.
    """

    name: str
    verdict: str
    reason: str
    rows: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, ...], ...]
    growth: Growth | None
    interval: Interval | None
    words: str


class CanaryView(NamedTuple):
    """The screen.

    Attributes:
        rule: when the analysis ends, one sentence each.
    """

    headline: str
    verdict: str
    reason: str
    rows: tuple[tuple[str, str], ...]
    rule: tuple[str, ...]
    metrics: tuple[MetricView, ...]


def canary_view(answer: Any, partition: str) -> CanaryView:
    """The screen of an answer of `rollout-canary`."""
    trace = attributes(answer)
    verdict = trace.verdict
    return CanaryView(
        headline=_headline(trace),
        verdict=verdict.verdict,
        reason=verdict.reason,
        rows=tuple(_rows(trace, partition)),
        rule=tuple(_rule(trace)),
        metrics=tuple(_metric(item) for item in trace.metrics),
    )


def _headline(trace: Any) -> str:
    looks = "1 look" if trace.verdict.looks == 1 else f"{trace.verdict.looks:,} looks"
    word = {PASS: "has passed", FAIL: "has failed"}.get(trace.verdict.verdict)
    state = word or ("ended undecided" if trace.ended else "is not decided yet")
    return f"the canary of wave {trace.cohort} {state}, after {looks}"


def _rows(trace: Any, partition: str) -> Iterator[tuple[str, str]]:
    yield "Target", f"{partition}@{trace.target}"
    yield "Canary", ", ".join(trace.canaries) or "none"
    yield "Control", ", ".join(trace.controls) or "none"
    yield "Watched for", span(trace.seconds)
    if trace.decided_after is not None:
        yield "Decided", f"{span(trace.decided_after)} after the first look"
    elif not trace.ended:
        yield "Decided", _expected(trace)
    if trace.verdict.restarts:
        yield "Restarts", f"{trace.verdict.restarts:,} counters began again from zero"
    if trace.missing:
        yield "Missing", trace.missing


def _expected(trace: Any) -> str:
    """When it will be decided: it fails with the first metric that does, and passes with the last."""
    fails = [item.fails_in for item in trace.metrics if item.fails_in is not None]
    undecided = [item for item in trace.metrics if item.now.verdict == INCONCLUSIVE]
    passes = [item.passes_in for item in undecided if item.passes_in is not None]
    if len(passes) == len(undecided) and passes and (not fails or max(passes) <= min(fails)):
        return f"not yet; passes in about {span(max(passes))} if evidence grows as it has"
    if fails:
        return f"not yet; fails in about {span(min(fails))} if evidence grows as it has"
    return "not yet; evidence does not grow in either direction"


def _rule(trace: Any) -> Iterator[str]:
    rule = trace.rule
    needed = {f"{item.now.fail_at:,.0f}" for item in trace.metrics}
    limit = " or ".join(sorted(needed)) or "its limit"
    yield f"FAIL as soon as the evidence against one metric reaches {limit}"
    yield f"PASS as soon as the evidence for every metric reaches {1 / rule.alpha:,.0f}"
    yield (
        f"nothing passes before each group has {rule.minimum_requests:,.0f} events or requests and "
        f"{span(rule.minimum_seconds)} of samples"
    )
    yield (
        f"a canary with nothing wrong fails with a probability of at most {rule.alpha:.2%}, "
        "however often it is looked at"
    )


# --- one metric ----------------------------------------------------------------------


def _metric(item: Any) -> MetricView:
    now = item.now
    return MetricView(
        name=now.name,
        verdict=now.verdict,
        reason=now.reason,
        rows=tuple(_numbers(item)),
        groups=(("canary", *_group(now.canary)), ("control", *_group(now.control))),
        growth=_growth(item),
        interval=_interval(now),
        words=_words(now),
    )


def _numbers(item: Any) -> Iterator[tuple[str, str]]:
    now = item.now
    yield "Ratio", "not known yet" if now.ratio is None else f"{now.ratio:.3g} times the control"
    yield "Interval", _interval_text(now)
    bounds = f"passes below {now.pass_margin:.3g}, fails above {now.fail_margin:.3g}"
    yield "Margin", f"equal up to {now.margin:.3g}; {bounds}"
    yield "Evidence to fail", f"{now.e_fail:.3g} of {now.fail_at:,.0f}"
    yield "Evidence to pass", f"{now.e_pass:.3g} of {now.pass_at:,.0f}"
    if item.decided_after is not None:
        yield "Decided", f"{span(item.decided_after)} after the first look"
    if item.passes_in is not None:
        yield "Passes in", f"about {span(item.passes_in)}, if evidence grows as it has"
    if item.fails_in is not None:
        yield "Fails in", f"about {span(item.fails_in)}, if evidence grows as it has"


def _interval_text(now: Any) -> str:
    low, high = now.interval
    return f"{low or 0.0:.3g} to {'any ratio' if high is None else f'{high:.3g}'}"


def _group(found: Any) -> tuple[str, ...]:
    rate = "-" if found.rate is None else f"{found.rate:.3%}"
    return f"{found.replicas:,}", f"{found.events:,.0f}", f"{found.exposure:,.0f}", rate, span(found.seconds)


def _words(now: Any) -> str:
    ratio = (
        "The ratio is not known yet"
        if now.ratio is None
        else f"The canary has {now.ratio:.3g} times the rate of the control"
    )
    return (
        f"{ratio}; interval {_interval_text(now)}. Evidence to fail is {now.e_fail:.3g} of "
        f"{now.fail_at:,.0f}, evidence to pass {now.e_pass:.3g} of {now.pass_at:,.0f}."
    )


def _growth(item: Any) -> Growth | None:
    points, now = item.points, item.now
    if len(points) < 2:
        return None
    highest = max(decades(value) for point in points for value in (point.e_fail, point.e_pass))
    top = min(_MOST_DECADES, max(highest, decades(now.fail_at), decades(now.pass_at)) * 1.08)
    across = Axis(points[0].seconds, points[-1].seconds, _LEFT, _RIGHT)
    up = Axis(0.0, top, _BOTTOM, _TOP)
    lines = []
    for outcome, name, needed in (
        (FAIL, "e_fail", now.fail_at),
        (PASS, "e_pass", now.pass_at),
    ):
        values = [(across.place(point.seconds), up.place(decades(getattr(point, name)))) for point in points]
        lines.append(Line(outcome, path(values), values[-1][1], up.place(decades(needed))))
    return Growth(
        tuple(lines),
        tuple((mark.at, span(mark.value)) for mark in across.times(8)),
        tuple((up.place(value), _power(value)) for value in range(math.floor(top) + 1)),
        None if item.decided_after is None else across.place(item.decided_after),
    )


def _power(decade: int) -> str:
    return f"{10**decade:,}" if decade < 6 else f"1e{decade}"


def _interval(now: Any) -> Interval | None:
    low, high = now.interval
    if now.ratio is None and not low and high is None:
        return None
    shown = [value for value in (low, high, now.ratio, now.margin, now.pass_margin, 1.0) if value]
    least, most = min(shown) / 1.2, max(shown) * 1.2
    least, most = max(least, 0.01), min(max(most, 2.0), 1000.0)
    axis = Axis(math.log(least), math.log(most), _LEFT, _RIGHT)

    def place(value: float) -> float:
        return axis.place(math.log(max(value, least)))

    return Interval(
        low=place(low or 0.0),
        high=axis.end if high is None else place(high),
        ratio=None if now.ratio is None else place(now.ratio),
        same=place(1.0),
        margin=place(now.margin),
        open_end=high is None,
        marks=tuple((place(value), f"{value:g}") for value in _round_ratios(least, most)),
    )


def _round_ratios(least: float, most: float) -> Iterator[float]:
    for value in (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0):
        if least <= value <= most:
            yield value
