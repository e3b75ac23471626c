"""Makes changes of files survive a crash of the machine."""

from __future__ import annotations

import os


def sync(path: str | os.PathLike[str]) -> None:
    """Have the content of a file, or the entries of a directory, written to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
