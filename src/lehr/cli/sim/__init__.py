"""`lehr sim`: the program in a simulated world in which everything goes wrong."""

from __future__ import annotations

import os

import click

from lehr.cli.lazy import Lazy, LazyGroup

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    help="Number of processes.  [default: one per processor]",
)


@click.command(
    cls=LazyGroup,
    sections={
        "Random histories": {
            "run": Lazy("lehr.cli.sim.run:run", "Run many, and report broken invariants."),
            "coverage": Lazy("lehr.cli.sim.coverage:coverage", "List the lines that no history reaches."),
            "replay": Lazy("lehr.cli.sim.replay:replay", "Replay one, and check its invariants."),
            "show": Lazy("lehr.cli.sim.replay:show", "Print one as a story."),
        },
        "Scenarios": {
            "play": Lazy("lehr.cli.sim.play:play", "Play scenario files, and compare."),
            "plans": Lazy("lehr.cli.sim.plans:plans", "Inject a fault at every point of reference runs."),
        },
        "Planted bugs": {
            "mutants": Lazy("lehr.cli.sim.mutants:mutants", "Plant known bugs, and check what finds them."),
            "mutant": Lazy("lehr.cli.sim.mutants:mutant", "Plant your own bug."),
        },
    },
)
def sim() -> None:
    """Run Lehr in a simulated world, under virtual time, in which everything goes wrong.

    Publisher, Enforcer, checks and store are the real ones; only the clock, the source of truth and
    production are simulated. The seed determines everything that happens: the same seed gives the same
    history on every machine.

    Examples:
        lehr sim run --seeds 1000      a thousand histories on all processors
        lehr sim show 17               the history of seed 17 as a story
    """
