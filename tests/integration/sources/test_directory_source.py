"""Plain directories as sources, with real files."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.incarnation import SourceRevision
from lehr.sources import DirectorySource
from lehr.sources.scan import Stamp, read_file
from tests.codes import raises


class Later(SystemClock):
    """A clock by which every file was written long ago, so that stamps are trusted at once."""

    asked = 0

    def now(self) -> float:
        self.asked += 1
        return super().now() + 1000


class Meddling(SystemClock):
    """A clock that, when it is asked the next time, changes what is about to be read."""

    meddle: Callable[[], None] | None = None

    def now(self) -> float:
        meddle, self.meddle = self.meddle, None
        if meddle is not None:
            meddle()
        return super().now()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "intent" / "assets").mkdir(parents=True)
    (tmp_path / "intent" / "lehr.yaml").write_text("partition: a\n")
    (tmp_path / "intent" / "assets" / "a.yaml").write_text("id: a\n")
    return tmp_path / "intent"


@pytest.fixture
def source(root: Path, tmp_path: Path) -> DirectorySource:
    return DirectorySource(root, tmp_path / "state" / "archive.git", clock=SystemClock())


def stalled(call: Callable[[], object]) -> str:
    with pytest.raises(StalledError) as caught:
        call()
    assert caught.value.fix
    return f"{caught.value.code}: {caught.value}"


def test_a_snapshot_holds_what_was_there_whatever_happens_later(root: Path, source: DirectorySource) -> None:
    snapshot = source.newest()
    assert set(snapshot.files()) == {"lehr.yaml", "assets/a.yaml"}
    (root / "assets" / "a.yaml").write_text("id: b\n")
    (root / "lehr.yaml").unlink()
    assert snapshot.read("assets/a.yaml") == b"id: a\n"
    assert snapshot.read("lehr.yaml") == b"partition: a\n"
    with pytest.raises(KeyError):
        snapshot.read("assets")


@pytest.mark.parametrize("inner", ["", "workspaces/shop"])
def test_directories_that_git_ignores_are_left_out(tmp_path: Path, inner: str) -> None:
    tree = tmp_path / "tree"
    root = tree / inner
    for path in ("assets/a.yaml", "production/out.txt", "assets/production.yaml"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    (root / ".gitignore").write_text("production/\n")
    source = DirectorySource(root, tmp_path / "state" / "archive.git", clock=SystemClock())
    assert set(source.newest().files()) == {".gitignore", "assets/a.yaml", "assets/production.yaml"}


def test_the_revision_names_paths_and_contents_alone(root: Path, source: DirectorySource) -> None:
    first = source.newest().revision
    assert first.source == f"directory:{root}"
    os.utime(root / "lehr.yaml", (1, 1))
    (root / "assets" / "a.yaml").chmod(0o600)
    assert source.newest().revision == first
    (root / "assets" / "a.yaml").rename(root / "assets" / "b.yaml")
    second = source.newest().revision
    assert second != first
    (root / "assets" / "b.yaml").rename(root / "assets" / "a.yaml")
    assert source.newest().revision == first


def test_a_change_right_after_a_look_is_seen_although_size_and_time_are_the_same(
    root: Path, source: DirectorySource
) -> None:
    path = root / "assets" / "a.yaml"
    for letter in "bcdefghij":
        with path.open("r+") as file:
            file.write(f"id: {letter}\n")
        assert source.newest().read("assets/a.yaml") == f"id: {letter}\n".encode()


def test_without_news_the_same_snapshot_is_returned_and_no_file_is_read(root: Path, tmp_path: Path) -> None:
    clock = Later()
    source = DirectorySource(root, tmp_path / "archive.git", clock=clock)
    snapshot = source.newest()
    assert clock.asked == len(snapshot.files())  # once for each file that is read
    assert source.newest() is snapshot
    assert clock.asked == 2
    (root / "assets" / "a.yaml").write_text("id: changed\n")
    source.newest()
    assert clock.asked == 3


def rewrite(path: Path) -> None:
    path.write_text("id: other and longer\n")


def remove(path: Path) -> None:
    path.unlink()


def add(path: Path) -> None:
    path.with_name("new.yaml").write_text("id: new\n")


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("change", [rewrite, remove, add, replace_by_pipe])
def test_a_change_while_reading_is_transient_and_never_a_mixture(
    root: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = root / "assets" / "a.yaml"
    clock = Meddling()
    source = DirectorySource(root, tmp_path / "archive.git", clock=clock)
    before = source.newest()
    clock.meddle = lambda: change(path)
    with raises("SRC143", TransientError):
        source.newest()
    assert before.read("assets/a.yaml") == b"id: a\n"
    assert source.newest().revision != before.revision


def test_kept_revisions_can_be_read_after_a_restart_with_the_same_entries(
    root: Path, source: DirectorySource, tmp_path: Path
) -> None:
    (root / "größe").mkdir()
    (root / "größe" / "名前").write_bytes(b"\0binary\xff")
    old = source.newest()
    source.keep(old.revision)
    source.keep(old.revision)
    (root / "lehr.yaml").write_text("partition: b\n")
    source.keep(source.newest().revision)
    again = DirectorySource(root, tmp_path / "state" / "archive.git", clock=SystemClock())
    then = again.at(old.revision)
    assert then.revision == old.revision
    assert dict(then.files()) == dict(old.files())
    assert all(then.read(path) == old.read(path) for path in old.files())


def test_a_revision_that_was_not_kept_says_so(root: Path, source: DirectorySource) -> None:
    snapshot = source.newest()
    assert source.at(snapshot.revision) is snapshot
    unknown = SourceRevision(source.name, "0" * 40)
    assert "SRC102" in stalled(lambda: source.at(unknown))
    assert "SRC102" in stalled(lambda: source.keep(unknown))


def test_links_pipes_and_sockets_are_skipped_and_listed(root: Path, source: DirectorySource) -> None:
    (root / "passwords").symlink_to("/etc/passwd")
    (root / "outside").symlink_to("/etc")
    (root / "loop").symlink_to(".")
    (root / "inside").symlink_to("lehr.yaml")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
        snapshot = source.newest()
    assert set(snapshot.files()) == {"lehr.yaml", "assets/a.yaml"}
    assert snapshot.skipped == ("inside", "loop", "outside", "passwords", "pipe", "socket")


def test_excluded_names_are_left_out_wherever_they_stand(root: Path, tmp_path: Path) -> None:
    for path in (".git/HEAD", "assets/.git", ".lehr/state", "state/db", "assets/state"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("x")
    source = DirectorySource(
        root, tmp_path / "archive.git", clock=SystemClock(), exclude=(".git", ".lehr", "/state")
    )
    assert set(source.newest().files()) == {"lehr.yaml", "assets/a.yaml", "assets/state"}


def test_a_directory_that_disappears_is_transient_and_may_come_back(
    root: Path, source: DirectorySource
) -> None:
    snapshot = source.newest()
    root.rename(root.with_name("away"))
    with raises("SRC139", TransientError):
        source.newest()
    root.with_name("away").rename(root)
    assert source.newest().revision == snapshot.revision


def test_an_empty_directory_is_never_taken_for_empty_intent(root: Path, source: DirectorySource) -> None:
    source.newest()
    (root / "lehr.yaml").unlink()
    (root / "assets" / "a.yaml").unlink()
    assert "SRC142" in stalled(source.newest)


def test_too_much_is_refused_before_it_is_read(root: Path, tmp_path: Path) -> None:
    with (root / "assets" / "disk.img").open("w") as file:
        file.truncate(10**12)
    source = DirectorySource(root, tmp_path / "archive.git", clock=SystemClock())
    message = stalled(source.newest)
    assert "assets/disk.img" in message
    assert "1,000,000,000,019" in message


def test_a_file_name_that_is_not_utf_8_is_named(root: Path, source: DirectorySource) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.yaml")).write_text("")
    assert r"\xff.yaml" in stalled(source.newest)


def test_an_input_error_is_named() -> None:
    path = f"/proc/{os.getpid()}/mem"  # nothing can be read at its start, not even by root
    status = os.stat(path)
    stamp = Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    assert f"{path} cannot be read" in stalled(lambda: read_file(path, stamp))


@pytest.mark.parametrize("name", ["assets", "lehr.yaml"])
def test_what_may_not_be_read_is_named(root: Path, source: DirectorySource, name: str) -> None:
    (root / name).chmod(0)
    try:
        if os.access(root / name, os.R_OK):
            pytest.skip("this user may read everything")
        assert str(root / name) in stalled(source.newest)
    finally:
        (root / name).chmod(0o700)


def test_an_archive_that_cannot_be_written_is_an_error_with_a_way_out(root: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")
    source = DirectorySource(root, tmp_path / "state" / "archive.git", clock=SystemClock())
    revision = source.newest().revision
    assert "SRC123" in stalled(lambda: source.keep(revision))


def test_looking_for_ever_outside_of_git_does_not_end_the_interpreter(tmp_path: Path) -> None:
    # pygit2.discover_repository gives back a reference to None that it never took.
    (tmp_path / "a.yaml").write_text("a: 1\n")
    looked = DirectorySource(tmp_path, tmp_path.parent / "archive.git", clock=SystemClock())
    looked.newest()
    gc.collect()
    gc.disable()  # what it frees of other tests gives back references, too
    try:
        before = sys.getrefcount(None)
        for _ in range(300):
            looked.newest()
        after = sys.getrefcount(None)
    finally:
        gc.enable()
    assert after > before - 100
