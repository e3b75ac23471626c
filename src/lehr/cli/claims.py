"""`lehr claims`: what this user's partitions hold in production on this host."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli import words
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.stored import running
from lehr.store.claims import Claimed

_SHAPE: Shape[Claimed] = Shape(
    (
        Column("CLAIM", lambda item: item.name),
        Column("PARTITION", lambda item: item.holder.partition),
        Column("ASSET", lambda item: item.holder.asset),
        Column("STATE", lambda item: item.holder.state),
    ),
    lambda item: {"claim": item.name, **msgspec.to_builtins(item.holder)},
    lambda item: item.name,
)


@click.command(
    epilog="""
    \b
    Examples:
      lehr claims
      lehr claims -o json
      lehr claims --release ~/.local/state/lehr/shop-1a2b3c4d
    """
)
@click.option(
    "--release",
    metavar="STATE",
    type=click.Path(path_type=Path, file_okay=False),
    help="Give up all that the partition with this state folder holds.",
)
@output_option("table", "json", "name")
def claims(release: Path | None, form: str) -> None:
    """List the files, ports and databases that your partitions hold on this host, and who holds each.

    Two partitions that change the same thing would push against each other, so that the second one to
    claim it is refused (VAL031). A claim is given up when its asset is turned down or let go, and when the
    state folder is removed. --release is for a workspace that is gone for good, and whose state is left.
    """
    register = wiring.claim_register()
    if release is None:
        show(form, register.all(), _SHAPE, nothing="nothing is claimed")
        return
    state = release.resolve()
    if running(state):
        raise LehrError(
            f"a `lehr run` is active with state folder {state}",
            why="it holds what it pushes",
            fix="stop it first; or turn its assets down, or let them go",
        )
    click.echo(f"{words.counted(register.release_state(str(state)), 'claim')} released", err=True)
