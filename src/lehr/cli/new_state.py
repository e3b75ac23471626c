"""Before `lehr run` begins: check that the workspace's state folder fits, or make one if there is none."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli.stored import has_store
from lehr.control.state_folder import (
    UNUSED,
    WORKSPACE_FILE,
    default_state,
    make,
    record_of,
    require_not_moved,
    require_own,
    require_partition,
)
from lehr.wiring import Deployment


def prepare(deployment: Deployment) -> None:
    """See that there is a state folder for the workspace, and that it is this workspace's.

    If there is none yet, the source is read before anything is made: a folder that is not a
    workspace gets no state, which would hide that of the workspace around it.

    Raises:
        LehrError: it is not a workspace, or cannot be read; the state is that of another partition, or of
            this workspace in another place.
    """
    warn_of_unused(deployment.base)
    require_own(deployment.state)
    if has_store(deployment.state):
        _require_same_partition(deployment)
        return
    if deployment.state == default_state(deployment.base):
        require_not_moved(deployment.base)
    with _place_for(deployment.state) as scratch:
        _require_workspace(replace(deployment, state=scratch))
        if deployment.state.exists():
            return
        make(deployment.state)
        try:
            scratch.rename(deployment.state)  # to fetch nothing twice
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EXDEV, errno.EBUSY):
                raise LehrError(
                    f"state folder {deployment.state} cannot be made",
                    code="CLI117",
                    why=error.strerror or str(error),
                ) from error


def warn_of_unused(folder: Path) -> None:
    """Report a `.lehr` in a workspace: its author may think that it is used."""
    unused = folder / UNUSED
    if unused.exists() or unused.is_symlink():
        click.echo(
            f"warning: {unused} is not used: state is never read from a workspace, where git writes. "
            "Remove it, or pass --state",
            err=True,
        )


@contextlib.contextmanager
def _place_for(state: Path) -> Iterator[Path]:
    """A folder that can be renamed to `state`; removed unless it is."""
    above = next(folder for folder in state.parents if folder.is_dir())
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".lehr-new-", dir=above))
    except OSError as error:
        if not state.is_dir():
            raise LehrError(
                f"state folder {state} cannot be used",
                code="CLI118",
                why=error.strerror or str(error),
                fix="choose another with --state, or make it one that this user can write to",
            ) from error
        scratch = Path(tempfile.mkdtemp(prefix="lehr-new-"))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _require_workspace(deployment: Deployment) -> None:
    files = wiring.primary_source(deployment).newest().files()
    if WORKSPACE_FILE in files:
        return
    committed = (deployment.base / deployment.path / WORKSPACE_FILE).is_file()
    raise LehrError(
        f"{deployment.location} is not a workspace",
        code="CLI119",
        why=f"{WORKSPACE_FILE} is not committed yet" if committed else f"there is no {WORKSPACE_FILE} in it",
        fix=f"commit {WORKSPACE_FILE}" if committed else "go to the workspace, or make one with `lehr init`",
    )


def _require_same_partition(deployment: Deployment) -> None:
    """Where the source is on this machine: if it cannot be read now, what is in force stays so."""
    from lehr.generate.engine.workspace import read_workspace

    record = record_of(deployment.state)
    if record is None or not record.partition or not Path(deployment.location).expanduser().exists():
        return
    try:
        snapshot = wiring.primary_source(deployment).newest()
        found, _problems = read_workspace(snapshot.read(WORKSPACE_FILE))
    except (LehrError, LookupError, OSError):
        return  # its faults are reported when it is published
    if found is not None:
        require_partition(deployment.state, str(found.partition))
