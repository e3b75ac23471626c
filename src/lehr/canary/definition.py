"""The definition of a judge: metrics, margins, error rate and minimum exposure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

Ratio = Annotated[float, msgspec.Meta(gt=1, le=100)]
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400 * 7)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

REQUESTS = "requests"
_RARELY_SLOW = 0.005
"""Share of requests above a bound of a histogram that passes without a comparison, if no metric is defined.

Most histograms have bounds that almost nothing exceeds, about which nothing could be known for days."""
_BUCKET = re.compile(r"(?P<name>.+)_le_(?P<bound>\+?inf|[0-9.]+(?:e[+-]?[0-9]+)?)", re.IGNORECASE)
_FAILURES = re.compile(r"(.*_)?(errors?|failures?|failed)(_.*)?")


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rate, such as errors per request. Exactly one of `events` and `histogram` is set.

    Attributes:
        events: counter of the events, such as `errors`.
        histogram: name of a histogram; the events are its observations above `above`.
        above: a bound of one of the histogram's buckets.
        of: counter of everything that could have been such an event. For histograms, the default is
            the counter of all observations.
        worse: which direction is a regression.
        margin: the ratio of rates, worse over better, up to which the canary counts as equal; None for the
            judge's.
        negligible: rates below this pass without a comparison; None for the judge's.
        window: seconds that each sample covers, such as 300 for `[5m]`.
        delay: seconds by which samples are late.
    """

    name: Name
    events: Name | None = None
    histogram: Name | None = None
    above: float | None = None
    of: Name | None = None
    worse: Literal["higher", "lower"] = "higher"
    margin: Ratio | None = None
    negligible: Share | None = None
    window: Seconds = 0.0
    delay: Seconds = 0.0


class Judge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A judge of canaries. The defaults suit a service with some requests per second.

    Attributes:
        metrics: the rates to compare; if empty, those that `default_metrics` finds.
        alpha: bound on the probability that a canary with nothing wrong fails, over all looks and metrics;
            and on the probability that a canary beyond the margin passes.
        margin: the ratio of rates up to which the canary counts as equal.
        negligible: events rarer than this pass without a comparison.
        replica_spread: by how much the rates of replicas with nothing wrong differ, as the standard
            deviation of their logarithm. It is combined with how much they differ within their groups.
        warmup_seconds: after a replica's first sample, which are judged apart.
        warmup_margin: the ratio of rates that a canary may have during its warm-up.
        minimum_requests: of each group, for PASS.
        minimum_seconds: covered by samples of each group, for PASS.
        longest_gap_seconds: what happened between samples further apart does not count.
    """

    metrics: tuple[Metric, ...] = ()
    alpha: Annotated[float, msgspec.Meta(gt=0, le=0.5)] = 0.01
    margin: Ratio = 1.25
    negligible: Share = 0.0002
    replica_spread: Annotated[float, msgspec.Meta(ge=0, le=2)] = 0.07
    warmup_seconds: Seconds = 60.0
    warmup_margin: Ratio = 10.0
    minimum_requests: Amount = 1000.0
    minimum_seconds: Seconds = 300.0
    longest_gap_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 300.0

    def margin_of(self, metric: Metric) -> float:
        """The margin of a metric: its own, or the judge's."""
        return self.margin if metric.margin is None else metric.margin

    def negligible_of(self, metric: Metric) -> float:
        """The negligible rate of a metric: its own, or the judge's."""
        return self.negligible if metric.negligible is None else metric.negligible


class Columns(msgspec.Struct, frozen=True):
    """The counters from which a metric is computed: `events`, or `of` minus `below`."""

    of: str
    events: str | None = None
    below: str | None = None

    def names(self) -> tuple[str, ...]:
        """The counters that have to exist."""
        return tuple(name for name in (self.of, self.events, self.below) if name is not None)


def columns_of(metric: Metric, counters: Sequence[str]) -> Columns:
    """The counters that a metric needs; it may name counters that are not in `counters`."""
    if metric.events is not None:
        return Columns(metric.of or REQUESTS, events=metric.events)
    name, above = metric.histogram or "", metric.above or 0.0
    found = buckets(counters).get(name, {})
    below = found.get(above, f"{name}_le_{above:g}")
    return Columns(metric.of or _all_observations(name, counters), below=below)


class MetricProblem(NamedTuple):
    """A problem of a metric that its type allows.

    Attributes:
        number: of the metric, from 0.
    """

    number: int
    what: str
    fix: str


def problems_of(metrics: Sequence[Metric]) -> Iterator[MetricProblem]:
    """All problems of metrics that are judged together."""
    names: set[str] = set()
    for number, metric in enumerate(metrics):
        what = f"metric `{metric.name}`"
        if metric.name in names:
            yield MetricProblem(number, f"there are two metrics `{metric.name}`", "rename one")
        names.add(metric.name)
        if (metric.events is None) == (metric.histogram is None):
            fix = "write `events` to count events, or `histogram` and `above` to count slow requests"
            yield MetricProblem(number, f"{what} needs either `events` or `histogram`", fix)
        elif (metric.histogram is None) != (metric.above is None):
            fix = "name a bound of the histogram, such as `above: 0.25`"
            yield MetricProblem(number, f"{what} needs `above` if it has `histogram`", fix)


def buckets(counters: Iterable[str]) -> dict[str, dict[float, str]]:
    """Histograms by name: the counter of each bucket by its finite bound, in increasing order."""
    found: dict[str, dict[float, str]] = {}
    for counter in counters:
        match = _BUCKET.fullmatch(counter)
        bound = _number(match["bound"]) if match else None
        if match and bound is not None:
            found.setdefault(match["name"], {})[bound] = counter
    return {name: dict(sorted(bounds.items())) for name, bounds in found.items()}


def default_judge(counters: Sequence[str]) -> Judge:
    """The judge for these counters if none is defined."""
    return Judge(default_metrics(counters))


def default_metrics(counters: Sequence[str]) -> tuple[Metric, ...]:
    """Failures per request, and for each histogram the share above each of its bounds."""
    failures = [Metric(name, events=name) for name in counters if is_failure(name) and REQUESTS in counters]
    shares = [
        Metric(f"{name}_above_{bound:g}", histogram=name, above=bound, negligible=_RARELY_SLOW)
        for name, bounds in buckets(counters).items()
        for bound in bounds
    ]
    return tuple(failures + shares)


def is_failure(counter: str) -> bool:
    """Whether a counter's name shows that it counts failures: `errors`, `http_errors`, `failures_5xx`."""
    return _FAILURES.fullmatch(counter.lower()) is not None and _BUCKET.fullmatch(counter) is None


def is_bucket(counter: str) -> bool:
    """Whether a counter belongs to a histogram."""
    return _BUCKET.fullmatch(counter) is not None


def _all_observations(name: str, counters: Sequence[str]) -> str:
    for counter in counters:
        match = _BUCKET.fullmatch(counter)
        if match and match["name"] == name and "inf" in match["bound"].lower():
            return counter
    return f"{name}_count" if f"{name}_count" in counters else REQUESTS


def _number(text: str) -> float | None:
    """A finite bound; None for `inf` and for text that only looks like a number."""
    try:
        return None if "inf" in text.lower() else float(text)
    except ValueError:
        return None
