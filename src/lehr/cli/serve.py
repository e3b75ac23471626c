"""`lehr serve`: intent and its status over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli.active_run import state_of_folder
from lehr.cli.command import command
from lehr.cli.run_log import report
from lehr.cli.stored import named_store, state_folder, state_option
from lehr.control.activity_log import Level

if TYPE_CHECKING:
    from lehr.cli.shutdown import Ending
    from lehr.http.server import Address
from lehr.query.run_state import RunState

DEFAULT = "127.0.0.1:8470"


server_name_option = click.option(
    "--server-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Host name to accept besides localhost and addresses, such as that of a proxy. Repeatable.",
)


@command()
@click.option(
    "--listen",
    metavar="ADDRESS",
    default=DEFAULT,
    show_default=True,
    help="Address to listen on. Anyone who can connect can read everything: there is no authentication.",
)
@server_name_option
@state_option
def serve(listen: str, names: tuple[str, ...]) -> None:
    """Serve intent and status over HTTP, read-only. /openapi.json describes the API.

    It reads the same store as `lehr run`, which does not need to be active and may be on another machine.

    Examples:
        lehr serve
        lehr serve --listen 127.0.0.1:9000 --state /var/lib/lehr
        lehr serve --server-name lehr.example.org    behind a proxy with that name
        curl http://127.0.0.1:8470/v1/partitions

    Exits with 0 on SIGTERM, and on SIGHUP if it was started from a terminal.
    """
    from lehr.cli.run_log import configure_logs
    from lehr.cli.shutdown import run_until_ended

    configure_logs()
    folder = state_folder()
    run_until_ended(
        lambda ended: _serve(ended, listen, names, folder), message="shutting down; watchers will reconnect"
    )


async def _serve(ended: Ending, listen: str, names: tuple[str, ...], state: Path) -> int:
    from lehr.http.server import parse_address
    from lehr.wiring.program import answering

    address = parse_address(listen)
    warn_of(address)

    def run() -> RunState:
        return state_of_folder(state)

    async with answering(address, state, named_store(), run, names) as server:
        click.echo(f"serving at {server.url}", err=True)
        await ended.wait()
    return ended.code


def warn_of(address: Address) -> None:
    """Warn if other machines can connect."""
    if not address.loopback:
        report(
            f"anyone who can reach {address} can read all intent and history: "
            "there is no authentication and no encryption",
            "http",
            Level.WARNING,
        )
