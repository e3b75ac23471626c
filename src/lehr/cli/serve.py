"""`lehr serve`: intent and its status over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli.active_run import state_of_folder
from lehr.cli.command import command
from lehr.cli.metrics_file import metrics_option
from lehr.cli.run_log import report
from lehr.cli.stored import named_store, state_folder, state_option
from lehr.control.activity_log import Level

if TYPE_CHECKING:
    from lehr.cli.shutdown import Ending
    from lehr.wiring.program import Answering
from lehr.query.run_state import RunState

DEFAULT = "127.0.0.1:8470"


server_name_option = click.option(
    "--server-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Host name to accept besides localhost and addresses, such as that of a proxy. Repeatable.",
)


public_read_option = click.option(
    "--public-read",
    is_flag=True,
    help="Answer everyone who can connect, without the token of the state. Dry runs still need it.",
)


@command()
@click.option(
    "--listen",
    metavar="ADDRESS",
    default=DEFAULT,
    show_default=True,
    help="Address to listen on. There is no encryption: for other machines, put a proxy with TLS in front.",
)
@server_name_option
@public_read_option
@metrics_option
@state_option
def serve(listen: str, names: tuple[str, ...], public_read: bool, metrics: Path | None) -> None:
    """Serve intent and status over HTTP, read-only. `lehr open` shows them in a browser.

    It reads the same store as `lehr run`, which does not need to be active and may be on another machine.
    Clients send the token that `lehr state token` prints. Commands with --server take it from LEHR_TOKEN;
    on the same machine, those of the same user find it without. /openapi.json describes the API.

    Examples:
        lehr serve
        lehr serve --listen 127.0.0.1:9000 --state /var/lib/lehr
        lehr serve --server-name lehr.example.org    behind a proxy with that name
        curl -H "Authorization: Bearer $(lehr state token)" http://127.0.0.1:8470/v1/partitions

    Exits with 0 on SIGTERM, and on SIGHUP if it was started from a terminal.
    """
    from lehr.cli.run_log import configure_logs
    from lehr.cli.shutdown import run_until_ended
    from lehr.http.server import parse_address
    from lehr.wiring.metrics import read_sources
    from lehr.wiring.program import Answering

    configure_logs()
    folder = state_folder()
    if metrics is not None:
        read_sources(metrics)  # a mistake in it is reported now, not at the first dry run
    how = Answering(parse_address(listen), names, public_read, metrics=metrics)
    run_until_ended(
        lambda ended: _serve(ended, how, folder),
        message="shutting down; watchers will reconnect",
    )


async def _serve(ended: Ending, how: Answering, state: Path) -> int:
    from lehr.wiring.program import answering

    warn_of(how)

    def run() -> RunState:
        return state_of_folder(state)

    async with answering(how, state, named_store(), run) as server:
        click.echo(serving_at(server.url), err=True)
        await ended.wait()
    return ended.code


def serving_at(url: str) -> str:
    """The message of a server that answers."""
    return f"serving at {url} (`lehr open` shows it in a browser)"


def warn_of(how: Answering) -> None:
    """Warn if others may read."""
    if how.public_read:
        who = "every user of this machine" if how.address.loopback else f"anyone who can reach {how.address}"
        report(f"{who} can read all intent and history: --public-read", "http", Level.WARNING)
    elif not how.address.loopback:
        report(
            f"what {how.address} answers, and the token of those who ask, are not encrypted: "
            "put a proxy with TLS in front",
            "http",
            Level.WARNING,
        )
