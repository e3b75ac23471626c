"""What git does to a branch is seen at once: the kernel reports it."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.inotify import Inotify, WatchedEntry, reports_all
from lehr.sources import ref_sight
from lehr.sources.git import GitSource
from lehr.sources.origin import LocalRepository
from lehr.sources.ref_sight import RefSight

PATIENCE = 20.0
MAIN = "refs/heads/main"
DEEP = "refs/heads/team/web/next"


def git(place: Path, *words: str) -> str:
    command = ["git", "-C", str(place), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(place: Path) -> None:
    git(place, "commit", "-q", "--allow-empty", "-m", "more")


def repository(place: Path, *options: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "-b", "main", *options, str(place)], check=True)
    if "--bare" not in options:
        commit(place)
    return place


@pytest.fixture
def intent(tmp_path: Path) -> Path:
    return repository(tmp_path / "source" / "intent")


class Seen:
    """A sight, and what it showed last."""

    def __init__(self, place: Path, ref: str) -> None:
        self.woken = asyncio.Event()
        self.sight = RefSight(LocalRepository(place), lambda: ref, self.woken.set)
        self.last: Hashable = None
        self.look()

    def look(self) -> None:
        self.last = self.sight.look()

    async def differs(self, act: Callable[[], object]) -> None:
        """`act` is reported, and then looks different."""
        assert self.sight.reported
        await self._read_reports()
        before = self.last
        await asyncio.to_thread(act)
        async with asyncio.timeout(PATIENCE):
            while self.last == before:
                await self.woken.wait()
                self.woken.clear()
                self.look()

    async def _read_reports(self) -> None:
        """So that `woken` is only set by what follows."""
        for _ in range(3):
            await asyncio.sleep(0)
        self.woken.clear()


@asynccontextmanager
async def seen(place: Path, ref: str = MAIN) -> AsyncIterator[Seen]:
    found = Seen(place, ref)
    try:
        yield found
    finally:
        found.sight.close()


def sees(place: Path, *acts: Callable[[], object], ref: str = MAIN) -> None:
    """Each of `acts` is seen, after those before it."""

    async def scenario() -> None:
        async with seen(place, ref) as sight:
            for act in acts:
                await sight.differs(act)

    asyncio.run(scenario())


def test_commits_and_what_else_moves_a_branch(intent: Path) -> None:
    sees(
        intent,
        lambda: commit(intent),
        lambda: git(intent, "commit", "-q", "--allow-empty", "--amend", "-m", "other"),
        lambda: git(intent, "reset", "-q", "--hard", "HEAD~"),
        lambda: git(intent, "update-ref", MAIN, "ORIG_HEAD"),
        lambda: (intent / ".git" / MAIN).write_text(git(intent, "rev-parse", "HEAD~") + "\n"),
    )


def test_packed_refs_and_commits_after_them(intent: Path) -> None:
    sees(
        intent,
        lambda: git(intent, "pack-refs", "--all"),
        lambda: commit(intent),
        lambda: git(intent, "gc", "-q"),
        lambda: commit(intent),
    )


def test_a_branch_that_is_deleted_and_comes_back(intent: Path) -> None:
    """Git removes the folders of the branch's name with it, and makes them again."""
    commit(intent)
    git(intent, "branch", "team/web/next")
    sees(
        intent,
        lambda: git(intent, "branch", "-D", "team/web/next"),
        lambda: git(intent, "branch", "team/web/next"),
        lambda: git(intent, "pack-refs", "--all", "--prune"),
        lambda: git(intent, "update-ref", DEEP, git(intent, "rev-parse", "main~")),
        lambda: git(intent, "update-ref", "-d", DEEP),
        ref=DEEP,
    )


def test_a_branch_that_does_not_exist_yet(intent: Path) -> None:
    sees(intent, lambda: git(intent, "branch", "team/web/next"), ref=DEEP)


def test_another_branch_is_checked_out(intent: Path) -> None:
    git(intent, "branch", "other")
    sees(intent, lambda: git(intent, "checkout", "-q", "other"), lambda: commit(intent), ref="HEAD")


def test_pushes_to_a_bare_repository(intent: Path, tmp_path: Path) -> None:
    bare = repository(tmp_path / "bare.git", "--bare")

    def push() -> None:
        commit(intent)
        git(intent, "push", "-q", str(bare), "main")

    sees(bare, push, push, lambda: git(bare, "gc", "-q"), push)


def test_a_linked_work_tree(intent: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(intent, "worktree", "add", "-q", "-b", "other", str(linked))
    sees(linked, lambda: commit(linked), ref="refs/heads/other")
    sees(linked, lambda: git(linked, "checkout", "-q", "--detach"), lambda: commit(linked), ref="HEAD")


def test_the_list_of_a_repository_with_reftables(intent: Path) -> None:
    """Git replaces it with each change of a ref. It stands in for a git that can."""
    table = intent / ".git" / "reftable" / "tables.list"

    def replace(text: str) -> None:
        table.parent.mkdir(exist_ok=True)
        lock = table.with_suffix(".lock")
        lock.write_text(text)
        lock.rename(table)

    sees(intent, lambda: replace("one"), lambda: replace("more"))


def test_a_repository_that_is_moved_and_comes_back(intent: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"

    async def scenario() -> None:
        async with seen(intent) as sight:
            await sight.differs(lambda: intent.rename(away))
            assert not sight.sight.reported, "what does not exist is looked at often"
            away.rename(intent)
            sight.look()
            await sight.differs(lambda: commit(intent))

    asyncio.run(scenario())


@pytest.mark.parametrize("part", ["", ".git"])
def test_a_repository_that_is_replaced(intent: Path, tmp_path: Path, part: str) -> None:
    other = repository(tmp_path / "other")
    place = intent / part

    def replace() -> None:
        place.rename(tmp_path / "away")
        (other / part).rename(place)

    sees(intent, replace, lambda: commit(intent))


def test_a_repository_that_is_removed_and_cloned_again(intent: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(intent), str(clone))

    async def scenario() -> None:
        async with seen(clone) as sight:
            await sight.differs(lambda: shutil.rmtree(clone))
            await asyncio.to_thread(git, tmp_path, "clone", "-q", str(intent), str(clone))
            sight.look()
            await sight.differs(lambda: commit(clone))

    asyncio.run(scenario())


def test_what_moves_no_ref_wakes_nobody(intent: Path) -> None:
    async def scenario() -> None:
        async with seen(intent) as sight:
            (intent / "README").write_text("Hello")
            git(intent, "add", "README")
            git(intent, "branch", "other")
            git(intent, "tag", "v1")
            for _ in range(3):
                await asyncio.sleep(0)  # until what was reported is read
            assert not sight.woken.is_set()

    asyncio.run(scenario())


class NoInstance(Inotify):
    def __init__(self) -> None:
        self._descriptor = -1
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class NoWatch(Inotify):
    def place(self, path: str) -> WatchedEntry:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


@pytest.mark.parametrize("kind", [NoInstance, NoWatch, None], ids=["instance", "watch", "file system"])
def test_commits_are_noticed_without_reports(
    intent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Inotify] | None
) -> None:
    if kind is None:
        monkeypatch.setattr(ref_sight, "reports_all", lambda directory: False)
    else:
        monkeypatch.setattr(ref_sight, "Inotify", kind)
    source = GitSource(str(intent), tmp_path / "mirror.git", clock=SystemClock(), poll_seconds=1e6)

    async def scenario() -> None:
        hint = asyncio.ensure_future(anext(source.changes()))
        await asyncio.sleep(0)  # until it listens
        commit(intent)
        await asyncio.wait_for(hint, PATIENCE)

    asyncio.run(scenario())


def test_file_systems_of_other_machines_and_programs_are_not_trusted() -> None:
    assert reports_all(Path.cwd())
    assert not reports_all("/proc")
    assert not reports_all("/nowhere")
