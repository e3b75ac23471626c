"""`lehr plugin`: plugins in processes of their own."""

from __future__ import annotations

import click

from lehr.cli.lazy import Lazy, LazyGroup


@click.command(
    cls=LazyGroup,
    sections={
        "Write": {
            "new": Lazy("lehr.cli.plugin.new:new", "Create a plugin that works, to start from."),
            "test": Lazy("lehr.cli.plugin.test:test", "Hold a plugin to the rules of asset plugins."),
            "types": Lazy("lehr.cli.plugin.types:types", "Print declarations of a plugin's types."),
        },
        "Run": {
            "list": Lazy("lehr.cli.plugin.list:list_", "List the plugins of the active `lehr run`."),
            "logs": Lazy("lehr.cli.plugin.logs:logs", "Show what a plugin prints."),
        },
    },
)
def plugin() -> None:
    """Write, test and look after plugins that run in processes of their own, in any language.

    Examples:
        lehr plugin new routes --language node
        lehr plugin test ./routes --fixtures fixtures
        lehr plugin types ./routes > types/routes.yaml
        lehr run --plugins plugins.yaml
        lehr plugin list
    """
