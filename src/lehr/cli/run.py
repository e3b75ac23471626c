"""`lehr run`: the whole program in one process."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lehr.cli.command import command
from lehr.cli.complete import complete_folder_or_selector, complete_selector
from lehr.cli.formatting import duration
from lehr.cli.metrics_file import metrics_option
from lehr.cli.plugins_file import plugins_option
from lehr.cli.run_log import Form, configure_logs, errors_logged, log_options
from lehr.cli.selected_workspace import is_selector, location_and_selector
from lehr.cli.serve import public_read_option, server_name_option
from lehr.cli.stored import named_store, workspace_state_option
from lehr.model.selector import Selector

if TYPE_CHECKING:
    from lehr.cli.shutdown import Ending, Hangup
    from lehr.wiring import Deployment
    from lehr.wiring.program import Answering

_LEAST_SECONDS = 600.0
"""A turn may still use the incarnation that was newest when it began, and take minutes."""


def _age(context: click.Context, option: click.Parameter, value: str) -> float:
    """Seconds after which history can be pruned; 0 for never."""
    if value == "off":
        return 0.0
    seconds = duration(context, option, value)
    if seconds is None or seconds < _LEAST_SECONDS:
        raise click.BadParameter("history younger than 10m may be in use")
    return seconds


_OF_SELECTORS = re.compile(r"[*=,]")


def _named_urls(_ctx: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Addresses of target selections by name. They are checked before anything starts."""
    if not given:
        return {}
    from lehr.base.errors import LehrError
    from lehr.http.selection_service import HttpSelectionService

    found = {}
    for item in given:
        name, equals, url = item.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{item!r} is not NAME=URL")
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice")
        try:
            HttpSelectionService(url)
        except LehrError as error:
            raise click.BadParameter(str(error)) from error
        found[name] = url
    return found


@command()
@click.argument("location", metavar="[DIR]", required=False, shell_complete=complete_folder_or_selector)
@click.argument("selected", metavar="[SELECTOR]", required=False, shell_complete=complete_selector)
@workspace_state_option
@click.option("--once", is_flag=True, help="Exit once production is as intended or blocked.")
@click.option(
    "--timeout",
    callback=duration,
    metavar="TIME",
    help="With --once: give up after this time. Running pushes get another 30s.",
)
@click.option(
    "--source", "kind", type=click.Choice(["git", "directory"]), help="Kind of DIR, if it is ambiguous."
)
@click.option("--branch", help="Follow this branch from now on. Defaults to that of the first run.")
@click.option("--path", default="", help="Folder of the workspace within the git repository.")
@click.option("--poll", callback=duration, metavar="TIME", help="Maximum time between checks of the source.")
@click.option(
    "--signed-by",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_SIGNED_BY",
    help="Only read commits signed by a public key in this file. Defaults to LEHR_SIGNED_BY.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    help="Also serve over HTTP on this address, as `lehr serve` does, such as 127.0.0.1:8470.",
)
@server_name_option
@public_read_option
@click.option(
    "--hook-secret",
    "hook_secret",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_HOOK_SECRET",
    help="File with the webhook secret of the git server. Requires --listen. Defaults to LEHR_HOOK_SECRET.",
)
@metrics_option
@plugins_option
@click.option(
    "--selection",
    "selections",
    multiple=True,
    metavar="NAME=URL",
    callback=_named_urls,
    help="Address of a target selection that rollout policies refer to by NAME. Can be repeated.",
)
@click.option(
    "--selection-token",
    "selection_tokens",
    multiple=True,
    metavar="NAME=FILE",
    help="File with the token of the target selection NAME, sent with each question. Can be repeated.",
)
@click.option(
    "--prune-older-than",
    "retain_seconds",
    callback=_age,
    default="90d",
    show_default=True,
    metavar="TIME",
    help="Prune unneeded history older than this; `off` disables pruning.",
)
@click.option(
    "--prune-keep",
    "retain",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Number of newest incarnations that are never pruned.",
)
@log_options
def run(
    location: str | None,
    selected: str | None,
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
    public_read: bool,
    hook_secret: Path | None,
    metrics: Path | None,
    plugins_file: Path | None,
    selections: dict[str, str],
    selection_tokens: tuple[str, ...],
    retain_seconds: float,
    retain: int,
    verbose: bool,
    log_format: Form,
) -> None:
    """Bring production to the state declared in DIR, and keep it there until terminated.

    Examples:
        lehr run                               with the workspace in the current directory
        lehr run --once --timeout 2m           exit once production is as intended
        lehr run --once 'web/*'                only for these assets
        lehr run --once ../intent type=lehr.File
        lehr run https://example.org/intent.git --branch main --state /var/lib/lehr
        lehr run /srv/intent --source directory --poll 5s

    From a git repository, only committed files are read. On SIGTERM it waits up to 30s for running
    pushes and exits with 0; a second SIGTERM exits immediately, and after a minute it exits by force
    with 1. On SIGHUP it checks the source, or exits if it was started from a terminal. With --once it
    exits with 0 if production is as intended, otherwise it prints what blocks and exits with 1.

    With --once and SELECTOR, it only compares and pushes the selected assets; everything is published all
    the same. A single argument is SELECTOR unless it is an existing folder, a path or a URL.

    The log on stderr has a line for the first push, drift and failure of each cause, then one line with
    their number for each cause and minute. `lehr events` lists all of them.
    """
    import msgspec

    from lehr.base.garbage import collect_rarely
    from lehr.cli.deployment import deployment_of
    from lehr.cli.shutdown import Hangup, run_until_ended

    _require_consistent(once, timeout, listen, signed_by)
    place, only = _arguments(once, location, selected)
    http = None
    # Address and secret are checked before anything starts: nothing should be pushed before an error.
    if listen is not None:
        from lehr.http.server import parse_address
        from lehr.wiring.program import Answering

        secret = None if hook_secret is None else partial(_secret, hook_secret)
        http = Answering(parse_address(listen), names, public_read, secret)
        if secret is not None:
            secret()
    configure_logs(log_format, verbose=verbose)
    with errors_logged():
        found = deployment_of(place, state, kind)
    deployment = msgspec.structs.replace(
        found,
        branch=branch,
        path=path,
        poll=poll,
        signed_by=signed_by,
        metrics=metrics,
        plugins=plugins_file,
        selections=selections,
        selection_tokens=_token_files(selection_tokens, selections),
        exact=once,
        only=only,
        retain=retain,
        retain_seconds=retain_seconds,
    )
    collect_rarely()
    hangup = Hangup()
    with errors_logged():
        run_until_ended(
            lambda ended: _run(ended, deployment, http, hangup, timeout, once=once), hangup=hangup
        )


async def _run(
    ended: Ending,
    deployment: Deployment,
    http: Answering | None,
    hangup: Hangup,
    timeout: float | None,
    *,
    once: bool,
) -> int:
    from lehr import wiring

    async with wiring.generation_of_run(deployment, named_store()) as generating:
        from lehr.cli.foreground_run import run_on, run_once  # the worker starts while this is loaded

        if once:
            return await run_once(ended, deployment, generating, timeout)
        return await run_on(ended, deployment, generating, http, hangup)


def _token_files(given: tuple[str, ...], addresses: Mapping[str, str]) -> dict[str, Path]:
    """Files of tokens by the names of selections. They are checked before anything starts.

    Raises:
        UsageError: one belongs to no address.
        LehrError: one cannot be read, or would be sent without encryption.
    """
    if not given:
        return {}
    from lehr.wiring.selection_services import selection_service, token_in

    found = {}
    for item in given:
        name, equals, file = item.partition("=")
        if not equals or name not in addresses:
            raise click.UsageError(f"--selection-token {item} needs --selection {name or 'NAME'}=URL.")
        found[name] = Path(file).absolute()
        selection_service(addresses[name], token=found[name])
        token_in(found[name])
    return found


def _arguments(once: bool, location: str | None, selector: str | None) -> tuple[str, Selector | None]:
    """DIR, and with --once the selected assets.

    Raises:
        UsageError: assets are selected without --once.
        LehrError: the selector is not valid.
    """
    if once:
        return location_and_selector(location, selector)
    selected = selector or location or ""
    if selector is not None or (_OF_SELECTORS.search(selected) and is_selector(selected)):
        raise click.UsageError(f"To compare and push only {selected!r}, add --once.")
    return location or ".", None


def _require_consistent(
    once: bool, timeout: float | None, listen: str | None, signed_by: Path | None
) -> None:
    """Raises `UsageError` for options that contradict each other."""
    if timeout is not None and not once:
        raise click.UsageError("--timeout requires --once.")
    if listen is not None and once:
        raise click.UsageError("--listen cannot be combined with --once.")
    if signed_by is None and "LEHR_SIGNED_BY" in os.environ:
        # Otherwise a user who meant to name a file would get unsigned commits.
        raise click.UsageError("LEHR_SIGNED_BY is empty: name the file of keys, or unset it.")
    if listen is None:
        _require_unwritten("hook_secret", "names", "public_read")


def _require_unwritten(*names: str) -> None:
    """Raises `UsageError` for such options on the command line; variables may be meant for other commands."""
    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in names and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} requires --listen.")


def _secret(file: Path) -> str:
    """The content of a file without the trailing newline.

    Raises:
        LehrError: it cannot be read, or is empty.
    """
    from lehr.base.errors import LehrError, raised_as

    fix = "write the webhook secret of the git server into it, on one line"
    what, failures = f"the secret in {file} cannot be read", (OSError, UnicodeDecodeError)
    with raised_as(LehrError, what, code="CLI132", fix=fix, on=failures):
        found = file.read_text().strip()
    if not found:
        raise LehrError(f"{file} contains no secret", code="CLI133", why="it is empty", fix=fix)
    return found
