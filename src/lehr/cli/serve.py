"""`lehr serve`: intent and what became of it, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli.active_run import state_of_folder
from lehr.cli.stored import installation, open_store_of, state_folder, state_option

if TYPE_CHECKING:
    from lehr.cli.ending import Ending
    from lehr.http.server import Address
    from lehr.query.run_state import RunState

DEFAULT = "127.0.0.1:8470"


server_name_option = click.option(
    "--server-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name that people ask it under, beside localhost and addresses: that of a proxy, say. Repeatable.",
)


@click.command(
    epilog="""
    \b
    Examples:
      lehr serve
      lehr serve --listen 127.0.0.1:9000 --state /var/lib/lehr
      lehr serve --server-name lehr.example.org    behind a proxy of that name
      curl http://127.0.0.1:8470/v1/partitions

    Ends with 0 when asked to by SIGTERM. SIGHUP ends it if it was started from a terminal.
    """
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default=DEFAULT,
    show_default=True,
    help="Where. Whoever can come there can read everything: there is no authentication.",
)
@server_name_option
@state_option
def serve(listen: str, names: tuple[str, ...], state: Path | None) -> None:
    """Answer over HTTP what intent says and how it stands; read-only. /openapi.json says what can be asked.

    It reads the same store as `lehr run`, which may run or not, and may be on another machine.
    """
    from lehr.cli.ending import run_until_ended
    from lehr.cli.logs import configure_logs

    configure_logs(verbose=False, as_json=False)
    folder = state_folder(state)
    run_until_ended(
        lambda ended: _serve(ended, listen, names, folder), told="ending; whoever watches comes again"
    )


async def _serve(ended: Ending, listen: str, names: tuple[str, ...], state: Path) -> int:
    from lehr.base.clock import SystemClock
    from lehr.http.server import parse_address, serving

    address = parse_address(listen)
    warn_of(address)
    opening = open_store_of(state)
    known, clock = installation(state), SystemClock()

    def run() -> RunState:
        return state_of_folder(state)

    async with serving(address, opening, known, clock, run_state=run, names=names) as server:
        click.echo(f"answering at {server.url}", err=True)
        await ended.wait()
    return ended.code


def warn_of(address: Address) -> None:
    """Explain the effect of listening where others can connect."""
    if not address.loopback:
        click.echo(
            f"warning: whoever can reach {address} can read all intent and history: "
            "there is no authentication and no encryption",
            err=True,
        )
