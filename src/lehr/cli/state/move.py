"""`lehr state move`: reattaches the state after moving a workspace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from lehr.base.errors import LehrError, raised_as
from lehr.cli.command import command
from lehr.control.lock import exclusive
from lehr.control.socket import connected
from lehr.control.state_folder import (
    WORKSPACE_FILE,
    Record,
    default_state,
    record_of,
    require_own,
    require_partition,
    states,
    write_record,
)


@command()
@click.argument("old", metavar="OLD", type=click.Path(path_type=Path))
@click.argument("new", metavar="[NEW]", default=".", type=click.Path(path_type=Path, file_okay=False))
def move(old: Path, new: Path) -> None:
    """Reattach the state of the workspace at OLD to its new location NEW.

    OLD must be gone: two workspaces with one history would undo each other's pushes.

    Examples:
        mv ~/shop /srv/shop
        cd /srv/shop && lehr state move ~/shop

    Stop `lehr run` and the processes that it manages first.
    """
    if not (new / WORKSPACE_FILE).is_file():
        raise LehrError(
            f"{new.absolute()} is not a workspace", code="CLI149", why=f"it has no {WORKSPACE_FILE}"
        )
    source, target = _state_of(old), default_state(new)
    require_own(source)
    require_own(target)
    record = record_of(source)
    if record is None:
        raise LehrError(
            f"{old.absolute()} has no state",
            code="CLI150",
            why=f"{source} does not exist, or does not record its workspace",
            fix="find the folder with `lehr state show` at the old path, or name it with --state",
        )
    _require_gone(record)
    if target.is_dir() and any(target.iterdir()):
        raise LehrError(
            f"the workspace in {new.absolute()} already has state",
            code="CLI151",
            why=f"{target} is not empty",
            fix="remove that folder if you do not need it",
        )
    if record.partition and (partition := _partition_in(new)):
        require_partition(source, partition)
    with exclusive(source):
        _require_no_processes(source)
        _rename(source, target)
        write_record(target, new, record.partition)
    click.echo(f"the state of {record.partition or record.path} is now in {target}")


def _state_of(old: Path) -> Path:
    """By the former path of the workspace. Links to it may be gone as well."""
    usual, real = default_state(old), Path(os.path.realpath(old))
    if not usual.is_dir():
        for folder, record in _known():
            if record.path in (real, old.absolute()):
                return folder
    return usual


def _known() -> Iterator[tuple[Path, Record]]:
    above = states()
    for folder in sorted(above.iterdir()) if above.is_dir() else ():
        if folder.is_dir() and (record := record_of(folder)) is not None:
            yield folder, record


def _require_gone(record: Record) -> None:
    if (record.path / WORKSPACE_FILE).exists():
        raise LehrError(
            f"{record.path} is still a workspace",
            code="CLI152",
            why="two workspaces with one history would undo each other's pushes",
            fix="remove or rename it first",
        )


def _partition_in(workspace: Path) -> str | None:
    from lehr.generate.engine.workspace import read_workspace

    found, _problems = read_workspace((workspace / WORKSPACE_FILE).read_bytes())
    return None if found is None else str(found.partition)


def _require_no_processes(state: Path) -> None:
    """Managed processes use the path of the folder; after a move they could not be found or restarted."""
    for socket in sorted(state.glob("supervisor/*/supervisor.sock")):
        try:
            connected(socket, 1.0).close()
        except OSError:
            continue
        raise LehrError(
            f"processes run from state folder {state}",
            code="CLI153",
            why="they use its path",
            fix=f"run `lehr stop --processes --state {state}`; `lehr run` starts them again",
        )


def _rename(source: Path, target: Path) -> None:
    what, fix = f"{source} cannot be moved to {target}", "move it by hand, and name it with --state"
    with raised_as(LehrError, what, code="CLI154", fix=fix):
        source.rename(target)
