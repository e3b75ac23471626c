"""What is installed, as a digest: other programs may make other things of the same input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import lehr
from lehr.base.digest import Digest, digest_all

_CACHE = "__pycache__"


def digest_of_installed(*settings: str) -> Digest:
    """Digest of Python, of Lehr's own files, of the packages that can be imported, and of `settings`.

    A package counts by its name and the time at which it was installed. One that is edited where it lies,
    deep inside, is not noticed, as it is not by a process that runs.
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
    except OSError:  # sys.path may name what there is not
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
