"""The files in the folder that an Envoy watches. Blocks briefly."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from lehr.base.errors import StalledError, TransientError, raised_as
from lehr.plugins.balancer.envoy import CLUSTERS, ENDPOINTS, LISTENERS, ROUTES

_MAY_WRITE = "give the user that runs Lehr write access to this folder"
_MOST_READ = 16 << 20  # bytes: many times the size of a balancer's files


def read(folder: str) -> dict[str, bytes]:
    """Content of each existing file, by path below `folder`.

    Raises:
        TransientError: they cannot be read.
    """
    found = {}
    for name in names(folder):
        with (
            raised_as(TransientError, f"{folder}/{name} cannot be read", code="BAL108"),
            contextlib.suppress(FileNotFoundError),
            open(Path(folder, name), "rb") as file,
        ):
            found[name] = file.read(_MOST_READ)
    return found


def names(folder: str) -> list[str]:
    """Paths below `folder` where files may be.

    Raises:
        TransientError: the folder cannot be read.
    """
    entries: list[str] = []
    with (
        raised_as(TransientError, f"{folder}/{ENDPOINTS} cannot be read", code="BAL109"),
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
    ):
        entries = sorted(os.listdir(Path(folder, ENDPOINTS)))
    endpoints = [f"{ENDPOINTS}/{name}" for name in entries if name.endswith(".json") and name[0] != "."]
    return [LISTENERS, CLUSTERS, ROUTES, *endpoints]


def stamp(folder: str, name: str) -> tuple[int, int, int] | None:
    """Changes whenever a file is replaced or written to; None if it does not exist."""
    try:
        status = os.stat(Path(folder, name))
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def place(folder: str, name: str, content: bytes) -> None:
    """Put a file at `name` below `folder` by a rename, which Envoy watches for.

    Raises:
        StalledError: this user may not write there.
        TransientError: it cannot be written.
    """
    file = Path(folder, name)
    temporary = file.with_name(f".{file.name}.lehr-tmp")
    what = f"{file} cannot be written"
    with (
        raised_as(TransientError, what, code="BAL111"),
        raised_as(StalledError, what, code="BAL110", fix=_MAY_WRITE, on=PermissionError),
    ):
        file.parent.mkdir(exist_ok=True)
        temporary.write_bytes(content)
        temporary.rename(file)


def remove(folder: str, name: str) -> None:
    """Remove the file at `name` below `folder`, if it exists.

    Raises:
        TransientError: it cannot be removed.
    """
    with raised_as(TransientError, f"{folder}/{name} cannot be removed", code="BAL112"):
        Path(folder, name).unlink(missing_ok=True)
    if os.path.dirname(name):
        with contextlib.suppress(OSError):
            Path(folder, name).parent.rmdir()  # unless it holds others
