"""`lehr state`: where the state of a workspace is, and taking it along when the workspace moves."""

from __future__ import annotations

from typing import ClassVar

import click

from lehr.cli.lazy import Lazy, LazyGroup


class _Commands(LazyGroup):
    sections: ClassVar = {
        "State folders": {
            "show": Lazy("lehr.cli.state.show:show", "Show where the state is, and what is in it."),
            "move": Lazy("lehr.cli.state.move:move", "Take the state along after moving a workspace."),
        },
    }


@click.command(
    cls=_Commands,
    epilog="""
    \b
    Examples:
      lehr state show
      lehr state show -o json
      mv ~/shop /srv/shop && cd /srv/shop && lehr state move ~/shop
    """,
)
def state() -> None:
    """Find and move the folder in which Lehr keeps what it knows of a workspace.

    It is never in the workspace: git writes there. It is in $STATE_DIRECTORY (systemd sets it), else in
    $XDG_STATE_HOME/lehr, else in /var/lib/lehr for root and ~/.local/state/lehr for everybody else; named
    after the workspace and its real path. --state names another one.
    """
