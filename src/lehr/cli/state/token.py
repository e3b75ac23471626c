"""`lehr state token`: the token that admits to the servers of a state."""

from __future__ import annotations

import click

from lehr.cli.command import command
from lehr.cli.stored import state_folder, state_option


@command()
@state_option
def token() -> None:
    """Print the token with which `lehr serve` and `lehr run --listen` let programs read.

    They send it as `Authorization: Bearer`; commands with --server take it from LEHR_TOKEN. It allows
    to read all intent and history, and to change nothing. To replace it, remove the file http-token in the
    state folder and restart the servers.

    Examples:
        curl -H "Authorization: Bearer $(lehr state token)" http://127.0.0.1:8470/v1/partitions
        LEHR_TOKEN=$(ssh shop.example.org lehr state token) lehr --server https://shop.example.org status
    """
    from lehr.control.http_servers import make_token

    click.echo(make_token(state_folder()))
