"""Verdicts on the metrics of a canary, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lehr.cli import terminal

if TYPE_CHECKING:
    from lehr.canary import MetricVerdict

_TITLES = ("metric", "verdict", "canary", "control", "ratio", "interval", "margin", "e fail", "e pass")


def metric_table(metrics: Sequence[MetricVerdict], columns: int | None) -> list[str]:
    """The lines of a table with a row for each metric.

    Args:
        columns: as in `lehr.cli.terminal.table`.
    """
    return terminal.table(_TITLES, [_cells(item) for item in metrics], columns)


def _cells(item: MetricVerdict) -> list[str]:
    low, high = item.interval
    return [
        item.name,
        item.verdict,
        _rate(item.canary.events, item.canary.exposure),
        _rate(item.control.events, item.control.exposure),
        "-" if item.ratio is None else f"{item.ratio:.3g}",
        f"{low or 0:.3g}..{'' if high is None else f'{high:.3g}'}",
        f"{item.margin:g}",
        f"{item.e_fail:.2g}/{item.fail_at:.0f}",
        f"{item.e_pass:.2g}/{item.pass_at:.0f}",
    ]


def _rate(events: float, exposure: float) -> str:
    """`1.3% (13 of 1,000)`."""
    if not exposure:
        return "-"
    return f"{events / exposure:.3%} ({events:,.0f} of {exposure:,.0f})"
