"""`lehr run`: the whole program in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from lehr.cli.stored import workspace_state_option
from lehr.cli.words import duration


@click.command(
    epilog="""
    \b
    Examples:
      lehr run                               keep production as the workspace here says
      lehr run --once --timeout 2m           end when it is so
      lehr run https://example.org/intent.git --branch main --state /var/lib/lehr
      lehr run /srv/intent --source directory --poll 5s

    Of a git repository, what is committed is read. Ends with 0 when asked to by SIGTERM. With
    --once: 0 when production is as intended, 1 with what blocks when it is not.
    """
)
@click.argument("location", metavar="[DIR]", default=".")
@workspace_state_option
@click.option("--once", is_flag=True, help="End when production is as intended, or blocked.")
@click.option("--timeout", callback=duration, metavar="TIME", help="With --once: give up after so long.")
@click.option("--source", "kind", type=click.Choice(["git", "directory"]), help="What DIR is, if not plain.")
@click.option("--branch", help="Branch of the git repository; else its current one.")
@click.option("--path", default="", help="Folder of the workspace within the git repository.")
@click.option("--poll", callback=duration, metavar="TIME", help="Longest time between looks at the source.")
@click.option(
    "--signed-by",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_SIGNED_BY",
    help="Read only commits that one of the public keys in this file has signed; else LEHR_SIGNED_BY.",
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
    verbose: bool,
    log_json: bool,
) -> None:
    """Make production as the workspace in DIR says, and keep it so, until ended."""
    import asyncio

    from lehr.cli.deployment import deployment_of
    from lehr.cli.logs import configure_logs
    from lehr.cli.running import run_on, run_once

    if timeout is not None and not once:
        raise click.UsageError("--timeout goes with --once.")
    configure_logs(verbose=verbose, as_json=log_json)
    deployment = deployment_of(
        location, state, kind=kind, branch=branch, path=path, poll=poll, signed_by=signed_by
    )
    code = asyncio.run(run_once(deployment, timeout) if once else run_on(deployment))
    raise click.exceptions.Exit(code)
