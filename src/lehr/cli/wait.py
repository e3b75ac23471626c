"""`lehr wait`: until assets are where they should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli import words
from lehr.cli.stored import complete_asset, open_reading, partition_option, state_option

if TYPE_CHECKING:
    from lehr.query.reading import Reading

_POLL_SECONDS = 0.2
_MOST = 5

Missing = Callable[["Reading"], list[str]]
"""A line for each thing that is not yet as somebody waits for it to be; none when all are."""


@click.command(
    epilog="""
    \b
    Examples:
      lehr wait --timeout 2m                          everything, as the newest incarnation says
      lehr wait web/process --for converged
      lehr wait 'web/*' --for status=Waiting --timeout 10s
      lehr wait --for incarnation=7
    """
)
@click.argument("selector", default="all", shell_complete=complete_asset)
@click.option(
    "--for",
    "goal",
    default="converged",
    show_default=True,
    metavar="WHAT",
    help="converged, incarnation=N (published), or status=STATUS.",
)
@click.option(
    "--timeout",
    callback=words.duration,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Give up after so long, with exit code 1.",
)
@state_option
@partition_option
def wait(selector: str, goal: str, timeout: float, state: Path | None, partition: str | None) -> None:
    """Wait until the assets of SELECTOR, all if there is none, are as --for says."""
    import asyncio

    missing = _missing(selector, goal)
    with open_reading(state, partition) as reading:
        left = asyncio.run(_until_none(missing, reading, timeout))
    if left:
        raise LehrError(
            f"not there after {words.span(timeout)}: {goal}",
            why="; ".join(left[:_MOST]) + (f"; and {len(left) - _MOST} more" if len(left) > _MOST else ""),
            fix="see `lehr why --all`",
        )


async def _until_none(missing: Missing, reading: Reading, timeout: float) -> list[str]:
    from lehr.base.clock import SystemClock

    clock = SystemClock()
    deadline = clock.monotonic() + timeout
    while (left := missing(reading)) and clock.monotonic() < deadline:
        await clock.sleep(min(_POLL_SECONDS, max(0.0, deadline - clock.monotonic())))
        reading.now = clock.now()
    return left


def _missing(selector: str, goal: str) -> Missing:
    from lehr.model.decision import Status
    from lehr.model.selector import parse_selector
    from lehr.query import waiting
    from lehr.query.selecting import selected

    name, _, value = goal.partition("=")
    chosen = parse_selector(selector)
    if goal == "converged":
        return lambda reading: [
            f"{row.id}: {row.status} {row.message}"
            for row in waiting.not_converged(reading, selected(reading, chosen))
        ]
    if name == "incarnation" and value.isdecimal():
        return lambda reading: _not_published(reading, int(value))
    if name == "status":
        status = next((item for item in Status if item.lower() == value.lower()), None)
        if status is not None:
            return lambda reading: [
                f"{row.id}: {row.status}" for row in waiting.not_at(selected(reading, chosen), status)
            ]
    known = ", ".join(Status)
    raise click.UsageError(f"--for is converged, incarnation=N or status=S, where S is one of {known}.")


def _not_published(reading: Reading, sequence: int) -> list[str]:
    newest = reading.newest()
    if newest is not None and newest.sequence >= sequence:
        return []
    return [f"{newest.name} is the newest" if newest is not None else "nothing is published yet"]
