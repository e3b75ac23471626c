"""A few new commits of a local repository are copied without git, and everything else is fetched by it."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from lehr.base.errors import TransientError
from lehr.sources import GitSource
from lehr.sources import mirror as mirrors
from lehr.sources.command import run_git
from tests.codes import raises
from tests.integration.sources.test_git_source import Origin, contents, follow


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "intent")


@pytest.fixture
def source(origin: Origin, tmp_path: Path) -> GitSource:
    """A source that has read a first commit."""
    origin.commit({"a": "1", "folder/b": "1", "folder/deep/c": "1"})
    found = follow(origin.path, tmp_path)
    found.newest()
    return found


def checked(tmp_path: Path) -> None:
    """The mirror lacks nothing that its tips have, and nothing in it is damaged."""
    arguments = ["git", "--git-dir", str(tmp_path / "state" / "mirror.git"), "fsck", "--full", "--strict"]
    subprocess.run(arguments, check=True, capture_output=True)


def fetches(call: Callable[[], object]) -> int:
    """How often `call` runs git."""
    with mock.patch.object(mirrors, "run_git", wraps=run_git) as run:
        call()
    return run.call_count


def test_a_few_new_commits_are_copied_without_running_a_program(
    origin: Origin, source: GitSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.commit({"a": "2", "new/folder/d": "1"})
    origin.run("rm", "-q", "folder/b")
    tip = origin.commit({"folder/deep/c": "2"})
    monkeypatch.setenv("PATH", "/nowhere")
    snapshot = source.newest()
    assert snapshot.revision.revision == tip
    expected = {"a": "2", "new/folder/d": "1", "folder/deep/c": "2"}
    assert contents(source) == expected
    source.keep(snapshot.revision)
    monkeypatch.undo()
    shutil.rmtree(origin.path)
    assert contents(follow(origin.path, tmp_path), snapshot.revision) == expected
    checked(tmp_path)


def test_random_changes_make_the_same_mirror_as_a_fetch(origin: Origin, tmp_path: Path) -> None:
    dice = random.Random(4711)
    paths = [f"{a}/{b}/{c}" for a in "pq" for b in "rs" for c in "tuv"]
    origin.commit(dict.fromkeys(paths, "0"))
    source = follow(origin.path, tmp_path)
    source.newest()
    for number in range(12):
        for path in dice.sample(paths, 2):
            target = origin.work / path
            if dice.random() < 0.3 and target.exists():
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(str(dice.randrange(4)))
        origin.commit({"number": str(number)})
        if dice.random() < 0.6:
            assert fetches(source.newest) == 0
            checked(tmp_path)
            fresh = follow(origin.path, tmp_path / "fresh" / str(number))
            assert contents(source, source.newest().revision) == contents(fresh)


def test_links_submodules_and_what_becomes_a_folder_are_copied(
    origin: Origin, source: GitSource, tmp_path: Path
) -> None:
    (origin.work / "link").symlink_to("a")
    (origin.work / "a").unlink()
    (origin.work / "module").mkdir()
    origin.run("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    origin.commit({"a/inside": "1"})
    assert fetches(source.newest) == 0
    assert contents(source)["a/inside"] == "1"
    assert sorted(source.newest().skipped) == ["link", "module"]
    checked(tmp_path)


def _merge(origin: Origin) -> None:
    origin.run("checkout", "-q", "-b", "other", "HEAD~0")
    origin.commit({"other": "1"})
    origin.run("checkout", "-q", "main")
    origin.commit({"main": "1"})
    origin.run("merge", "-q", "--no-ff", "-m", "merge", "other")


@pytest.mark.parametrize(
    "change",
    [
        lambda origin: origin.commit({"a": "2"}, "--amend"),
        _merge,
        lambda origin: origin.commit({f"many/{number}": str(number) for number in range(200)}),
        lambda origin: origin.commit({"large": "x" * 11_000_000}),
        lambda origin: [origin.commit({"a": f"n{number}"}) for number in range(25)],
    ],
    ids=["amended", "merged", "many", "large", "long"],
)
def test_git_fetches_what_is_not_a_few_commits_in_a_line(
    origin: Origin, source: GitSource, tmp_path: Path, change: Callable[[Origin], object]
) -> None:
    change(origin)
    assert fetches(source.newest) == 1
    assert source.newest().revision.revision == origin.run("rev-parse", "HEAD")
    assert len(contents(source)) == len(origin.run("ls-files").splitlines())
    checked(tmp_path)


def test_a_tag_with_a_message_that_moves_is_fetched(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    origin.run("tag", "-m", "one", "v1")
    source = GitSource(str(origin.path), tmp_path / "state" / "mirror.git", clock=mock.Mock(), tag="v1")
    source.newest()
    tip = origin.commit({"a": "2"})
    origin.run("tag", "-f", "-m", "two", "v1")
    assert fetches(source.newest) == 1
    assert source.newest().revision.revision == tip


def test_a_repository_that_lacks_an_object_is_not_copied_in_part(
    origin: Origin, source: GitSource, tmp_path: Path
) -> None:
    before = source.newest().revision
    origin.commit({"folder/deep/c": "lost"})
    blob = origin.run("rev-parse", "HEAD:folder/deep/c")
    (origin.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(TransientError):
        source.newest()
    origin.run("reset", "-q", "--hard", before.revision)
    assert source.newest().revision == before
    checked(tmp_path)


def test_a_mirror_that_cannot_be_written_keeps_its_tip_and_says_so(
    origin: Origin, source: GitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.commit({"a": "2"})
    with monkeypatch.context() as patched:
        patched.setattr(mirrors, "sync", mock.Mock(side_effect=OSError("no space left on device")))
        with raises("SRC159", TransientError):
            source.newest()
    assert contents(source)["a"] == "2"
