"""`lehr claims`: claims of partitions on production of this host."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli import words
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
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Give up all that the partition with this state folder holds.",
)
@output_option("table", "json", "name")
@state_option
def claims(release: Path | None, form: str, state: Path | None) -> None:
    """List the files, ports and databases that partitions hold on this host, and who holds each.

    Two partitions that change the same thing would push against each other, so that the second one to
    claim it is refused (VAL031). A claim is given up when its asset is turned down, let go or moved (its new
    content was applied), and when the state folder is removed. --release is for a workspace that is gone
    for good, and whose state is left.

    Partitions of this user are listed; where the store is in PostgreSQL, also those of other users whose
    stores are in the same database. Their claims last as long as their stores, whatever becomes of the
    state folders.
    """
    registers = wiring.claim_registers(found_state(state), named_store())
    if release is None:
        found = {item: None for register in registers for item in register.all()}
        show(form, sorted(found, key=lambda item: item.name), _SHAPE, nothing="nothing is claimed")
        return
    folder = release.resolve()
    _require_left(folder)
    # The file last: if the database is away, nothing is released.
    released = {name for register in reversed(registers) for name in register.release_state(str(folder))}
    click.echo(f"{words.counted(len(released), 'claim')} released", err=True)


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
            f"it cannot be seen whether a `lehr run` is active with state folder {state}",
            code="CLI107",
            why=error.strerror or str(error),
            fix="release its claims as the user that it belongs to",
        ) from error
    if running(state):
        raise LehrError(
            f"a `lehr run` is active with state folder {state}",
            code="CLI108",
            why="it holds what it pushes",
            fix="stop it first; or turn its assets down, or let them go",
        )
