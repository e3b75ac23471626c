"""Given a full disk, when production differs or intent changes, then pushes wait, and all heals with room."""

from __future__ import annotations

import contextlib
import resource
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from tests.e2e.bad_input.workspace import Running, Workspace, until

SPACE = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=2m,mode=0700 none "$0" && exec "$@"')
"""Starts a program that sees a file system of 2 MB of its own at a folder."""


class Disk(Protocol):
    """A disk that can be filled up under a `lehr run`."""

    @property
    def prefix(self) -> Sequence[str]:
        """What to start `lehr run` with."""

    @property
    def says(self) -> str:
        """What the system says when it is full."""

    def watch(self, running: Running) -> Sequence[str]:
        """Take it that `running` runs on this disk. What to start commands with that see the same."""

    def fill(self) -> None: ...

    def make_room(self) -> None: ...


class SmallDisk:
    """A tiny file system."""

    says = "the disk is full"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self.prefix = (*SPACE, str(folder))

    def watch(self, running: Running) -> Sequence[str]:
        self._ballast = Path(f"/proc/{running.pid}/root{self._folder}/ballast")
        return ("nsenter", f"--target={running.pid}", "--mount")

    def fill(self) -> None:
        with contextlib.suppress(OSError), self._ballast.open("wb", buffering=0) as ballast:
            while ballast.write(b"x" * 4096):
                pass

    def make_room(self) -> None:
        self._ballast.unlink()


class Limit:
    """No file of the program may grow any more: what anybody can do without a disk of his own."""

    says = "disk I/O error"
    prefix: Sequence[str] = ()

    def watch(self, running: Running) -> Sequence[str]:
        self._pid = running.pid
        return ()

    def fill(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    def make_room(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def may_mount(folder: Path) -> bool:
    """Whether this user may have a `SmallDisk`."""
    tried = [*SPACE, str(folder), "true"]
    return bool(shutil.which(SPACE[0])) and subprocess.run(tried, capture_output=True).returncode == 0


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path)
    workspace.declare_file("motd", "welcome\n")
    workspace.commit()
    return workspace


def test_what_cannot_be_written_down_is_not_done_and_is_done_when_there_is_room(shop: Workspace) -> None:
    state_disk: Disk = SmallDisk(shop.state) if may_mount(shop.folder) else Limit()
    motd = shop.production / "motd.txt"
    with shop.run("--poll", "1s", prefix=state_disk.prefix) as running:
        running.says("production is as intended")
        seen = state_disk.watch(running)
        state_disk.fill()
        motd.unlink()
        running.says("store unavailable", state_disk.says)
        assert not motd.exists()
        assert state_disk.says in shop.lehr("status", prefix=seen).out
        assert "may be out of date" in shop.lehr("why", "motd", prefix=seen).out
        shop.lehr("freeze", "motd", "--reason", "because", prefix=seen).failed(state_disk.says)
        added = shop.declare_file("added", "added\n")
        shop.commit()
        running.says("publishing waits for the store")
        assert not added.exists()

        state_disk.make_room()
        until("what was missing is back", motd.exists, running.said)
        until("what was added is there", added.exists, running.said)
        assert "store available again" in running.said()
        assert "Traceback" not in running.said()
        assert shop.lehr("wait", prefix=seen).code == 0
        operations = shop.lehr("get", "operations", "-o", "json", prefix=seen).out
        assert operations.count('"result": "done"') == 3  # two of motd, one of added, all written down
        assert running.end() == 0


def test_a_run_that_cannot_write_ends_when_asked_to(shop: Workspace) -> None:
    state_disk = Limit()
    with shop.run() as running:
        running.says("production is as intended")
        state_disk.watch(running)
        state_disk.fill()
        (shop.production / "motd.txt").unlink()
        running.says("store unavailable")
        assert running.end() == 0


def test_a_file_on_a_full_disk_is_tried_again_and_others_go_on(tmp_path: Path) -> None:
    shop = Workspace(tmp_path)
    if not may_mount(tmp_path):
        pytest.skip("this user may not mount a file system")
    disk = SmallDisk(shop.production)
    big = shop.declare_file("big", "a" * 100_000)
    shop.declare("other", "lehr.File", {"path": str(tmp_path / "other.txt"), "content": "other\n"})
    shop.commit()
    with shop.run("--poll", "1s", prefix=disk.prefix) as running:
        running.says("production is as intended")
        seen = disk.watch(running)
        disk.fill()
        shop.declare_file("big", "b" * 100_000)
        shop.declare("other", "lehr.File", {"path": str(tmp_path / "other.txt"), "content": "changed\n"})
        shop.commit()
        until("others go on", lambda: (tmp_path / "other.txt").read_text() == "changed\n")
        why = shop.stands("big", "retried", "No space left on device", "free space", prefix=seen)
        assert str(big) in why
        inside = Path(f"/proc/{running.pid}/root{big}")
        assert inside.read_text() == "a" * 100_000  # the old file is whole
        disk.make_room()
        until("the new file is there", lambda: inside.read_text() == "b" * 100_000, running.said)
