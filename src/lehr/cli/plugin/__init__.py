"""`lehr plugin`: plugins in processes of their own."""

from __future__ import annotations

import click

from lehr.cli.lazy import Lazy, LazyGroup


@click.command(
    cls=LazyGroup,
    sections={
        "Authors": {
            "test": Lazy("lehr.cli.plugin.test:test", "Hold a plugin to the rules of asset plugins."),
        },
    },
)
def plugin() -> None:
    """Write, test and look after plugins in processes of their own, in any language.

    Examples:
        lehr plugin test ./routes --fixtures tests/fixtures
    """
