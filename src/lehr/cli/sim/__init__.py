"""`lehr sim`: the program in a simulated world, to see what it does when everything goes wrong."""

from __future__ import annotations

from typing import ClassVar

import click

from lehr.cli.lazy import Lazy, LazyGroup


class _Commands(LazyGroup):
    sections: ClassVar = {
        "Random histories": {
            "run": Lazy("lehr.cli.sim.run:run", "Play many, and report what broke a rule."),
            "coverage": Lazy("lehr.cli.sim.coverage:coverage", "Name the lines that none reaches."),
            "replay": Lazy("lehr.cli.sim.replay:replay", "Play one again, and judge it."),
            "show": Lazy("lehr.cli.sim.replay:show", "Tell one as a story."),
        },
        "Scenarios": {
            "play": Lazy("lehr.cli.sim.play:play", "Play scenarios written as text, and compare."),
            "plans": Lazy("lehr.cli.sim.plans:plans", "Break reference runs at every point in turn."),
        },
        "Planted bugs": {
            "mutants": Lazy("lehr.cli.sim.mutants:mutants", "Plant known bugs, and see what finds them."),
            "mutant": Lazy("lehr.cli.sim.mutants:mutant", "Plant one of your own."),
        },
    }


@click.command(
    cls=_Commands,
    epilog="""
    \b
    Examples:
      lehr sim run --seeds 1000      a thousand histories over all processors
      lehr sim show 17               what happens in the history of seed 17
    """,
)
def sim() -> None:
    """Play the program in a simulated world, under virtual time, where everything goes wrong.

    It is the real program: publisher, Enforcer, checks and store. Only the clock, the source of truth
    and production are simulated. A seed decides all that happens; the same seed gives the same
    history on every machine.
    """
