"""Metrics and the canary analysis of a rollout, as text."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.canary import Outcome, Verdict
from lehr.cli import terminal
from lehr.cli.canary_table import metric_table
from lehr.rollouts.status import MetricStatus, RolloutStatus

_MOST_ROWS = 50
_COLOURS = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.INCONCLUSIVE: "yellow"}
_WORDS = {True: "good", False: "bad", None: "unknown"}


def measured_lines(status: RolloutStatus) -> Iterator[str]:
    """The metrics of each unit, and the canary analysis of the wave under way."""
    yield from _metrics([(unit.id, metric) for unit in status.units for metric in unit.metrics])
    if status.canary is not None:
        yield from _canary(status.canary)


def _metrics(found: list[tuple[str, MetricStatus]]) -> Iterator[str]:
    if not found:
        return
    yield "  metrics"
    rows = [
        (unit, metric.name, _value(metric), metric.bounds, _WORDS[metric.good], metric.why)
        for unit, metric in found[:_MOST_ROWS]
    ]
    titles = ("unit", "metric", "value", "good values", "state", "why")
    yield from (f"    {line}" for line in terminal.table(titles, rows, _room()))
    if len(found) > _MOST_ROWS:
        yield f"    and {len(found) - _MOST_ROWS:,} more; see -o json"


def _value(metric: MetricStatus) -> str:
    value = metric.value
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}"


def _canary(verdict: Verdict) -> Iterator[str]:
    word = terminal.style(verdict.verdict, _COLOURS[verdict.verdict], bold=True)
    yield f"  canary analysis: {word} after {verdict.looks} looks: {terminal.printable(verdict.reason)}"
    yield from (f"    {line}" for line in metric_table(verdict.metrics, _room()))


def _room() -> int | None:
    width = terminal.width()
    return None if width is None else width - 4
