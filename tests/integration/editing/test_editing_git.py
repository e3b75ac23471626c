"""Edits by program in real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pygit2
import pytest

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import StalledError, TransientError
from lehr.editing import Add, Change, Check, Commit, Compute, EditError, Replace, edit
from lehr.sdk.source import Snapshot
from tests.codes import raises

TEXT = "# The site.\nreplicas: 3   # three\nimage: web:1\n"
FILE = "assets/web.yaml"


class Repository:
    """A repository that people work in, or a bare one with such a clone of it."""

    def __init__(self, path: Path, *, bare: bool = False) -> None:
        self.path = path
        self.work = path.with_suffix(".work") if bare else path
        self.git("init", "-q", "-b", "main", str(self.work), at=path.parent)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")
        self.write(FILE, TEXT)
        self.write("other.txt", "other\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")
        if bare:
            self.git("clone", "-q", "--bare", str(self.work), str(path), at=path.parent)
            for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
                self.git("config", name, value, at=path)
            self.git("remote", "add", "origin", str(path))

    def git(self, *arguments: str, at: Path | None = None) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=at or self.work,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, file: str, text: str) -> None:
        path = self.work / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, file: str, text: str, message: str = "by hand") -> str:
        """What a person commits; to a bare repository by a push."""
        self.write(file, text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        if self.work != self.path:
            self.git("push", "-q", "--force", "origin", "HEAD:main")
        return self.git("rev-parse", "HEAD")

    def committed(self, file: str = FILE, revision: str = "main") -> str:
        return self.git("show", f"{revision}:{file}", at=self.path) + "\n"

    def status(self) -> str:
        return self.git("status", "--porcelain")

    def count(self) -> int:
        return int(self.git("rev-list", "--count", "main", at=self.path))


@pytest.fixture
def work(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


@pytest.fixture
def bare(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository.git", bare=True)


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


def change(
    repository: Repository | str, value: Any = 5, path: str = "replicas", *, expect: Any = 3, **options: Any
) -> Commit:
    location = repository if isinstance(repository, str) else str(repository.path)
    state = Path(location.removeprefix("file://")).parent / "state"
    changes = [Replace(file=FILE, path=path, value=value, expect=expect)]
    return edit(location, changes, "more of them", state=state, clock=SystemClock(), **options)


def meanwhile(act: Callable[[], object]) -> Check:
    """A check that finds nothing; the first time, something happens while it looks."""
    acts = [act]

    def check(snapshot: Snapshot) -> Sequence[Diagnostic]:
        if acts:
            acts.pop()()
        return ()

    return check


def refused(call: Callable[[], object]) -> str:
    """Code and text of the error."""
    with pytest.raises(StalledError) as error:
        call()
    return f"{error.value.code}: {error.value}"


def test_an_edit_is_a_commit_of_exactly_that_line(work: Repository) -> None:
    before = work.git("rev-parse", "main")
    made = change(work)
    assert made.id == work.git("rev-parse", "main")
    assert made.parent == before == work.git("rev-parse", "main^")
    assert work.git("diff", "-U0", before, made.id).splitlines()[5:] == [
        "-replicas: 3   # three",
        "+replicas: 5   # three",
    ]
    assert work.git("log", "-1", "--format=%an <%ae>%n%cn%n%B") == "Ada <ada@example.org>\nAda\nmore of them"
    assert "+replicas: 5   # three\n" in made.patch


def test_a_work_tree_that_has_the_branch_checked_out_follows(work: Repository) -> None:
    change(work)
    assert work.status() == ""
    assert (work.path / FILE).read_text() == TEXT.replace("3 ", "5 ")


def test_edits_of_other_files_stay_as_they_are(work: Repository) -> None:
    work.write("other.txt", "being edited\n")
    work.write("new.txt", "not added\n")
    work.write("staged.txt", "staged\n")
    work.git("add", "staged.txt")
    before = work.status()
    change(work)
    assert work.status() == before
    assert (work.path / "other.txt").read_text() == "being edited\n"
    assert work.git("show", "--name-only", "--format=") == FILE


@pytest.mark.parametrize("staged", [False, True])
def test_an_uncommitted_edit_of_the_file_is_never_lost(work: Repository, staged: bool) -> None:
    work.write(FILE, TEXT + "mine: 1\n")
    if staged:
        work.git("add", FILE)
    assert "EDT106" in refused(lambda: change(work))
    assert (work.path / FILE).read_text() == TEXT + "mine: 1\n"
    assert work.count() == 1
    assert work.committed() == TEXT


def test_a_file_that_was_only_touched_is_no_hindrance(work: Repository) -> None:
    os.utime(work.path / FILE, (1, 1))
    change(work)
    assert work.status() == ""


def test_linked_work_trees_follow_too(work: Repository, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    work.git("worktree", "add", "-q", "-b", "side", str(linked))
    made = edit(
        str(linked),
        [Replace(file=FILE, path="replicas", value=4)],
        "aside",
        state=tmp_path,
        clock=SystemClock(),
    )
    assert made.id == work.git("rev-parse", "side") != work.git("rev-parse", "main")
    assert "4 " in (linked / FILE).read_text()
    change(work, branch="side", expect=4)
    assert work.git("status", "--porcelain", at=linked) == ""
    assert "5 " in (linked / FILE).read_text()
    assert (work.path / FILE).read_text() == TEXT


def test_a_branch_that_is_not_checked_out_is_edited_alone(work: Repository) -> None:
    work.git("branch", "side")
    work.write(FILE, "being edited\n")
    change(work, branch="side")
    assert "replicas: 5" in work.committed(revision="side")
    assert work.committed() == TEXT
    assert (work.path / FILE).read_text() == "being edited\n"


def test_a_detached_head_asks_for_a_branch(work: Repository) -> None:
    work.git("checkout", "-q", "--detach")
    assert "EDT111" in refused(lambda: change(work))
    change(work, branch="main")
    assert "replicas: 5" in work.committed()
    assert (work.path / FILE).read_text() == TEXT


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_bare_repository_is_edited_directly_or_by_a_push(bare: Repository, scheme: str) -> None:
    made = change(f"{scheme}{bare.path}", author="Bob <bob@example.org>")
    assert bare.git("rev-parse", "main", at=bare.path) == made.id
    assert bare.committed() == TEXT.replace("3 ", "5 ")
    assert bare.git("log", "-1", "--format=%an", "main", at=bare.path) == "Bob"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_commit_that_comes_in_between_is_kept_and_the_edit_goes_on_top(
    bare: Repository, scheme: str
) -> None:
    commits: list[str] = []
    check = meanwhile(lambda: commits.append(bare.commit(FILE, TEXT.replace("web:1", "web:2"))))
    made = change(f"{scheme}{bare.path}", check=check, author="Bob <bob@example.org>")
    assert made.parent == commits[0]
    assert bare.committed() == TEXT.replace("3 ", "5 ").replace("web:1", "web:2")


def test_a_commit_in_the_same_work_tree_that_comes_in_between_is_kept(work: Repository) -> None:
    commits: list[str] = []
    made = change(work, check=meanwhile(lambda: commits.append(work.commit("other.txt", "new\n"))))
    assert made.parent == commits[0]
    assert work.status() == ""
    assert work.committed("other.txt") == "new\n"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_value_that_somebody_else_changes_in_between_is_theirs(bare: Repository, scheme: str) -> None:
    check = meanwhile(lambda: bare.commit(FILE, TEXT.replace("3 ", "4 ")))
    changes = [Replace(file=FILE, path="replicas", value=5)]
    with raises("EDT005", EditError) as error:
        edit(
            f"{scheme}{bare.path}",
            changes,
            "more",
            state=bare.path.parent / "state",
            clock=SystemClock(),
            check=check,
            author="Bob <bob@example.org>",
        )
    assert error.value.diagnostics[0].code == "EDT005"
    assert "from 3 to 4" in str(error.value)
    assert bare.committed() == TEXT.replace("3 ", "4 ")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_branch_that_was_set_back_in_between_is_not_set_forward(bare: Repository, scheme: str) -> None:
    first = bare.git("rev-parse", "main")
    bare.commit("other.txt", "to be taken back\n")

    def take_back() -> None:
        bare.git("reset", "-q", "--hard", first)
        bare.git("push", "-q", "--force", "origin", "main")

    made = change(f"{scheme}{bare.path}", check=meanwhile(take_back), author="Bob <bob@example.org>")
    assert made.parent == first
    assert bare.committed("other.txt") == "other\n"


@pytest.mark.parametrize("kind", ["work", "bare", "pushed"])
def test_many_at_once_all_succeed_and_lose_nothing(tmp_path: Path, kind: str) -> None:
    repository = Repository(tmp_path / "repository", bare=kind != "work")
    location = f"file://{repository.path}" if kind == "pushed" else str(repository.path)
    many = 6 if kind == "pushed" else 20
    count = Compute(file=FILE, path="replicas", function=lambda old: old + 1)

    def add_one(number: int) -> str:
        return edit(
            location,
            [count],
            f"number {number}",
            state=tmp_path / "state",
            clock=SystemClock(),
            author="Bob <bob@example.org>",
        ).id

    with ThreadPoolExecutor(many) as threads:
        made = list(threads.map(add_one, range(many)))
    assert len(set(made)) == many
    assert f"replicas: {3 + many} " in repository.committed()
    assert repository.count() == 1 + many
    if kind == "work":
        assert repository.status() == ""


def test_who_only_expects_is_told_when_another_was_faster(bare: Repository) -> None:
    def attempt(number: int) -> bool:
        try:
            change(bare, 10 + number)
        except EditError as error:
            assert error.diagnostics[0].code == "EDT005"  # noqa: PT017 -- the others succeed
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(attempt, range(8))) == [False] * 7 + [True]
    assert bare.count() == 2


def test_several_changes_are_one_commit_or_none(work: Repository, tmp_path: Path) -> None:
    work.commit("b.json", '{"a": 1}\n')
    good: list[Change] = [
        Replace(file=FILE, path="replicas", value=4),
        Replace(file=FILE, path="image", value="web:2"),
        Add(file="b.json", path="b", value=2),
    ]
    bad: list[Change] = [*good, Replace(file="b.json", path="c", value=1)]
    with raises("EDT002", EditError):
        edit(str(work.path), bad, "bad", state=tmp_path, clock=SystemClock())
    assert work.count() == 2
    made = edit(str(work.path), good, "good", state=tmp_path, clock=SystemClock())
    assert [item.file for item in made.files] == [FILE, "b.json"]
    assert work.count() == 3
    assert work.committed("b.json") == '{"a": 1, "b": 2}\n'


def test_all_that_is_wrong_is_said_at_once(work: Repository, tmp_path: Path) -> None:
    changes: list[Change] = [
        Replace(file=FILE, path="replicsa", value=4),
        Replace(file="nowhere.yaml", path="a", value=4),
        Replace(file=FILE, path="image", value=4),
    ]
    with raises("EDT002", EditError) as error:
        edit(str(work.path), changes, "bad", state=tmp_path, clock=SystemClock())
    assert [item.code for item in error.value.diagnostics] == ["EDT002", "EDT009", "EDT004"]


def test_only_a_branch_is_edited(work: Repository) -> None:
    work.git("tag", "v1")
    assert "EDT109" in refused(lambda: change(work, branch="refs/tags/v1"))


def test_an_edit_that_changes_nothing_makes_no_commit(work: Repository) -> None:
    made = change(work, 3)
    assert (made.id, made.files, work.count()) == ("", (), 1)


def test_a_rehearsal_shows_the_diff_and_writes_nothing(work: Repository) -> None:
    objects = sum(1 for _ in (work.path / ".git").rglob("*"))
    made = change(work, rehearse=True)
    assert "+replicas: 5" in made.patch
    assert (made.id, work.count(), work.status()) == ("", 1, "")
    assert sum(1 for _ in (work.path / ".git").rglob("*")) == objects


def test_what_a_check_finds_keeps_the_edit_back(work: Repository) -> None:
    seen: list[bytes] = []

    def check(snapshot: Snapshot) -> Sequence[Diagnostic]:
        seen.append(snapshot.read(FILE))
        assert snapshot.files()[FILE].size == len(seen[0])
        return [Diagnostic(code="GEN007", what="too many")]

    assert "too many" in refused(lambda: change(work, 500, check=check))
    assert seen == [TEXT.replace("3 ", "500 ").encode()]
    assert (work.count(), work.status()) == (1, "")


def test_a_file_that_is_not_committed_is_not_there(work: Repository) -> None:
    work.write("assets/new.yaml", "a: 1\n")
    changes = [Replace(file="assets/new.yaml", path="a", value=2)]
    with raises("EDT009", EditError) as error:
        edit(str(work.path), changes, "m", state=work.path.parent, clock=SystemClock())
    assert error.value.diagnostics[0].code == "EDT009"


@pytest.mark.parametrize("file", ["../x.yaml", "/etc/x.yaml", ".git/config.yaml", "a//b.yaml", ""])
def test_a_path_out_of_the_source_is_refused(work: Repository, file: str) -> None:
    changes = [Replace(file=file, path="a", value=2)]
    with raises("EDT119", StalledError):
        edit(str(work.path), changes, "m", state=work.path.parent, clock=SystemClock())


def test_a_symbolic_link_is_never_followed(work: Repository) -> None:
    (work.path / "link.yaml").symlink_to(FILE)
    work.git("add", "-A")
    work.git("commit", "-q", "-m", "link")
    changes = [Replace(file="link.yaml", path="replicas", value=2)]
    with raises("EDT112", StalledError):
        edit(str(work.path), changes, "m", state=work.path.parent, clock=SystemClock())


def test_a_file_keeps_its_mode(work: Repository) -> None:
    (work.path / FILE).chmod(0o755)
    work.git("commit", "-q", "-a", "-m", "executable")
    change(work)
    assert work.git("ls-tree", "main", FILE).startswith("100755")
    assert work.status() == ""


def test_a_commit_without_an_author_is_refused(work: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    work.git("config", "user.name", "")
    assert "EDT115" in refused(lambda: change(work))
    assert "EDT114" in refused(lambda: change(work, author="Bob"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Env")
    change(work)
    assert work.git("log", "-1", "--format=%an") == "Env"


def test_where_commits_are_to_be_signed_they_are_or_are_not_made(work: Repository, tmp_path: Path) -> None:
    key = tmp_path / "key"
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key)), ("commit.gpgsign", "true")):
        work.git("config", name, value)
    assert "EDT116" in refused(lambda: change(work))
    assert (work.count(), work.status()) == (1, "")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    change(work)
    assert "BEGIN SSH SIGNATURE" in work.git("cat-file", "commit", "main")
    assert work.git("log", "-1", "--format=%an%n%B") == "Ada\nmore of them"


def test_a_lock_that_another_git_command_holds_is_waited_out_by_the_caller(work: Repository) -> None:
    (work.path / ".git" / "index.lock").touch()
    with raises("EDT105", TransientError):
        change(work)
    assert (work.path / FILE).read_text() == TEXT
    (work.path / ".git" / "index.lock").unlink()
    change(work)


def test_a_branch_that_cannot_be_moved_leaves_the_work_tree_as_it_was(work: Repository) -> None:
    (work.path / ".git" / "refs" / "heads" / "main.lock").touch()
    assert "EDT103" in refused(lambda: change(work))
    assert (work.path / FILE).read_text() == TEXT
    assert (work.status(), work.count()) == ("", 1)


def test_a_repository_that_cannot_be_written_says_so(bare: Repository) -> None:
    new = TEXT.replace("3 ", "5 ")
    blob = pygit2.hash(new.encode())
    folder = bare.path / "objects" / str(blob)[:2]
    if folder.exists():  # another object has the same first byte: one in a hundred repositories
        subprocess.run(["git", "-C", str(bare.path), "repack", "-adq"], check=True)
        shutil.rmtree(folder, ignore_errors=True)
    folder.touch()  # root may write everywhere else
    assert "EDT113" in refused(lambda: change(bare))
    assert bare.committed() == TEXT


def test_a_push_that_the_other_side_declines_says_what_it_says(bare: Repository) -> None:
    hook = bare.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho only by review >&2\nexit 1\n")
    hook.chmod(0o755)
    message = refused(lambda: change(f"file://{bare.path}", author="Bob <bob@example.org>"))
    assert "EDT108" in message
    assert "only by review" in message
    assert bare.count() == 1


def test_a_repository_that_is_not_there_is_transient(tmp_path: Path) -> None:
    with raises("SRC126", TransientError):
        change(str(tmp_path / "nowhere.git"))


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "empty")], check=True)
    assert "SRC129" in refused(lambda: change(str(tmp_path / "empty")))


def test_a_rebase_under_way_is_not_disturbed(work: Repository) -> None:
    work.git("checkout", "-q", "-b", "side")
    work.commit(FILE, TEXT.replace("3 ", "4 "))
    work.git("checkout", "-q", "main")
    work.commit(FILE, TEXT.replace("3 ", "6 "))
    with pytest.raises(subprocess.CalledProcessError):
        work.git("rebase", "side")
    assert "rebase" in refused(lambda: change(work))
    assert "EDT104" in refused(lambda: change(work, branch="main", expect=6))
