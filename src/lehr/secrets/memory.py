"""A folder in memory, for plain text that a program needs as a file."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

from lehr.base.errors import LehrError

_KINDS = ("tmpfs", "ramfs")
_SIGNALS = (signal.SIGHUP, signal.SIGTERM)


@contextlib.contextmanager
def memory_folder(environment: Mapping[str, str]) -> Iterator[Path]:
    """A private folder in memory, removed afterwards, even when the terminal closes.

    Use it in the main thread only, as it handles signals.

    Raises:
        LehrError: no in-memory file system is writable.
    """
    place = _place(environment)
    folder = Path(tempfile.mkdtemp(prefix="lehr-secret-", dir=place))
    before = {number: signal.signal(number, _end) for number in _SIGNALS}
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)


def _place(environment: Mapping[str, str]) -> str:
    candidates = (environment.get("XDG_RUNTIME_DIR", ""), "/dev/shm", "/run/shm")  # noqa: S108 - that they are in memory is what counts
    for candidate in candidates:
        if candidate and os.access(candidate, os.W_OK | os.X_OK) and _kind(candidate) in _KINDS:
            return candidate
    raise LehrError(
        "there is no in-memory file system for editing",
        code="SEC119",
        why="plain text must not be written to a disk, where it could be recovered",
        fix="mount a tmpfs at /dev/shm, or set single values with `lehr secret encrypt FILE#KEY`",
    )


def _kind(folder: str) -> str:
    """Type of the file system that `folder` is on."""
    real = Path(folder).resolve()
    best, kind = 0, ""
    for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
        _, point, found, *_ = line.split(" ")
        # Spaces in names are written as \\040, which none of the searched locations contains.
        if real.is_relative_to(point) and len(point) >= best:
            best, kind = len(point), found
    return kind


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
