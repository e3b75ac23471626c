"""`lehr store`: maintenance of Lehr's own records."""

from __future__ import annotations

import click

from lehr.cli.lazy import Lazy, LazyGroup


@click.command(
    cls=LazyGroup,
    sections={
        "Upkeep": {
            "check": Lazy("lehr.cli.store.check:check", "Check the store for damage."),
            "prune": Lazy("lehr.cli.store.prune:prune", "Remove old history."),
        },
        "Incarnations as files": {
            "export": Lazy("lehr.cli.store.archives:export", "Write an incarnation to a file."),
            "import": Lazy(
                "lehr.cli.store.archives:import_", "Import an incarnation from a file, for reading."
            ),
        },
    },
)
def store() -> None:
    """Maintain the store: incarnations, controls, decisions, operations and the audit trail.

    Examples:
        lehr store check
        lehr store prune --keep 1000 --older-than 90d --dry-run
        lehr store export latest shop.incarnation
        lehr store import shop.incarnation
    """
