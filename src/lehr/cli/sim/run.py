"""`lehr sim run`: many histories on all processors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.formatting import duration
from lehr.cli.output import output_option, show_document
from lehr.cli.progress import tallied
from lehr.cli.sim import jobs_option
from lehr.testing.sim.reached import RARE_PATHS, never, total

if TYPE_CHECKING:
    from lehr.testing.sim.suite import Played

_SHOWN = 10
_ENDLESS = 10**12
_YEAR = 365 * 86_400.0


@command()
@click.option("--seeds", type=click.IntRange(1), help="Number of histories.  [default: 1000]")
@click.option(
    "--for", "longest", callback=duration, metavar="TIME", help="Run for this long instead, such as 10m."
)
@click.option("--first", type=int, default=0, show_default=True, help="First seed.")
@click.option("--policies", is_flag=True, help="Give every history rollout policies, not just one in ten.")
@jobs_option
@output_option("text", "json")
def run(seeds: int | None, longest: float | None, first: int, policies: bool, jobs: int, form: str) -> None:
    """Run random histories, each from its own seed, and report broken invariants.

    The report also lists the rare paths that no history has taken, which are therefore untested.

    Examples:
        lehr sim run                          a thousand histories
        lehr sim run --for 10m                as many as fit into ten minutes
        lehr sim run --first 5000 --seeds 100
        lehr sim run --policies               rollouts in every history
        lehr sim run -o json

    Exits with 1 if an invariant is broken; every failure prints the command that replays it.
    """
    from lehr.base.clock import SystemClock
    from lehr.testing.sim.suite import kind_of, play, spread

    if seeds is not None and longest is not None:
        raise click.UsageError("--seeds and --for cannot be combined")
    clock = SystemClock()
    began = clock.monotonic()

    def over() -> bool:
        return longest is not None and clock.monotonic() - began >= longest

    count = _ENDLESS if longest is not None else seeds or 1000
    history = partial(play, kind=kind_of(policies=policies))
    playing = spread(history, range(first, first + count), jobs, over)
    total = count if longest is None else None
    runs = list(tallied(playing, "histories", total, "broken", _broken, shown=form == "text"))
    report = _report(runs, clock.monotonic() - began)
    if form == "json":
        show_document("json", report)
    else:
        _print_report(report, " --policies" if policies else "")
    if report["failed"]:
        raise click.exceptions.Exit(1)


def _broken(played: Played) -> bool:
    return bool(played.violations)


def _report(runs: list[Played], seconds: float) -> dict[str, Any]:
    from lehr.testing.sim.suite import failed

    reached = total(run.reached for run in runs)
    return {
        "histories": len(runs),
        "events": sum(run.events for run in runs),
        "replayed": sum(run.replayed for run in runs),
        "seconds": round(seconds, 1),
        "seeds_per_second": round(len(runs) / max(seconds, 1e-9), 1),
        "simulated_years": round(sum(run.seconds for run in runs) / _YEAR, 4),
        "failed": [{"seed": run.seed, "violations": run.violations} for run in failed(runs)],
        "never_reached": never(reached),
        "reached": dict(reached.most_common()),
    }


def _print_report(report: dict[str, Any], option: str) -> None:
    print(
        f"{formatting.counted(report['histories'], 'history', 'histories')}, {report['events']:,} events, "
        f"{report['simulated_years']:g} simulated years in {report['seconds']:g} s: "
        f"{report['seeds_per_second']:g} seeds/s"
    )
    print(f"{report['replayed']:,} decisions were decided again from their inputs")
    taken = len(RARE_PATHS) - len(report["never_reached"])
    print(f"rare paths taken: {taken} of {len(RARE_PATHS)}")
    for name in report["never_reached"]:
        print(f"  never  {name}: {RARE_PATHS[name]}")
    for item in report["failed"][:_SHOWN]:
        print(f"broken  seed {item['seed']}: {item['violations'][0]}")
        print(f"        lehr sim replay {item['seed']}{option}")
    if len(report["failed"]) > _SHOWN:
        print(f"        and {len(report['failed']) - _SHOWN} more")
    if not report["failed"]:
        print("every invariant holds in all histories")
