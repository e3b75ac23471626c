"""Given pushes under way, when `lehr run` is ended or killed, then nothing is lost or done twice."""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until


class Slow:
    """A workspace with a command that begins, waits for a word, and counts."""

    def __init__(self, folder: Path) -> None:
        self.workspace = Workspace(folder)
        self.begun = folder / "begun"
        self.word = folder / "go"
        self.runs = folder / "runs"
        self.result = folder / "result"
        apply = (
            f"echo run >> {self.runs}; echo $$ > {self.begun}.new; mv {self.begun}.new {self.begun}; "
            f"until test -e {self.word}; do sleep 0.02; done; touch {self.result}"
        )
        check = f"test -e {self.result}"
        self.workspace.declare("slow", "lehr.Command", {"check": check, "apply": apply})
        self.motd = self.workspace.declare_file("motd", "welcome\n")
        self.workspace.commit()

    @property
    def count(self) -> int:
        """How often the command was begun."""
        return len(self.runs.read_text().splitlines()) if self.runs.exists() else 0


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    return Slow(tmp_path)


def test_sigterm_in_the_middle_of_a_push_lets_it_end_and_writes_down_how(slow: Slow) -> None:
    with slow.workspace.run() as running:
        until("the push is under way", slow.begun.exists, running.said)
        os.kill(running.pid, signal.SIGTERM)
        running.says("shutting down; production keeps running")
        slow.word.touch()
        assert running.ended() == 0
    [operation] = slow.workspace.operations("slow")
    assert operation["result"] == "done"
    assert slow.workspace.once().code == 0
    assert slow.count == 1


def test_a_push_that_outlives_a_killed_run_is_looked_at_and_not_begun_again(slow: Slow) -> None:
    with slow.workspace.run() as running:
        until("the push is under way", slow.begun.exists, running.said)
        slow.workspace.stands("motd", "converged")
        running.end(signal.SIGKILL)
    assert os.path.exists(f"/proc/{slow.begun.read_text().strip()}")
    with slow.workspace.run() as running:
        slow.workspace.stands("slow", "is not known", "still running", "changes nothing before")
        slow.motd.unlink()
        until("others go on", slow.motd.exists, running.said)
        slow.word.touch()
        slow.workspace.stands("slow", "converged")
    assert slow.count == 1
    [operation] = slow.workspace.operations("slow")
    assert operation["result"] == "done"
    assert "found applied after its outcome was unknown" in operation["message"]


def test_a_push_that_was_killed_with_its_run_is_looked_at_and_done(slow: Slow) -> None:
    with slow.workspace.run() as running:
        until("the push is under way", slow.begun.exists, running.said)
        running.end(signal.SIGKILL)
    os.killpg(os.getpgid(int(slow.begun.read_text())), signal.SIGKILL)
    slow.word.touch()
    assert slow.workspace.once().code == 0
    last, first = slow.workspace.operations("slow")
    assert first["result"] == "failed"
    assert "found not applied after its outcome was unknown" in first["message"]
    assert last["result"] == "done"
    assert slow.count == 2


def holds(file: Path, content: str) -> bool:
    return file.exists() and file.read_text() == content


def test_killed_at_any_moment_it_goes_on_where_it_was(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for content in ("one\n", "two\n", "three\n"):
        files = [workspace.declare_file(f"file-{number}", content) for number in range(20)]
        workspace.commit(content)
        with workspace.run() as running:
            until("some are pushed", functools.partial(holds, files[len(content)], content), running.said)
            running.end(signal.SIGKILL)
    done = workspace.once()
    assert done.code == 0, done.err
    assert {file.read_text() for file in files} == {"three\n"}
    assert workspace.sequence() == 3
    assert not list(workspace.production.glob(".*"))
