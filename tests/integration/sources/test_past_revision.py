"""Who changed a line last, held to what git itself says, over histories with merges and renames."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pygit2
import pytest

from lehr.sources.past import last_change


class History:
    """A repository whose commits are named by their subjects."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, subject: str, lines: list[str], name: str = "f.yaml") -> None:
        (self.path / name).write_text("".join(f"{line}\n" for line in lines))
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def told(self, line: int, name: str = "f.yaml") -> str | None:
        repository = pygit2.Repository(str(self.path))
        found = last_change(repository, repository.head.peel(pygit2.Commit), name, line)
        return None if found is None else found.message.strip()


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "intent")


@pytest.mark.parametrize("seed", range(3))
def test_every_line_is_blamed_as_git_blames_it(history: History, seed: int) -> None:
    dice = random.Random(seed)
    lines = [f"line {number}" for number in range(12)]
    for number in range(15):
        for _ in range(dice.randint(1, 3)):
            place = dice.randrange(len(lines))
            lines[place : place + dice.randint(0, 2)] = [
                f"new {number}.{place}.{index}" for index in range(dice.randint(0, 2))
            ] or ["kept"]
        history.commit(f"change {number}", lines)
    blamed = history.git("blame", "--porcelain", "f.yaml").splitlines()
    expected = [line.split()[0] for line in blamed if len(line.split()[0]) == 40]
    repository = pygit2.Repository(str(history.path))
    newest = repository.head.peel(pygit2.Commit)
    found = [last_change(repository, newest, "f.yaml", line) for line in range(1, len(lines) + 1)]
    assert [str(commit.id) for commit in found if commit is not None] == expected


def test_a_line_that_a_merge_brought_is_blamed_on_its_author(history: History) -> None:
    history.commit("begin", ["a", "b", "c", "d", "e"])
    history.git("checkout", "-q", "-b", "side")
    history.commit("side", ["a", "b", "c", "d", "E"])
    history.git("checkout", "-q", "main")
    history.commit("main", ["A", "b", "c", "d", "e"])
    history.git("merge", "-q", "-m", "merge", "side")
    assert [history.told(line) for line in range(1, 6)] == ["main", "begin", "begin", "begin", "side"]


def test_a_line_of_a_file_that_was_renamed_keeps_its_author(history: History) -> None:
    history.commit("begin", [f"line {number}" for number in range(20)])
    history.git("mv", "f.yaml", "g.yaml")
    history.commit("rename", ["other", *(f"line {number}" for number in range(1, 20))], "g.yaml")
    assert (history.told(1, "g.yaml"), history.told(2, "g.yaml")) == ("rename", "begin")


def test_a_copy_is_blamed_on_who_made_it(history: History) -> None:
    history.commit("begin", ["a", "b"])
    history.commit("copy", ["a", "b"], "g.yaml")
    assert history.told(1, "g.yaml") == "copy"


def test_a_file_as_a_whole_is_blamed_on_the_last_commit_that_changed_it(history: History) -> None:
    history.commit("begin", ["a"])
    history.commit("change", ["b"])
    history.commit("elsewhere", ["x"], "other.yaml")
    assert (history.told(0), history.told(0, "none.yaml")) == ("change", None)
