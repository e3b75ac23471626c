"""Locations of a workspace, its state and its production, from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from lehr import wiring
from lehr.cli.stored import workspace_state
from lehr.wiring import Deployment


def deployment_of(
    location: str,
    state: Path | None,
    kind: Literal["git", "directory"] | None = None,
) -> Deployment:
    """The deployment of the workspace at `location`.

    Relative paths in intent mean what they mean in the workspace, and the state is that of the
    workspace. A bare repository, or one elsewhere, is not a folder to work in, so the
    current directory is used.

    Args:
        location: directory, or path or URL of a git repository.
        state: folder of the state, where it is named.

    Raises:
        TransientError: it should be on this machine, and is missing. Relative paths in intent would
            change their meaning the moment it appears.
    """
    wiring.require_location(location)
    folder = Path(location).expanduser()
    base = folder.absolute() if _is_work_tree(folder) else Path.cwd()
    return Deployment(
        location=location,
        state=workspace_state(base, state),
        base=base,
        kind=kind,
        plugins=wiring.plugins_file(),
    )


def _is_work_tree(folder: Path) -> bool:
    bare = all((folder / name).exists() for name in ("HEAD", "objects", "refs"))
    return folder.is_dir() and not bare
