"""Before `lehr run` starts: check that the state folder belongs to the workspace, or create one."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from lehr.base.errors import LehrError
from lehr.control.state_folder import (
    WORKSPACE_FILE,
    default_state,
    make,
    record_of,
    require_not_moved,
    require_own,
    require_partition,
)
from lehr.wiring.deployment import Deployment
from lehr.wiring.sources import primary_source
from lehr.wiring.stores import has_store


def prepare(deployment: Deployment, store_address: str | None) -> None:
    """Ensure that the workspace has a state folder, and that it belongs to this workspace.

    If there is none yet, the source is read before anything is created: a folder that is not a
    workspace gets no state, which would hide that of the workspace around it.

    Raises:
        LehrError: it is not a workspace, or cannot be read; the state belongs to another partition, or to
            this workspace at another path.
    """
    require_own(deployment.state)
    if store_address is not None or has_store(deployment.state):
        _require_same_partition(deployment)
        return
    with _place_for(deployment.state) as scratch:
        _require_workspace(replace(deployment, state=scratch))
        if deployment.state == default_state(deployment.base):
            require_not_moved(deployment.base, _partition(replace(deployment, state=scratch)))
        if deployment.state.exists():
            return
        make(deployment.state)
        try:
            scratch.rename(deployment.state)  # to avoid fetching twice
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EXDEV, errno.EBUSY):
                raise LehrError(
                    f"state folder {deployment.state} cannot be created",
                    code="CLI117",
                    why=error.strerror or str(error),
                ) from error


@contextlib.contextmanager
def _place_for(state: Path) -> Iterator[Path]:
    """A folder that can be renamed to `state`; removed otherwise."""
    above = next(folder for folder in state.parents if folder.is_dir())
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".lehr-new-", dir=above))
    except OSError as error:
        if not state.is_dir():
            raise LehrError(
                f"state folder {state} cannot be used",
                code="CLI118",
                why=error.strerror or str(error),
                fix="choose another with --state, or make it writable for this user",
            ) from error
        scratch = Path(tempfile.mkdtemp(prefix="lehr-new-"))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _require_workspace(deployment: Deployment) -> None:
    files = primary_source(deployment).newest().files()
    if WORKSPACE_FILE in files:
        return
    committed = (deployment.base / deployment.path / WORKSPACE_FILE).is_file()
    raise LehrError(
        f"{deployment.location} is not a workspace",
        code="CLI119",
        why=f"{WORKSPACE_FILE} is not committed yet" if committed else f"it has no {WORKSPACE_FILE}",
        fix=f"commit {WORKSPACE_FILE}"
        if committed
        else "change to a workspace, or create one with `lehr init`",
    )


def _require_same_partition(deployment: Deployment) -> None:
    """If the source is on this machine and cannot be read now, the incarnation in force stays in force."""
    record = record_of(deployment.state)
    if record is None or not record.partition or not Path(deployment.location).expanduser().exists():
        return
    if partition := _partition(deployment):
        require_partition(deployment.state, partition)


def _partition(deployment: Deployment) -> str:
    """The partition that the source declares; empty if it cannot be read, which publishing reports."""
    from lehr.generate.engine.workspace import read_workspace

    try:
        found, _problems = read_workspace(primary_source(deployment).newest().read(WORKSPACE_FILE))
    except (LehrError, LookupError, OSError):
        return ""
    return "" if found is None else str(found.partition)
