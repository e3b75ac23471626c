"""One `lehr run` per state folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from lehr.base.errors import LehrError
from lehr.control.state_folder import make, require_own, usable

_NAME = "lock"


@contextlib.contextmanager
def exclusive(state: Path) -> Iterator[None]:
    """Lock the state folder; the kernel releases the lock however the process ends.

    Raises:
        LehrError: another process holds it, the folder cannot be written, or others can write it.
    """
    require_own(state)
    with usable(state):
        make(state)
        require_own(state)  # another process may have been faster
        handle = os.open(state / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(handle, state)
        _sign(handle, state)
        yield
    finally:
        os.close(handle)


def holder(state: Path) -> int | None:
    """The process that holds the state folder, as far as this user may see; None if no process does.

    Takes no lock to find out: that could turn away a `lehr run` that is just starting.
    """
    try:
        process = int((state / _NAME).read_text())
    except (OSError, ValueError):
        return None  # it names no process
    return process if has_open(process, state / _NAME) else None


def has_open(process: int, path: Path) -> bool:
    """Whether a process has a file open, as far as this user may see."""
    try:
        file = path.stat()
        for handle in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.path.samestat(handle.stat(), file):
                    return True
    except OSError:
        pass  # the process has ended
    return False


def _take(handle: int, state: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
        raise LehrError(
            f"another `lehr run` uses state folder {state}",
            code="CTL118",
            why=f"process {holder} holds its lock",
            fix="stop that one, or name another state folder with --state",
        ) from error


def _sign(handle: int, state: Path) -> None:
    """Record which process holds it, for processes that are refused."""
    with usable(state):
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
