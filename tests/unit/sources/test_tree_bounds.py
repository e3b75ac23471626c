"""What a git tree may hold is bounded before it is listed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.sdk.source import RefusedRevisionError
from lehr.sources import GitSource, tree
from lehr.sources.tree import TreeReader

FILE, DIRECTORY = pygit2.enums.FileMode.BLOB, pygit2.enums.FileMode.TREE
NAME = pygit2.Signature("a", "a@localhost", 0, 0)

Build = Callable[[pygit2.Repository], pygit2.Oid]


@pytest.fixture
def repository(tmp_path: Path) -> pygit2.Repository:
    return pygit2.init_repository(str(tmp_path / "intent.git"), bare=True, initial_head="main")


def holding(repository: pygit2.Repository, below: dict[str, pygit2.Oid], mode: int) -> pygit2.Oid:
    builder = repository.TreeBuilder()
    for name, id in below.items():
        builder.insert(name, id, mode)
    return builder.write()


def bomb(repository: pygit2.Repository) -> pygit2.Oid:
    """Ten trees, each in the next ten times: 10^10 paths in less than 5 kB."""
    id = holding(repository, {"a.yaml": repository.create_blob(b"a: 1\n")}, FILE)
    for _ in range(10):
        id = holding(repository, {f"d{number}": id for number in range(10)}, DIRECTORY)
    return id


def empty_bomb(repository: pygit2.Repository) -> pygit2.Oid:
    """The same of directories that hold no file at all."""
    id = holding(repository, {}, FILE)
    for _ in range(10):
        id = holding(repository, {f"d{number}": id for number in range(10)}, DIRECTORY)
    return id


def deep(repository: pygit2.Repository) -> pygit2.Oid:
    id = holding(repository, {"a.yaml": repository.create_blob(b"a: 1\n")}, FILE)
    for _ in range(200):
        id = holding(repository, {"d": id}, DIRECTORY)
    return id


def long(repository: pygit2.Repository) -> pygit2.Oid:
    return holding(repository, {"x" * 5_000: repository.create_blob(b"")}, FILE)


def commit(repository: pygit2.Repository, tree: pygit2.Oid) -> str:
    parents = [] if repository.head_is_unborn else [repository.head.target]
    return str(repository.create_commit("refs/heads/main", NAME, NAME, "x", tree, parents))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (bomb, "the commit holds 21,111,111,110 files and directories"),
        (empty_bomb, "the commit holds 11,111,111,110 files and directories"),
        (deep, "the commit nests directories more than 64 deep"),
        (long, "the commit holds a path of 5,000 characters"),
    ],
)
def test_what_is_too_much_is_a_refused_revision_and_costs_nothing(
    build: Build, said: str, repository: pygit2.Repository, tmp_path: Path
) -> None:
    id = commit(repository, build(repository))
    source = GitSource(repository.path, tmp_path / "mirror.git", clock=SystemClock())
    tracemalloc.start()
    try:
        for _ in range(2):
            with pytest.raises(RefusedRevisionError) as refused:
                source.newest()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert refused.value.what == said
    assert refused.value.revision.revision == id
    blob = repository.create_blob(b"b: 1\n")
    commit(repository, holding(repository, {"b.yaml": blob}, FILE))
    assert set(source.newest().files()) == {"b.yaml"}


def test_files_are_bounded_in_bytes(repository: pygit2.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_MAX_BYTES", 10)
    blob = repository.create_blob(b"a: 1\n")
    reader = TreeReader(repository)
    assert len(reader.list(holding(repository, {"a": blob, "b": blob}, FILE).raw).files) == 2
    with pytest.raises(StalledError, match="files of 15 bytes"):
        reader.list(holding(repository, {"a": blob, "b": blob, "c": blob}, FILE).raw)
