"""`lehr sim coverage`: the lines of the program that random histories reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from lehr.cli import formatting, terminal
from lehr.cli.command import command
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.progress import tallied
from lehr.cli.sim import jobs_option

if TYPE_CHECKING:
    from lehr.testing.sim.coverage.measure import Module

_SEEDS = 200


@command()
@click.argument("modules", nargs=-1)
@click.option(
    "--seeds", type=click.IntRange(1), default=_SEEDS, show_default=True, help="Number of histories."
)
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="First seed.")
@jobs_option
@output_option("text", "wide", "json")
def coverage(modules: tuple[str, ...], seeds: int, first: int, jobs: int, form: str) -> None:
    """Report which lines of MODULES no random history reaches.

    A bug in such a line would not be found. MODULES are import names of modules or packages; by default
    lehr.checks, lehr.enforce, lehr.publish, lehr.store.sql and lehr.store.sqlite.

    Only lines that run when a function is called count. Lines that run at import (imports, constants,
    class bodies, def lines) and functions without a body are excluded; a function that is only called
    during an import is reported. Histories are traced, so they take about three times as long with
    Python 3.11.

    Examples:
        lehr sim coverage                        every module, the least covered first
        lehr sim coverage lehr.enforce.step      one module
        lehr sim coverage lehr.store -o wide     a package, with the lines that are not reached

    Always exits with 0.
    """
    from lehr.base.clock import SystemClock
    from lehr.testing.sim.coverage.measure import DECIDING, measure, merged, read, sources

    clock = SystemClock()
    began = clock.monotonic()
    found = read(sources(modules or DECIDING))
    playing = measure(found, range(first, first + seeds), jobs)
    runs = tallied(playing, "histories", seeds, shown=form != "json")
    results = merged(found, runs)
    seconds = clock.monotonic() - began
    if form == "json":
        show_document("json", _document(results, seeds, seconds))
        return
    print_lines(_wide(results) if form == "wide" else _text(results))
    histories = formatting.counted(seeds, "history", "histories")
    click.echo(f"{histories} in {seconds:.1f} s: {seeds / seconds:.1f} seeds/s", err=True)


def _text(results: Sequence[Module]) -> list[str]:
    """A table with a line for each module, and the total."""
    titles = ["module", "reached", "lines", "share", "not reached"]
    rows = [
        [module.name, *_figures([module]), ", ".join(module.ranges)]
        for module in results
        if module.executable
    ]
    return terminal.table(titles, [*rows, ["total", *_figures(results), ""]], None)


def _wide(results: Sequence[Module]) -> Iterator[str]:
    """Each module with the source lines that are not reached."""
    for module in results:
        if not module.unreached:
            continue
        reached, lines, share = _figures([module])
        yield terminal.style(f"{module.name}: {reached} of {lines} lines, {share}", bold=True)
        for number in module.unreached:
            yield terminal.printable(f"{number:>6}  {module.source[number - 1]}")
        yield ""
    reached, lines, share = _figures(results)
    yield f"total: {reached} of {lines} lines, {share}"


def _figures(results: Sequence[Module]) -> list[str]:
    """Lines reached, total lines, and the share reached."""
    total = _total(results)
    return [str(total["reached"]), str(total["lines"]), f"{total['percent']} %"]


def _total(results: Sequence[Module]) -> dict[str, Any]:
    reached = sum(len(module.reached) for module in results)
    lines = sum(len(module.executable) for module in results)
    return {"reached": reached, "lines": lines, "percent": round(100 * reached / max(lines, 1), 1)}


def _document(results: Sequence[Module], seeds: int, seconds: float) -> dict[str, Any]:
    return {
        "histories": seeds,
        "seconds": round(seconds, 1),
        **_total(results),
        "modules": [
            {
                "module": module.name,
                **_total([module]),
                "unreached": module.unreached,
                "source": {number: module.source[number - 1] for number in module.unreached},
            }
            for module in results
            if module.executable
        ],
    }
