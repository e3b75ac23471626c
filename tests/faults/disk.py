"""A disk that can be filled up under a state folder."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from tests.e2e.bad_input.test_full_disk import may_mount
from tests.e2e.bad_input.workspace import Running

_SIZE = "size=16m,mode=0700"
_PAGE = 4096


class Disk(Protocol):
    """Where a state folder lies."""

    def fill(self, running: Running) -> None:
        """Nothing more can be written."""

    def make_room(self, running: Running) -> None:
        """It can again."""


class SmallDisk:
    """A small file system."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"

    def fill(self, running: Running | None) -> None:
        with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as ballast:
            while ballast.write(bytes(_PAGE)):
                pass

    def make_room(self, running: Running | None) -> None:
        self._ballast.unlink()

    def make_some_room(self) -> None:
        """For one page."""
        os.truncate(self._ballast, self._ballast.stat().st_size - _PAGE)


class Limit:
    """No file of the program may grow any more: what anybody can do without a disk of his own."""

    def fill(self, running: Running) -> None:
        resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    def make_room(self, running: Running) -> None:
        resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextlib.contextmanager
def disk_at(folder: Path) -> Iterator[Disk]:
    """A disk of its own for what will be in `folder`, as far as this user may have one."""
    if not may_mount(folder.parent):
        yield Limit()
        return
    folder.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", _SIZE, "none", folder], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        # Lazily: whoever still looks at it must not keep it there for ever.
        subprocess.run(["umount", "--lazy", folder], check=True)
