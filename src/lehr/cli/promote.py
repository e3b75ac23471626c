"""`lehr promote`: pin an incarnation of one partition as the source of another, as a commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.cli.command import command
from lehr.cli.complete import complete_file
from lehr.cli.formatting import first_of
from lehr.cli.intent_edit import Editing, Target, committing, editing_options, show_commit, target_of
from lehr.control.state_folder import named_state
from lehr.dry_run.promotion import Chosen, chosen_from, declared_origin, pin
from lehr.model.declared_sources import WORKSPACE_FILE
from lehr.wiring import inert_in, open_store

if TYPE_CHECKING:
    from lehr.editing import Change, Commit
    from lehr.sdk.store import CheckableStore

_MOST = 5


@command()
@click.argument("incarnation", metavar="PARTITION@N")
@click.option("-m", "--message", help="Commit message.")
@click.option(
    "--from",
    "origin",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help="Workspace or state folder of that partition, or an exported file. Defaults to that in lehr.yaml.",
)
@click.option(
    "--to",
    "file",
    default=WORKSPACE_FILE,
    show_default=True,
    metavar="FILE",
    shell_complete=complete_file,
    help="File to edit.",
)
@click.option("--source", "name", help="Name of the source. Defaults to the one with this partition.")
@click.option(
    "--unconverged",
    metavar="REASON",
    help="Promote even if production there does not match it, for this reason.",
)
@editing_options
def promote(
    incarnation: str,
    message: str | None,
    origin: Path | None,
    file: str,
    name: str | None,
    unconverged: str | None,
    options: Editing,
) -> None:
    """Pin incarnation N (or `latest`) of another PARTITION as a source of this workspace.

    Commits its number and digest to lehr.yaml; comments and layout stay. The workspace then reads exactly
    that content, whatever happens to the partition. An incarnation that production there did not match
    when it was last observed is refused: it has not been tested yet.

    Examples:
        lehr promote staging@42 -m "Passed its tests"             in the workspace of production
        lehr promote staging@latest --from ../staging -m "First promotion"
        lehr promote staging@42 --from staging-42.incarnation --unconverged "Tested in the old cell" -m "..."
        lehr promote staging@42 --in ssh://git@example.org/production.git --from /srv/staging -m "..."

    Exits with 1 if it is refused; then nothing was written.
    """
    partition, _, number = incarnation.rpartition("@")
    if not partition or not (number.isdecimal() or number == "latest"):
        raise click.UsageError("Name an incarnation: staging@42, or staging@latest.")
    target = target_of(file, options, message)
    origin = origin or declared_origin(target.workspace, target.file, partition, name)
    chosen = chosen_from(partition, number, origin, _open_state, inert_in, SystemClock().now())
    if chosen.unproved and not unconverged:
        raise LehrError(
            f"production of partition {chosen.header.partition} does not match {chosen.header.name}",
            code="CLI131",
            why=first_of(chosen.unproved, _MOST),
            fix="wait until it does (`lehr wait`), or promote it anyway with --unconverged REASON",
        )
    text = f"Promote {chosen.header.name}" + (f": {message}" if message else "")
    if chosen.unproved:
        text += f"\n\nNot converged: {unconverged}"
    with committing(target, options, text) as commit:
        made = _pinned(commit, target, chosen, name)
    show_commit(made, options)


def _open_state(origin: Path) -> CheckableStore:
    """Not the store of LEHR_STORE, which is this partition's."""
    return open_store(named_state(origin), read_only=True)


def _pinned(commit: Callable[[Change], Commit], target: Target, chosen: Chosen, name: str | None) -> Commit:
    """Pin it among the existing sources, or as the first one."""
    from lehr.editing import Add, Compute, EditError

    try:
        pinned = pin(chosen, name, target.workspace)
        return commit(Compute(file=target.file, path="sources", function=pinned))
    except EditError as refused:
        if [item.code for item in refused.diagnostics] != ["EDT002"]:
            raise
    first = pin(chosen, name, target.workspace)({})
    return commit(Add(file=target.file, path="sources", value=first))
