"""Makes changes of files survive a crash of the machine."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def sync(path: str | os.PathLike[str]) -> None:
    """Have the content of a file, or the entries of a directory, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Replace a file as a whole: a crash leaves the old one or the new one.

    Args:
        owner: user and group of the new file, if this process may set them.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            if owner is not None:
                with contextlib.suppress(PermissionError):  # only root may change a file's owner
                    os.fchown(file.fileno(), *owner)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync(path.parent)
