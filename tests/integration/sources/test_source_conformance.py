"""The shipped sources keep the rules of sources."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import Snapshot, Source
from lehr.sources import DirectorySource, GitSource
from lehr.testing.conformance.source import RULES, Edit, Rule, Subject


def written(root: Path, edit: Edit) -> None:
    for name, content in edit.items():
        path = root / name
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@contextmanager
def away(path: Path) -> Iterator[None]:
    """What is at `path` is somewhere else for a time."""
    elsewhere = path.with_name(path.name + "-away")
    path.rename(elsewhere)
    yield
    elsewhere.rename(path)


@contextmanager
def emptied(path: Path) -> Iterator[None]:
    """An empty directory stands in its place, as where nothing is mounted."""
    with away(path):
        path.mkdir()
        yield
        path.rmdir()


@contextmanager
def replaced(path: Path) -> Iterator[None]:
    """A file stands in its place."""
    with away(path):
        path.write_text("")
        yield
        path.unlink()


def directory(tmp_path: Path) -> Subject:
    root = tmp_path / "intent"
    root.mkdir()

    def again(source: Source, revision: SourceRevision) -> Snapshot:
        assert isinstance(source, DirectorySource)
        return source.at(revision)

    return Subject(
        open=lambda: DirectorySource(
            root, tmp_path / "state" / "archive.git", clock=SystemClock(), poll_seconds=0.05
        ),
        edit=lambda edit: written(root, edit),
        troubles=(lambda: away(root), lambda: emptied(root), lambda: replaced(root)),
        again=again,
    )


def git(root: Path, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.org"}
    subprocess.run(["git", *arguments], cwd=root, env=environment, check=True, capture_output=True)


@contextmanager
def branch_gone(root: Path) -> Iterator[None]:
    """The branch that is followed has another name for a time."""
    git(root, "branch", "-m", "main", "other")
    yield
    git(root, "branch", "-m", "other", "main")


def repository(tmp_path: Path) -> Subject:
    root = tmp_path / "intent"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")

    def edit(edit: Edit) -> None:
        written(root, edit)
        git(root, "add", "-A")
        git(root, "-c", "core.autocrlf=false", "commit", "-q", "-m", "an edit")

    def force() -> None:
        git(root, "checkout", "-q", "--orphan", "again")
        git(root, "commit", "-q", "-m", "another history")
        git(root, "branch", "-M", "again", "main")
        git(root, "reflog", "expire", "--expire=now", "--all")
        git(root, "gc", "-q", "--prune=now")

    def again(source: Source, revision: SourceRevision) -> Snapshot:
        assert isinstance(source, GitSource)
        return source.at(revision)

    def opened() -> GitSource:
        return GitSource(
            str(root), tmp_path / "state" / "mirror.git", clock=SystemClock(), branch="main", poll_seconds=60
        )

    return Subject(
        open=opened,
        edit=edit,
        troubles=(
            lambda: away(root),
            lambda: emptied(root),
            lambda: replaced(root),
            lambda: branch_gone(root),
            lambda: emptied(root / ".git" / "objects"),
        ),
        again=again,
        forget=force,
    )


def folder_of_a_bare_repository(tmp_path: Path) -> Subject:
    """Pushed to, as on a server, and followed in one folder."""
    root, bare = tmp_path / "work", tmp_path / "intent.git"
    for path in (root, bare):
        path.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(bare, "init", "-q", "--bare", "-b", "main")

    def edit(edit: Edit) -> None:
        written(root / "in" / "side", edit)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "an edit")
        git(root, "push", "-q", "--force", str(bare), "HEAD:main")

    def force() -> None:
        git(root, "checkout", "-q", "--orphan", "again")
        git(root, "commit", "-q", "-m", "another history")
        git(root, "push", "-q", "--force", str(bare), "HEAD:main")
        git(bare, "gc", "-q", "--prune=now")

    def again(source: Source, revision: SourceRevision) -> Snapshot:
        assert isinstance(source, GitSource)
        return source.at(revision)

    return Subject(
        open=lambda: GitSource(
            f"file://{bare}",
            tmp_path / "state" / "mirror.git",
            clock=SystemClock(),
            branch="main",
            path="in/side",
            poll_seconds=60,
        ),
        edit=edit,
        troubles=(lambda: away(bare), lambda: emptied(bare), lambda: branch_gone(bare)),
        again=again,
        forget=force,
    )


MAKE = [directory, repository, folder_of_a_bare_repository]


@pytest.mark.parametrize("make", MAKE, ids=lambda make: make.__name__)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_shipped_sources_keep_the_contract(
    rule: Rule, make: Callable[[Path], Subject], tmp_path: Path
) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    asyncio.run(rule(make(tmp_path)))
