"""The server that a command reads from, as given by --server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click
from click.core import ParameterSource

SERVER_VARIABLE = "LEHR_SERVER"

_SERVER = "lehr.server"
"""In the context of a command."""


def _keep(context: click.Context, _parameter: click.Parameter, url: str | None) -> None:
    context.meta[_SERVER] = url or None


server_option = click.option(
    "--server",
    metavar="URL",
    envvar=SERVER_VARIABLE,
    expose_value=False,
    callback=_keep,
    help=f"Read from the `lehr serve` at this URL instead of local state. Defaults to {SERVER_VARIABLE}.",
)


def settle_server(context: click.Context) -> None:
    """Let a state that is named on the command line take precedence over a server of the environment.

    Raises:
        UsageError: both are named on the command line.
    """
    if not context.meta.get(_SERVER):
        return
    named = [name for name in ("server", "state", "store") if _written(context, name)]
    if named[:1] != ["server"] and named:
        context.meta[_SERVER] = None
    elif len(named) > 1 and not context.resilient_parsing:
        raise click.UsageError(f"--server and --{named[1]} cannot be combined", context)


def _written(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def server_token(url: str) -> Callable[[], str]:
    """Finds the token to send to the server at `url`."""
    from lehr.control.http_servers import token_for

    return partial(token_for, url)


def named_server() -> str | None:
    """URL of the server that the command reads from, if any."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_SERVER)
