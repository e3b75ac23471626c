"""Locks a place against other programmatic edits, in this process and in others."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lehr.base.errors import StalledError


@contextlib.contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Lock `folder`, waiting until others release it. Leaves nothing behind, however the process ends.

    Raises:
        StalledError: the folder may not be read, or its file system does not support locks.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as err:
        raise _unusable(folder, err) from err
    try:
        _take(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as err:
        raise _unusable(folder, err) from err


def _unusable(folder: Path, err: OSError) -> StalledError:
    return StalledError(
        f"{folder} cannot be held",
        code="EDT123",
        why=err.strerror or str(err),
        fix="see that this user may read it, and that its file system knows locks",
    )
