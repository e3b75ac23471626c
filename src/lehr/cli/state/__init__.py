"""`lehr state`: the state folder of a workspace, and moving it with the workspace."""

from __future__ import annotations

import click

from lehr.cli.lazy import Lazy, LazyGroup


@click.command(
    cls=LazyGroup,
    sections={
        "State folders": {
            "show": Lazy("lehr.cli.state.show:show", "Show the location and content of the state."),
            "token": Lazy("lehr.cli.state.token:token", "Print the token for reading over HTTP."),
            "move": Lazy("lehr.cli.state.move:move", "Reattach the state after moving a workspace."),
        },
    },
)
def state() -> None:
    """Show or move the folder in which Lehr stores the state of a workspace.

    It is never in the workspace, because git writes there. It is in $STATE_DIRECTORY (set by systemd), else
    in $XDG_STATE_HOME/lehr, else in /var/lib/lehr for root and ~/.local/state/lehr for other users; it is
    named after the workspace and its real path. --state names another folder.

    Examples:
        lehr state show
        lehr state show -o json
        mv ~/shop /srv/shop && cd /srv/shop && lehr state move ~/shop
    """
