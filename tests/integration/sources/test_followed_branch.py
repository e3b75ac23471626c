"""Which branch `lehr run` follows: that of its first run, until another one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.sdk.source import Source
from lehr.sources import GitSource, open_source
from lehr.sources.mirror import Mirror
from tests.codes import raises
from tests.integration.sources.test_git_source import Origin


@pytest.fixture(params=[False, True], ids=["worktree", "bare"])
def origin(request: pytest.FixtureRequest, tmp_path: Path) -> Origin:
    return Origin(tmp_path / "intent.git", bare=request.param)


def run(location: Path | str, tmp_path: Path, branch: str | None = None, *, once: bool = False) -> GitSource:
    """The source of one `lehr run`."""
    found: Source = open_source(
        str(location),
        tmp_path / "state",
        clock=SystemClock(),
        kind="git",
        branch=branch,
        remember=True,
        exact=once,
    )
    assert isinstance(found, GitSource)
    return found


def read(source: GitSource) -> str:
    return source.newest().revision.revision


def move(origin: Origin, branch: str) -> None:
    """Have HEAD be on another branch, in the repository that is read."""
    origin.run("symbolic-ref", "HEAD", f"refs/heads/{branch}", cwd=origin.path)


def add_branch(origin: Origin, branch: str) -> str:
    """A branch with a commit of its own."""
    origin.run("checkout", "-q", "-b", branch)
    (origin.work / branch).write_text("x")
    origin.run("add", "-A")
    origin.run("commit", "-q", "-m", branch)
    commit = origin.run("rev-parse", "HEAD")
    if origin.bare:
        origin.run("push", "-q", "origin", branch)
    origin.run("checkout", "-q", "main")
    return commit


@pytest.mark.parametrize("url", ["", "file://"])
def test_a_checkout_of_another_branch_deploys_nothing(origin: Origin, tmp_path: Path, url: str) -> None:
    first = origin.commit({"a": "1"})
    add_branch(origin, "feature")
    location = f"{url}{origin.path}"
    running = run(location, tmp_path)
    assert read(running) == first
    assert running.remarks == ()
    move(origin, "feature")
    assert read(running) == first
    again = run(location, tmp_path)
    assert read(again) == first
    for source in (running, again):
        [remark] = source.remarks
        assert remark.code == "PUB009"
        assert "Lehr follows the branch main" in remark.what
        assert remark.what.endswith("is feature")
        assert "lehr run --branch feature" in remark.fix


def test_only_a_branch_that_is_named_changes_what_is_followed(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    feature = add_branch(origin, "feature")
    read(run(origin.path, tmp_path))
    assert read(run(origin.path, tmp_path, "feature")) == feature
    assert read(run(origin.path, tmp_path)) == feature


def test_a_name_that_cannot_be_read_is_not_followed_from_then_on(origin: Origin, tmp_path: Path) -> None:
    first = origin.commit({"a": "1"})
    read(run(origin.path, tmp_path))
    with raises("SRC130", StalledError):
        run(origin.path, tmp_path, "mian").newest()
    assert read(run(origin.path, tmp_path)) == first


def test_a_branch_that_is_gone_stalls_and_no_other_is_taken(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    add_branch(origin, "feature")
    source = run(origin.path, tmp_path)
    source.newest()
    move(origin, "feature")
    origin.run("branch", "-q", "-D", "main", cwd=origin.path) if origin.bare else origin.run(
        "update-ref", "-d", "refs/heads/main"
    )
    for found in (source, run(origin.path, tmp_path)):
        with raises("SRC130", StalledError, match="branch.*main"):
            found.newest()


def test_a_workspace_that_moves_keeps_its_branch(origin: Origin, tmp_path: Path) -> None:
    first = origin.commit({"a": "1"})
    add_branch(origin, "feature")
    read(run(origin.path, tmp_path))
    move(origin, "feature")
    moved = origin.path.rename(tmp_path / "moved.git")
    assert read(run(moved, tmp_path)) == first


def test_a_linked_work_tree_is_followed_on_its_own_branch(tmp_path: Path) -> None:
    origin = Origin(tmp_path / "intent")
    origin.commit({"a": "1"})
    feature = add_branch(origin, "feature")
    origin.run("worktree", "add", "-q", str(tmp_path / "linked"), "feature")
    source = run(tmp_path / "linked", tmp_path)
    assert read(source) == feature
    assert source.remarks == ()


def test_a_commit_without_a_branch_is_for_once(tmp_path: Path) -> None:
    origin = Origin(tmp_path / "intent")
    first = origin.commit({"a": "1"})
    second = origin.commit({"a": "2"})
    origin.run("checkout", "-q", "--detach", first)
    with raises("SRC105", StalledError):
        run(origin.path, tmp_path).newest()
    once = run(origin.path, tmp_path, once=True)
    assert read(once) == first
    origin.run("checkout", "-q", "--detach", second)
    assert read(once) == first
    assert read(run(origin.path, tmp_path, once=True)) == second
    origin.run("checkout", "-q", "main")
    assert read(run(origin.path, tmp_path)) == second


@pytest.mark.parametrize("how", ["checked out", "named", "remote"])
def test_a_branch_whose_name_is_not_utf_8_is_refused(tmp_path: Path, how: str) -> None:
    origin = Origin(tmp_path / "intent")
    commit = origin.commit({"a": "1"})
    git = origin.path / ".git"
    (git / "packed-refs").write_bytes(f"{commit} refs/heads/caf".encode() + b"\xe9\n")
    if how != "named":
        (git / "HEAD").write_bytes(b"ref: refs/heads/caf\xe9\n")
    location = f"file://{origin.path}" if how == "remote" else origin.path
    source = run(location, tmp_path, "caf\udce9" if how == "named" else None)
    for _ in range(2):
        with raises("SRC158", StalledError, match=r"caf\\xe9"):
            source.newest()
    assert read(run(origin.path, tmp_path, "main")) == commit


def test_a_memory_that_is_damaged_is_not_guessed(origin: Origin, tmp_path: Path) -> None:
    first = origin.commit({"a": "1"})
    read(run(origin.path, tmp_path))
    (tmp_path / "state" / "sources" / "branch.json").write_text("{")
    with raises("SRC103", StalledError):
        run(origin.path, tmp_path).newest()
    assert read(run(origin.path, tmp_path, "main")) == first
    assert read(run(origin.path, tmp_path)) == first


def test_the_default_branch_of_a_repository_elsewhere_is_asked_for(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    mirror = Mirror(tmp_path / "mirror.git")
    assert mirror.head_of(str(origin.path)) == "refs/heads/main"
    add_branch(origin, "feature")
    move(origin, "feature")
    assert mirror.head_of(str(origin.path)) == "refs/heads/feature"
