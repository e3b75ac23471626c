"""A process that ends, or becomes its program, while it is observed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.plugins.process import observe, procfs, rpc
from lehr.plugins.process.observation import Program, State

KEY = AssetKey(Partition("prod"), AssetId("web"))


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(["sleep", "300"], env={})
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def root(tmp_path: Path, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A group whose supervisord says that the replica runs as `process`."""
    answer = {"state": 20, "pid": process.pid, "now": 10, "start": 1}
    monkeypatch.setattr(rpc, "call_each", lambda _directory, _method, asked: [answer] * len(asked))
    return tmp_path


def program(root: Path) -> Program:
    found = observe.observe(root, {0: observe.seek(root, KEY, "test", 1)})[0]
    assert not isinstance(found, Exception)
    return found.programs[0]


def test_a_process_that_ends_while_it_is_read_has_ended(
    root: Path, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed_first(_path: Path) -> None:
        process.kill()
        process.wait()

    monkeypatch.setattr(observe, "read_note", killed_first)
    found = program(root)
    assert (found.state, found.pid, found.content) == (State.EXITED, None, "")


def test_a_process_without_a_command_line_is_about_to_become_its_program(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not program(root).launching
    monkeypatch.setattr(procfs, "arguments", lambda _pid: [])
    assert program(root).launching
