"""Digest of the installed software: another version may produce other outputs from the same input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import lehr
from lehr.base.digest import Digest, digest_all

_CACHE = "__pycache__"


def digest_of_installed(*settings: str) -> Digest:
    """Digest of Python, Lehr's own files, the importable packages, and `settings`.

    A package is identified by its name and installation time. Edits in place, deep inside a package, are not
    detected, just as a running process does not notice them.
    """
    folders = dict.fromkeys(folder for folder in sys.path if folder)
    parts = [part for folder in folders for part in _entries(Path(folder))]
    own = [part for place in lehr.__path__ for part in _files(Path(place))]
    return digest_all((lehr.__version__, sys.version, *settings, *parts, *own))


def _entries(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(
                (entry.name, entry.stat().st_mtime_ns) for entry in entries if entry.name != _CACHE
            )
    except OSError:  # sys.path may name missing entries
        return
    for name, time in found:
        yield f"{name} {time}"


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != _CACHE)
        for name in sorted(names):
            try:
                status = os.stat(os.path.join(place, name))
            except OSError:  # it is being edited
                continue
            yield f"{os.path.relpath(place, folder)}/{name} {status.st_size} {status.st_mtime_ns}"
