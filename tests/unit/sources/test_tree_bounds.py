"""What a git tree may hold is bounded before it is listed."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.model.declared_sources import DeclaredSource
from lehr.sdk.source import RefusedRevisionError, Source, SourcesError
from lehr.sources import DirectorySource, GitSource, tree
from lehr.sources.composite import CompositeSource
from lehr.sources.tree import TreeReader
from tests.codes import raises

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
        (bomb, "21,111,111,110 files and directories"),
        (empty_bomb, "11,111,111,110 files and directories"),
        (deep, "more than 64 deep"),
        (long, "a path of 5,000 characters"),
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
    assert refused.value.what.endswith(said)
    assert refused.value.revision.revision == id
    blob = repository.create_blob(b"b: 1\n")
    commit(repository, holding(repository, {"b.yaml": blob}, FILE))
    assert set(source.newest().files()) == {"b.yaml"}


def test_it_is_refused_just_so_in_a_source_that_is_declared(
    repository: pygit2.Repository, tmp_path: Path
) -> None:
    (tmp_path / "intent").mkdir()
    (tmp_path / "intent/lehr.yaml").write_text(
        "partition: a\nsources:\n  more: {directory: more}\n  other: {directory: other}\n"
    )
    (tmp_path / "other").mkdir()
    (tmp_path / "other/b.yaml").write_text("b: 1\n")
    id = commit(repository, bomb(repository))

    def directory(name: str) -> DirectorySource:
        return DirectorySource(tmp_path / name, tmp_path / f"{name}.git", clock=SystemClock())

    def opened(name: str, declared: DeclaredSource) -> Source:
        if name == "other":
            return directory(name)
        return GitSource(repository.path, tmp_path / "mirror.git", clock=SystemClock())

    source = CompositeSource(directory("intent"), opened)
    with pytest.raises(SourcesError) as refused:
        source.newest()
    [problem] = refused.value.diagnostics
    assert (problem.code, problem.subject, str(problem.at)) == ("PUB007", "more", "lehr.yaml:3:3")
    assert "21,111,111,110 files and directories" in problem.what
    assert problem.fix
    folders = [item.folder for item in refused.value.refused]
    assert folders == ["", "sources/more", "sources/other"]
    assert refused.value.refused[1].revision == id
    (tmp_path / "other/b.yaml").unlink()
    with pytest.raises(SourcesError) as refused:
        source.newest()
    assert [item.code for item in refused.value.diagnostics] == ["PUB007", "PUB001"]
    assert not refused.value.refused, "what cannot be read now may be read later, and is no refusal"


def test_files_are_bounded_in_bytes(repository: pygit2.Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_MAX_BYTES", 10)
    blob = repository.create_blob(b"a: 1\n")
    reader = TreeReader(repository)
    assert len(reader.list(holding(repository, {"a": blob, "b": blob}, FILE).raw).files) == 2
    with raises("SRC155", StalledError, match="files of 15 bytes"):
        reader.list(holding(repository, {"a": blob, "b": blob, "c": blob}, FILE).raw)
