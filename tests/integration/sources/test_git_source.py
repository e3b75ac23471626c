"""Git repositories as sources, with real git."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.incarnation import SourceRevision
from lehr.sources import GitSource
from tests.codes import raises

Tree = dict[str, str]


class Origin:
    """A repository that people work in."""

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self.work = path.with_name(path.name + "-work") if bare else path
        self.run("init", "-q", "-b", "main", str(self.work), cwd=path.parent)
        if bare:
            self.run("init", "-q", "--bare", "-b", "main", str(path), cwd=path.parent)
            self.run("remote", "add", "origin", str(path))
        self.bare = bare

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(
            command, cwd=cwd or self.work, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, files: Tree, *options: str) -> str:
        for name, content in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.run("add", "-A")
        self.run("commit", "-q", "-m", "change", *options)
        if self.bare:
            self.run("push", "-q", "--force", "origin", "HEAD:main")
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path / "intent")


@pytest.fixture
def source(origin: Origin, tmp_path: Path) -> GitSource:
    return follow(origin.path, tmp_path)


def follow(location: Path | str, tmp_path: Path, branch: str | None = None, path: str = "") -> GitSource:
    return GitSource(
        str(location), tmp_path / "state" / "mirror.git", clock=SystemClock(), branch=branch, path=path
    )


def contents(source: GitSource, revision: SourceRevision | None = None) -> Tree:
    snapshot = source.newest() if revision is None else source.at(revision)
    return {path: snapshot.read(path).decode() for path in snapshot.files()}


def stalled(call: Callable[[], object]) -> str:
    with pytest.raises(StalledError) as caught:
        call()
    assert caught.value.fix
    return f"{caught.value.code}: {caught.value}"


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_newest_commit_is_read_from_bare_and_other_repositories(
    tmp_path: Path, bare: bool, scheme: str
) -> None:
    origin = Origin(tmp_path / "intent", bare=bare)
    first = origin.commit({"lehr.yaml": "partition: a\n", "assets/a.yaml": "id: a\n"})
    source = follow(f"{scheme}{origin.path}", tmp_path)
    assert source.name == f"git:{origin.path}"
    assert source.newest().revision == SourceRevision(source.name, first)
    assert contents(source) == {"lehr.yaml": "partition: a\n", "assets/a.yaml": "id: a\n"}
    second = origin.commit({"assets/a.yaml": "id: b\n"})
    assert source.newest().revision.revision == second
    assert contents(source)["assets/a.yaml"] == "id: b\n"


def test_a_snapshot_never_changes(origin: Origin, source: GitSource) -> None:
    origin.commit({"a": "1", "b": "1"})
    snapshot = source.newest()
    origin.commit({"a": "2"})
    assert source.newest().read("a") == b"2"
    assert snapshot.read("a") == b"1"
    assert snapshot.files()["b"] == source.newest().files()["b"]
    with pytest.raises(KeyError):
        snapshot.read("c")


def test_without_news_the_same_snapshot_is_returned_and_no_program_is_run(
    origin: Origin, source: GitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.commit({"a": "1"})
    snapshot = source.newest()
    monkeypatch.setenv("PATH", "/nowhere")
    assert source.newest() is snapshot


def test_only_what_was_committed_counts_and_nothing_is_written_to_the_repository(
    origin: Origin, source: GitSource
) -> None:
    origin.commit({"a": "1"})
    (origin.path / "a").write_text("uncommitted")
    (origin.path / "new").write_text("untracked")
    before = {path: path.stat().st_mtime_ns for path in origin.path.rglob("*")}
    assert contents(source) == {"a": "1"}
    source.keep(source.newest().revision)
    assert {path: path.stat().st_mtime_ns for path in origin.path.rglob("*")} == before


def test_after_a_force_push_the_new_tip_is_newest_and_kept_commits_stay_readable(tmp_path: Path) -> None:
    origin = Origin(tmp_path / "intent", bare=True)
    source = follow(origin.path, tmp_path)
    origin.commit({"a": "base"})
    origin.commit({"a": "old"})
    old = source.newest().revision
    source.keep(old)
    source.keep(old)
    origin.commit({"a": "new"}, "--amend")
    origin.run("reflog", "expire", "--expire=now", "--all", cwd=origin.path)
    origin.run("gc", "-q", "--prune=now", cwd=origin.path)
    assert contents(source) == {"a": "new"}
    mirror = tmp_path / "state" / "mirror.git"
    origin.run("gc", "-q", "--prune=now", cwd=mirror)
    assert contents(source, old) == {"a": "old"}
    assert contents(follow(origin.path, tmp_path), old) == {"a": "old"}


def test_a_repository_whose_objects_are_missing_is_damaged_and_not_without_the_branch(
    origin: Origin, source: GitSource
) -> None:
    origin.commit({"a": "1"})
    source.newest()
    objects = origin.path / ".git" / "objects"
    objects.rename(objects.with_name("elsewhere"))
    objects.mkdir()
    with raises("SRC128", TransientError):
        source.newest()


def test_a_revision_that_was_never_seen_says_so(origin: Origin, source: GitSource) -> None:
    origin.commit({"a": "1"})
    source.newest()
    assert "SRC121" in stalled(lambda: source.at(SourceRevision(source.name, "1" * 40)))
    assert "SRC121" in stalled(lambda: source.at(SourceRevision(source.name, "nonsense")))
    with raises("SRC120", TransientError):
        source.keep(SourceRevision(source.name, "1" * 40))


def test_a_repository_that_disappears_is_transient_and_may_come_back(
    origin: Origin, source: GitSource, tmp_path: Path
) -> None:
    origin.commit({"a": "1"})
    snapshot = source.newest()
    origin.path.rename(tmp_path / "away")
    with raises("SRC126", TransientError):
        source.newest()
    assert snapshot.read("a") == b"1"
    (tmp_path / "away").rename(origin.path)
    assert source.newest().revision == snapshot.revision


def test_a_mirror_that_somebody_removed_is_made_again(
    origin: Origin, source: GitSource, tmp_path: Path
) -> None:
    commit = origin.commit({"a": "1"})
    source.newest()
    shutil.rmtree(tmp_path / "state")
    assert source.newest().revision.revision == commit
    assert contents(follow(origin.path, tmp_path)) == {"a": "1"}


def test_a_damaged_mirror_is_an_error_and_never_a_part(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a/b": "1", "a/c": "2"})
    follow(origin.path, tmp_path).newest()
    mirror = tmp_path / "state" / "mirror.git"
    tree = origin.run("rev-parse", "HEAD:a")
    (mirror / "objects" / tree[:2] / tree[2:]).unlink()
    with raises("SRC157", TransientError):
        follow(origin.path, tmp_path).newest().files()


def test_what_is_no_repository_or_has_nothing_to_read_says_so(origin: Origin, tmp_path: Path) -> None:
    assert "SRC129" in stalled(follow(origin.path, tmp_path).newest)
    (tmp_path / "plain").mkdir()
    assert "SRC127" in stalled(follow(tmp_path / "plain", tmp_path).newest)
    (tmp_path / "file").write_text("")
    assert "SRC127" in stalled(follow(tmp_path / "file", tmp_path).newest)
    with raises("SRC126", TransientError):
        follow(tmp_path / "nowhere", tmp_path).newest()


def test_a_repository_with_sha_256_names_is_one_that_cannot_be_read_yet(tmp_path: Path) -> None:
    made = tmp_path / "made"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", made], check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", made, *author, "commit", "--quiet", "--allow-empty", "-m", "a"], check=True)
    assert "SRC112" in stalled(follow(made, tmp_path).newest)


def test_a_missing_branch_is_named_with_those_there_are(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    message = stalled(follow(origin.path, tmp_path, branch="mian").newest)
    assert "no branch mian" in message
    assert "did you mean main?" in message
    origin.run("symbolic-ref", "HEAD", "refs/heads/gone")
    assert "no branch gone" in stalled(follow(origin.path, tmp_path).newest)


def test_another_branch_and_a_detached_head_can_be_followed(origin: Origin, tmp_path: Path) -> None:
    first = origin.commit({"a": "1"})
    origin.run("checkout", "-q", "-b", "feature/x")
    second = origin.commit({"a": "2"})
    source = follow(origin.path, tmp_path, branch="feature/x")
    assert source.name == f"git:{origin.path}#feature/x"
    assert source.newest().revision.revision == second
    origin.run("checkout", "-q", "--detach", first)
    assert follow(origin.path, tmp_path).newest().revision.revision == first
    assert source.newest().revision.revision == second


def test_a_directory_of_the_repository_can_be_the_root(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"README": "x", "examples/hello/lehr.yaml": "y", "examples/hello/assets/a.yaml": "z"})
    source = follow(origin.path, tmp_path, path="./examples/hello/")
    assert source.name == f"git:{origin.path}:examples/hello"
    assert contents(source) == {"lehr.yaml": "y", "assets/a.yaml": "z"}
    assert "has no directory examples/other" in stalled(
        follow(origin.path, tmp_path, path="examples/other").newest
    )
    assert "has no directory README" in stalled(follow(origin.path, tmp_path, path="README").newest)
    assert "SRC118" in stalled(lambda: follow(origin.path, tmp_path, path="../x"))


def test_links_and_submodules_are_skipped_and_listed(origin: Origin, tmp_path: Path) -> None:
    other = Origin(tmp_path / "other")
    other.commit({"inner": "1"})
    (origin.path / "passwords").symlink_to("/etc/passwd")
    (origin.path / "loop").symlink_to(".")
    origin.run("submodule", "add", "-q", str(other.path), "vendor")
    origin.commit({"a": "1"})
    snapshot = follow(origin.path, tmp_path).newest()
    assert set(snapshot.files()) == {".gitmodules", "a"}
    assert snapshot.skipped == ("loop", "passwords", "vendor")


def test_file_names_in_any_script_are_read(origin: Origin, source: GitSource) -> None:
    tree = {"größe/名前.yaml": "1", "with space": "2", 'quo"te\n': "3", "-x": "4"}
    origin.commit(tree)
    assert contents(source) == tree


def test_a_file_name_that_is_not_utf_8_is_named(origin: Origin, source: GitSource) -> None:
    (Path(os.fsdecode(os.fsencode(origin.path) + b"/\xff.yaml"))).write_text("")
    origin.commit({"a": "1"})
    assert r"b'\xff.yaml'" in stalled(source.newest)


def test_entries_say_size_and_content_id_without_reading(origin: Origin, source: GitSource) -> None:
    origin.commit({"a": "same", "b/c": "same", "huge": "x" * 5_000_000})
    files = source.newest().files()
    assert files["a"].content_id == files["b/c"].content_id == origin.run("rev-parse", "HEAD:a")
    assert (files["a"].size, files["huge"].size) == (4, 5_000_000)


def test_many_files_are_listed_and_one_change_leaves_the_others_alone(
    origin: Origin, source: GitSource
) -> None:
    origin.commit({f"assets/{n % 20}/{n}.yaml": str(n) for n in range(2_000)})
    before = source.newest().files()
    assert len(before) == 2_000
    origin.run("rm", "-q", "assets/3/3.yaml")
    origin.commit({"assets/7/7.yaml": "changed", "assets/new/n.yaml": "new"})
    after = source.newest().files()
    assert set(before) ^ set(after) == {"assets/3/3.yaml", "assets/new/n.yaml"}
    assert [path for path in before if path in after and before[path] != after[path]] == ["assets/7/7.yaml"]


def test_a_shallow_clone_can_be_followed(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    commit = origin.commit({"a": "2"})
    origin.run("clone", "-q", "--depth=1", f"file://{origin.path}", str(tmp_path / "shallow"))
    assert follow(tmp_path / "shallow", tmp_path).newest().revision.revision == commit


def test_a_linked_work_tree_can_be_followed(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    origin.run("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "a").write_text("2")
    origin.run("commit", "-q", "-am", "side", cwd=tmp_path / "side")
    assert contents(follow(tmp_path / "side", tmp_path)) == {"a": "2"}


def test_the_environment_of_a_git_hook_does_not_lead_astray(
    origin: Origin, source: GitSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Origin(tmp_path / "other")
    other.commit({"wrong": "1"})
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    origin.commit({"a": "1"})
    assert contents(source) == {"a": "1"}


def test_a_url_that_names_a_command_is_refused(tmp_path: Path) -> None:
    source = follow(f"ext::touch {tmp_path}/pwned", tmp_path)
    assert "SRC111" in stalled(source.newest)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("password", ["secret", "se@secret", "secret@"])
def test_a_host_that_does_not_answer_is_transient_and_no_password_is_shown(
    tmp_path: Path, password: str
) -> None:
    source = follow(f"http://user:{password}@127.0.0.1:1/intent.git", tmp_path)
    with pytest.raises(TransientError) as caught:
        source.newest()
    assert "secret" not in str(caught.value)
    assert source.name == "git:http://127.0.0.1:1/intent.git"


def test_a_fetch_that_hangs_is_killed(tmp_path: Path) -> None:
    """`sleep` stands in for ssh: it never answers, and its child holds the pipe open."""
    ssh = tmp_path / "ssh"
    noted = tmp_path / "pid"
    noted.touch()
    ssh.write_text(f"#!/bin/sh\nsleep 600 & echo $! > '{noted}'\nwait\n")
    ssh.chmod(0o755)
    seconds = 0.25
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_SSH", str(ssh))
        while not noted.read_text():  # on a busy machine it may not have come that far
            seconds *= 2
            source = GitSource(
                "example.invalid:intent.git", tmp_path / "m.git", clock=SystemClock(), timeout=seconds
            )
            with raises("SRC107", TransientError):
                source.newest()
    assert has_ended(int(noted.read_text()))


def has_ended(pid: int) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 10)[0])
    finally:
        os.close(descriptor)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_is_refused_with_the_way_out(
    origin: Origin, source: GitSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    origin.commit({"a": "1"})
    for path in [origin.path, *origin.path.rglob("*")]:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert f"safe.directory {origin.path}" in stalled(source.newest)


@pytest.mark.parametrize("packed", [False, True])
def test_a_commit_to_a_local_repository_is_noticed_between_polls(tmp_path: Path, packed: bool) -> None:
    origin = Origin(tmp_path / "intent")
    origin.commit({"a": "1"})
    if packed:
        origin.run("pack-refs", "--all")
    source = GitSource(str(origin.path), tmp_path / "m.git", clock=SystemClock(), poll_seconds=1e6)

    async def scenario() -> str:
        changes = source.changes()
        hint = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)  # until it listens
        commit = origin.commit({"a": "2"})
        await asyncio.wait_for(hint, 30)
        assert source.newest().revision.revision == commit
        source.notify()
        await asyncio.wait_for(anext(changes), 30)
        return commit

    assert asyncio.run(scenario())


def at(origin: Origin, tmp_path: Path, **what: str) -> GitSource:
    mirror = tmp_path / "state" / "mirror.git"
    return GitSource(f"file://{origin.path}", mirror, clock=SystemClock(), **what)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [(), ("-a", "-m", "a release")], ids=["plain", "annotated"])
def test_a_tag_is_followed_where_it_is_moved(
    origin: Origin, tmp_path: Path, options: tuple[str, ...]
) -> None:
    first = origin.commit({"a": "1"})
    origin.run("tag", *options, "v1")
    second = origin.commit({"a": "2"})
    source = at(origin, tmp_path, tag="v1")
    assert source.name.endswith("#refs/tags/v1")
    assert source.newest().revision.revision == first
    assert source.newest() is source.newest()
    origin.run("tag", "--force", *options, "v1")
    assert source.newest().revision.revision == second


def test_a_missing_tag_is_named_with_those_there_are(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    origin.run("tag", "v1.0")
    assert "did you mean v1.0?" in stalled(at(origin, tmp_path, tag="v1.1").newest)


def test_a_commit_that_is_named_stays_whatever_becomes_of_the_branch(origin: Origin, tmp_path: Path) -> None:
    first = origin.commit({"a": "1"})
    origin.commit({"a": "2"})
    source = at(origin, tmp_path, commit=first)
    assert contents(source) == {"a": "1"}
    origin.commit({"a": "3"}, "--amend")
    origin.path.rename(tmp_path / "away")
    assert contents(at(origin, tmp_path, commit=first)) == {"a": "1"}


def test_a_commit_that_the_repository_does_not_have_is_an_error(origin: Origin, tmp_path: Path) -> None:
    origin.commit({"a": "1"})
    assert "SRC110" in stalled(at(origin, tmp_path, commit="1" * 40).newest)


def test_what_another_mirror_has_is_not_fetched_again(origin: Origin, tmp_path: Path) -> None:
    origin.commit({f"a{number}": "x" * number for number in range(20)})
    first = follow(origin.path, tmp_path)
    first.newest()
    lender = tmp_path / "state" / "mirror.git"
    newest = origin.commit({"b": "new"})
    borrowing = tmp_path / "scratch" / "mirror.git"
    second = GitSource(str(origin.path), borrowing, clock=SystemClock(), lender=lender)
    assert second.newest().revision.revision == newest
    assert contents(second)["a19"] == "x" * 19
    own = [
        path for path in (borrowing / "objects").rglob("*") if len(path.name) == 38 or path.suffix == ".pack"
    ]
    assert 0 < len(own) <= 3  # the new commit, tree and blob, or a pack of them
    none = GitSource(
        str(origin.path), tmp_path / "alone.git", clock=SystemClock(), lender=tmp_path / "nowhere"
    )
    assert none.newest().revision.revision == newest
