"""`lehr claims`: claims of partitions on production of this host."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.stored import found_state, named_store, running, state_option
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


@command()
@click.option(
    "--release",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Release all claims of the partition with this state folder.",
)
@output_option("table", "json", "name")
@state_option
def claims(release: Path | None, form: str) -> None:
    """List the files, ports and databases claimed by partitions on this host, and the owner of each.

    Two partitions that change the same thing would undo each other's pushes, so the second one to claim it
    is refused (VAL031). A claim is released when its asset is turned down, let go or moved (its new content
    was applied), and when the state folder is removed. Use --release for a workspace that is gone for good
    but whose state is still there.

    Lists the partitions of this user and, if the store is in PostgreSQL, those of other users whose stores
    are in the same database. These claims last as long as their stores, even if the state folders are
    removed.

    Examples:
        lehr claims
        lehr claims -o json
        lehr claims --release ~/.local/state/lehr/shop-1a2b3c4d
    """
    registers = wiring.claim_registers(found_state(), named_store())
    if release is None:
        found = {item: None for register in registers for item in register.all()}
        show(form, sorted(found, key=lambda item: item.name), _SHAPE, nothing="no claims")
        return
    folder = release.resolve()
    _require_left(folder)
    # The file last: if the database is away, nothing is released.
    released = {name for register in reversed(registers) for name in register.release_state(str(folder))}
    click.echo(f"{formatting.counted(len(released), 'claim')} released", err=True)


def _require_left(state: Path) -> None:
    """Check that no process runs from a state folder.

    Raises:
        LehrError: one does, or that cannot be checked.
    """
    try:
        os.stat(f"{state}/.")  # looks into the folder, not only at it
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise LehrError(
            f"cannot check whether a `lehr run` is active on state folder {state}",
            code="CLI107",
            why=error.strerror or str(error),
            fix="release its claims as the user that owns it",
        ) from error
    if running(state):
        raise LehrError(
            f"a `lehr run` is active on state folder {state}",
            code="CLI108",
            why="it still pushes the things that it claims",
            fix="stop it first, turn its assets down, or let them go",
        )
