"""The folder of a path: it exists, and may be changed. Blocks."""

from __future__ import annotations

import os

from lehr.base.errors import StalledError
from lehr.base.real_paths import real_entry
from lehr.sdk.protected import Protected


def make_folder(protected: Protected, path: str, *, always: bool, seen: dict[str, str] | None = None) -> None:
    """Make sure that the folder of `path` exists. Callers check `path` again once they hold it open.

    Args:
        always: create it, and those above it, if it does not exist.
        seen: as for `Protected.why`.

    Raises:
        StalledError: it is protected, or does not exist and must not be created.
    """
    directory = os.path.dirname(path)
    if os.path.isdir(directory):
        return
    require_unprotected(protected, path, real_entry(path), seen)
    if always:
        os.makedirs(directory, exist_ok=True)
    else:
        raise StalledError(
            f"directory {directory} does not exist",
            code="FIL108",
            why="`make_parents` is false",
            fix="create the directory, or set `make_parents: true`",
        )


def require_unprotected(
    protected: Protected, path: str, real: str, seen: dict[str, str] | None = None
) -> None:
    """Return if `path`, which leads to `real`, may be changed; `seen` is as for `Protected.why`.

    Raises:
        StalledError: it may not.
    """
    if why := protected.why(real, seen=seen):
        raise StalledError(
            f"{path} is in {why}",
            code="FIL109",
            why="anyone who can write there controls what Lehr enforces, or which programs git runs",
            fix="choose a path outside of it",
        )
