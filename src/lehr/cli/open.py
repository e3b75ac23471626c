"""`lehr open`: shows the page in a browser."""

from __future__ import annotations

import contextlib
import webbrowser
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import click

from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.named_server import named_server, server_option
from lehr.cli.stored import named_partition, partition_option, state_folder, state_option

if TYPE_CHECKING:
    from lehr.http.remote import RemoteStore


@command("open")
@click.argument("asset", required=False, shell_complete=complete_asset)
@click.option(
    "--print", "only_print", is_flag=True, help="Print the link instead, such as for a browser elsewhere."
)
@server_option
@state_option
@partition_option
def open_(asset: str | None, only_print: bool) -> None:
    """Show the page in a browser: what production is, and why it is not as intended.

    With ASSET, it shows that asset. The page comes from the `lehr serve` or `lehr run --listen` of the state.
    The link works once, within five minutes: it gives the browser a cookie, which admits it from then on.

    Examples:
        lehr open
        lehr open web/frontend
        lehr open --print                   over SSH, with `ssh -L 8470:127.0.0.1:8470`
    """
    url = named_server() or _url_of_state()
    link = _link(url, asset)
    if only_print:
        click.echo(link)
    elif webbrowser.open(link):
        click.echo(f"opened {url} in a browser", err=True)
    else:
        click.echo("no browser was found here; open this link, which works once:", err=True)
        click.echo(link)


def _url_of_state() -> str:
    """Where the state at hand is served.

    Raises:
        LehrError: no server of this user serves it.
    """
    from lehr.base.errors import LehrError
    from lehr.control.http_servers import running_servers

    state = str(state_folder().absolute())
    found = next((item.local_url for item in running_servers() if item.state == state), None)
    if found is None:
        raise LehrError(
            f"no server answers for state folder {state}",
            code="CLI190",
            fix="start `lehr serve`, or `lehr run` with --listen 127.0.0.1:8470; "
            "name one of another user or machine with --server",
        )
    return found


def _link(url: str, asset: str | None) -> str:
    """A link that admits a browser.

    Raises:
        LehrError: there is no server, or it does not take the token, or has no such asset.
    """
    from lehr.base.clock import SystemClock
    from lehr.control.http_servers import token_for
    from lehr.http.access import SIGN_IN_PATH, new_ticket
    from lehr.http.remote import RemoteStore

    token = token_for(url)
    with contextlib.closing(RemoteStore(url, lambda: token)) as store:
        store.intent.partitions()  # so that nothing is opened which does not answer
        to = "/" if asset is None else _path(store, asset)
    if not token:  # the server answers without one
        return f"{url}{to}"
    ticket = new_ticket(token, SystemClock().now())
    return f"{url}{SIGN_IN_PATH}?{urlencode({'ticket': ticket, 'to': to}, safe='/')}"


def _path(store: RemoteStore, asset: str) -> str:
    from lehr import wiring
    from lehr.base.clock import SystemClock
    from lehr.query.asset_rows import known_asset
    from lehr.query.partition_view import Reading, choose_partition

    partition = choose_partition(store.intent.partitions(), named_partition())
    reading = Reading(store, partition, SystemClock().now(), wiring.inert_in(store, partition))
    found, _sequence = known_asset(reading, asset)
    return f"/p/{quote(partition)}/assets/{quote(found.id)}"
