"""Locks a place against other programmatic edits, in this process and in others."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lehr.base.errors import StalledError, raised_as


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock `folder`, waiting until others release it. Leaves nothing behind, however the process ends.

    Raises:
        StalledError: the folder may not be read, or its file system does not support locks.
    """
    what = f"{folder} cannot be locked"
    fix = "check that this user can read it and that its file system supports locks"
    with contextlib.ExitStack() as stack:
        with raised_as(StalledError, what, code="EDT123", fix=fix):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
