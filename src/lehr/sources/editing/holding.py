"""Keeping other edits by program out of a place, in this process and in others."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lehr.base.errors import StalledError


@contextlib.contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Hold `folder`, or wait until others let go of it. Leaves nothing behind, however the process ends.

    Raises:
        StalledError: the folder may not be read.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as err:
        raise StalledError(
            f"{folder} cannot be read", why=err.strerror or str(err), fix="let this user read it"
        ) from err
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
