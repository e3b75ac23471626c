"""The server that a command reads from, as given by --server."""

from __future__ import annotations

import click

SERVER_VARIABLE = "LEHR_SERVER"

_SERVER = "lehr.server"
"""In the context of a command."""


def keep_server(ctx: click.Context, url: str | None) -> None:
    """Set the server that the command reads from; None for none."""
    ctx.meta[_SERVER] = url


def named_server() -> str | None:
    """URL of the server that the command reads from, if any."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_SERVER)
