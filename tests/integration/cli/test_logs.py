"""`lehr logs`: what real programs under supervisord print."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.main import cli
from lehr.plugins.process import procfs
from lehr.plugins.process.ownership import Ownership
from tests.codes import raises
from tests.interruptible import interruptible

PROGRAM = """
import os, sys, time
replica = sys.argv[1]
print(f"hello from {replica}", flush=True)
print(f"trouble of {replica}", file=sys.stderr, flush=True)
while not os.path.exists(f"end-{replica}"):
    if os.path.exists("say"):
        text = open("say").read()
        if text.endswith("\\n"):
            print(text.strip(), flush=True)
            os.unlink("say")
    time.sleep(0.02)
os.unlink(f"end-{replica}")
"""


def lehr(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace with a program in two replicas, which run."""
    folder = tmp_path / "work"
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: prod\n")
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, "{replica}"]
    process = {"command": command, "replicas": 2, "directory": str(folder)}
    assets = [
        {"id": "web", "type": "lehr.Process", "payload": process},
        {"id": "motd", "type": "lehr.File", "payload": {"path": "motd", "content": "hello"}},
    ]
    (folder / "assets/all.yaml").write_text(json.dumps(assets))
    state = tmp_path / "state"
    monkeypatch.setenv("LEHR_STATE", str(state))
    lehr("run", str(folder), "--once", "--timeout", "60s")
    yield folder
    root = state.resolve() / "supervisor"
    while left := [*procfs.marked(root), *Ownership(root).marked()]:
        for process_, _ in sorted(left, key=lambda item: procfs.REPLICA in item[1]):
            procfs.send(process_, signal.SIGKILL)


def shows(line: str, *arguments: str) -> str:
    """The output of `lehr logs`, once it has a line: supervisord writes it shortly after the program."""
    until = time.monotonic() + 30
    while line not in (output := lehr("logs", "web", *arguments).stdout):
        assert time.monotonic() < until, output
        time.sleep(0.05)
    return output


def test_the_lines_of_each_replica_and_stream_are_shown(folder: Path) -> None:
    shows("[replica 1] trouble of 1")
    assert lehr("logs", "web").stdout.splitlines() == [
        "[replica 0] hello from 0",
        "[replica 0] trouble of 0",
        "[replica 1] hello from 1",
        "[replica 1] trouble of 1",
    ]
    assert lehr("logs", "web", "--replica", "1", "--stderr").stdout == "trouble of 1\n"
    assert lehr("logs", "web", "--replica", "1", "--stdout", "--tail", "0").stdout == ""
    assert lehr("logs", "web", "--since", "1h", "--replica", "0", "--stdout").stdout == "hello from 0\n"
    assert lehr("logs", "web", "--since", "2999-01-01T00:00Z").stdout == ""


def test_previous_shows_the_run_before_the_restart(folder: Path) -> None:
    with raises("CLI170"):
        CliRunner().invoke(cli, ["logs", "web", "-p"], catch_exceptions=False, standalone_mode=False)
    (folder / "say").write_text("of the first run\n")
    shows("of the first run")
    (folder / "end-0").touch()
    (folder / "end-1").touch()
    until = time.monotonic() + 30
    while lehr("logs", "web", "--stdout").stdout.count("hello") < 4:
        assert time.monotonic() < until
        time.sleep(0.1)
    lines = lehr("logs", "web", "--previous", "--stdout").stdout
    assert "of the first run" in lines
    assert lines.count("hello") == 2


def test_follow_shows_what_is_kept_and_then_lines_as_they_are_written(folder: Path) -> None:
    shows("[replica 1] trouble of 1")
    command = interruptible("logs", "web", "-f")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert len([following.stdout.readline() for _ in range(4)]) == 4
        (folder / "new").write_text("a new line\n")
        (folder / "new").rename(folder / "say")
        assert following.stdout.readline().endswith("] a new line\n")
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 130


def test_assets_without_logs_are_answered_clearly(folder: Path) -> None:
    def refused(code: str, *arguments: str) -> None:
        with raises(code):
            CliRunner().invoke(cli, ["logs", *arguments], catch_exceptions=False, standalone_mode=False)

    refused("CLI168", "motd")
    refused("CLI169", "web", "--replica", "7")
    refused("QRY121", "nothing")
