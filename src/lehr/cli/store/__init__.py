"""`lehr store`: upkeep of Lehr's own records."""

from __future__ import annotations

from typing import ClassVar

import click

from lehr.cli.lazy import Lazy, LazyGroup


class _Commands(LazyGroup):
    sections: ClassVar = {
        "Upkeep": {
            "check": Lazy("lehr.cli.store.check:check", "Look for damage, and name all of it."),
            "prune": Lazy("lehr.cli.store.prune:prune", "Remove what nobody needs any more."),
        },
        "Incarnations as files": {
            "export": Lazy("lehr.cli.store.archiving:export", "Write an incarnation to a file."),
            "import": Lazy("lehr.cli.store.archiving:import_", "Keep one from a file, to be read."),
        },
    }


@click.command(
    cls=_Commands,
    epilog="""
    \b
    Examples:
      lehr store check
      lehr store prune --keep 1000 --older-than 90d --dry-run
      lehr store export latest shop.incarnation
      lehr store import shop.incarnation
    """,
)
def store() -> None:
    """Keep the state in good order: what was in force when, what was decided, done and said."""
