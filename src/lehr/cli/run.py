"""`lehr run`: the whole program in one process."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lehr.cli.serve import server_name_option
from lehr.cli.stored import workspace_state_option
from lehr.cli.words import duration

if TYPE_CHECKING:
    from lehr.http.server import Address


_LEAST_SECONDS = 600.0
"""A turn may have begun with what was the newest incarnation then, and take minutes."""


def _age(context: click.Context, option: click.Parameter, value: str) -> float:
    """Seconds after which history may be pruned; 0 for never."""
    if value == "off":
        return 0.0
    seconds = duration(context, option, value)
    if seconds is None or seconds < _LEAST_SECONDS:
        raise click.BadParameter("history younger than 10m may be in use")
    return seconds


@click.command(
    epilog="""
    \b
    Examples:
      lehr run                               keep production as the workspace here says
      lehr run --once --timeout 2m           end when it is so
      lehr run https://example.org/intent.git --branch main --state /var/lib/lehr
      lehr run /srv/intent --source directory --poll 5s

    Of a git repository, what is committed is read. SIGTERM ends it with 0, after up to 30 s for
    pushes under way; a second one ends it at once, and after a minute it ends by force, with 1.
    SIGHUP: look at the source now; from a terminal, end. With --once: 0 when production is as
    intended, 1 with what blocks when it is not.
    """
)
@click.argument("location", metavar="[DIR]", default=".")
@workspace_state_option
@click.option("--once", is_flag=True, help="End when production is as intended, or blocked.")
@click.option(
    "--timeout",
    callback=duration,
    metavar="TIME",
    help="With --once: give up after so long, whatever hangs; pushes under way get 30 s more.",
)
@click.option("--source", "kind", type=click.Choice(["git", "directory"]), help="What DIR is, if not plain.")
@click.option("--branch", help="Follow this branch from now on; else the one of the first run.")
@click.option("--path", default="", help="Folder of the workspace within the git repository.")
@click.option("--poll", callback=duration, metavar="TIME", help="Longest time between looks at the source.")
@click.option(
    "--signed-by",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_SIGNED_BY",
    help="Read only commits that one of the public keys in this file has signed; else LEHR_SIGNED_BY.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Answer over HTTP there, too, as `lehr serve` does: 127.0.0.1:8470.",
)
@server_name_option
@click.option(
    "--hook-secret",
    "hook_secret",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_HOOK_SECRET",
    help="File with the secret of the git server's webhook; with --listen. Else LEHR_HOOK_SECRET.",
)
@click.option(
    "--prune-older-than",
    "retain_seconds",
    callback=_age,
    default="90d",
    show_default=True,
    metavar="TIME",
    help="Prune history older than this that nothing needs; off to prune nothing.",
)
@click.option(
    "--prune-keep",
    "retain",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Newest incarnations that are never pruned.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log all that happens.")
@click.option("--log-json", is_flag=True, help="Log in JSON.")
def run(
    location: str,
    state: Path | None,
    once: bool,
    timeout: float | None,
    kind: Literal["git", "directory"] | None,
    branch: str | None,
    path: str,
    poll: float | None,
    signed_by: Path | None,
    listen: str | None,
    names: tuple[str, ...],
    hook_secret: Path | None,
    retain_seconds: float,
    retain: int,
    verbose: bool,
    log_json: bool,
) -> None:
    """Make production as the workspace in DIR says, and keep it so, until ended."""
    import msgspec

    from lehr.cli.deployment import deployment_of
    from lehr.cli.ending import run_until_ended
    from lehr.cli.logs import configure_logs
    from lehr.cli.running import HungUp, run_on, run_once

    if timeout is not None and not once:
        raise click.UsageError("--timeout goes with --once.")
    if listen is not None and once:
        raise click.UsageError("--listen does not go with --once.")
    if signed_by is None and "LEHR_SIGNED_BY" in os.environ:
        # A user who meant to name a file would get unsigned commits.
        raise click.UsageError("LEHR_SIGNED_BY is empty: name the file of keys, or unset it.")
    if listen is None:
        _require_unwritten("hook_secret", "names")
    address = None if listen is None else _address(listen)
    secret: Callable[[], str] | None = None
    if hook_secret is not None and address is not None:
        secret = partial(_secret, hook_secret)
        secret()  # Before anything begins: nothing should be pushed on the way to an error.
    configure_logs(verbose=verbose, as_json=log_json)
    deployment = deployment_of(
        location, state, kind=kind, branch=branch, path=path, poll=poll, signed_by=signed_by
    )
    deployment = msgspec.structs.replace(deployment, exact=once, retain=retain, retain_seconds=retain_seconds)
    hung_up = HungUp()
    if once:
        run_until_ended(lambda ended: run_once(ended, deployment, timeout), hung_up=hung_up)
    run_until_ended(lambda ended: run_on(ended, deployment, address, secret, names, hung_up), hung_up=hung_up)


def _require_unwritten(*names: str) -> None:
    """Raises `UsageError` for such options on the command line; the environment may be meant for others."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} goes with --listen.")


def _address(listen: str) -> Address:
    """Before anything begins: nothing should be pushed on the way to an error."""
    from lehr.http.server import parse_address

    return parse_address(listen)


def _secret(file: Path) -> str:
    """The content of a file, without the end of the line.

    Raises:
        LehrError: it cannot be read, or is empty.
    """
    from lehr.base.errors import LehrError

    fix = "write the secret that the git server has into it, in one line"
    try:
        found = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LehrError(
            f"the secret in {file} cannot be read", code="CLI132", why=str(error), fix=fix
        ) from error
    if not found:
        raise LehrError(f"there is no secret in {file}", code="CLI133", why="it is empty", fix=fix)
    return found
