"""`--watch` next to an active `lehr run`: here, over HTTP, and on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lehr.cli.main import cli
from tests.interruptible import interruptible
from tests.said import Output, address, said

LEHR = (sys.executable, "-m", "lehr")
ONE = "- {id: one, type: lehr.File, payload: {path: one, content: x}}\n"
BAD = "- {id: bad, type: lehr.File, payload: {path: /proc/lehr/x, content: x}}\n"
TWO = "- {id: two, type: lehr.File, payload: {path: two, content: x}}\n"


@contextlib.contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace with one file, which an active `lehr run` keeps."""
    folder = tmp_path / "work"
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: hello\n")
    (folder / "assets/all.yaml").write_text(ONE)
    monkeypatch.setenv("LEHR_STATE", str(tmp_path / "state"))
    with started(*LEHR, "run", str(folder)) as run:
        said(run, "production is as intended")
        yield folder


def declare(folder: Path, content: str) -> None:
    (folder / "assets/all.yaml").write_text(content)


def interrupt(process: subprocess.Popen[str], errors: Output) -> None:
    """Ctrl-C ends it quietly."""
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert "".join(errors.rest()).strip() == ""


def test_lists_and_the_status_are_followed(folder: Path) -> None:
    with (
        started(*interruptible("get", "assets", "--watch")) as assets,
        started(*interruptible("get", "decisions", "-w", "-o", "json")) as decisions,
        started(*interruptible("status", "--watch")) as status,
    ):
        rows, made, text = (Output(process.stdout) for process in (assets, decisions, status))
        errors = [Output(process.stderr) for process in (assets, decisions, status)]
        assert {line.split()[0] for line in rows.until("one .* Converged")} == {"ID", "one"}
        text.until("^assets .* 1 Converged")
        made.until('"Converged"')
        declare(folder, ONE + TWO)
        assert all("two" in line for line in rows.until("two .* Converged"))
        text.until("^in force .* hello@2")
        text.until("^assets .* 2 Converged")
        lines = [json.loads(line) for line in made.until('"Converged"')]
        assert [line["asset"] for line in lines] == ["two"] * len(lines)
        assert lines[-1]["condition"]["status"] == "Converged"
        for process, shown in zip((assets, decisions, status), errors, strict=True):
            interrupt(process, shown)
        assert not any("\x1b" in line for line in [*rows.rest(), *text.rest()])


def test_over_http_a_server_that_is_gone_for_a_while_is_reported_once(folder: Path) -> None:
    with started(*LEHR, "serve", "--listen", "127.0.0.1:0") as server:
        url = address(server)
        command = interruptible("--server", url, "get", "assets", "-w", "-o", "json", "--filter", "id != 'x'")
        with started(*command) as watching:
            rows, errors = Output(watching.stdout), Output(watching.stderr)
            rows.until('"Converged"')
            server.terminate()
            server.wait(30)
            errors.until("HTP107|cannot be reached")
            declare(folder, ONE + TWO)
            with started(*LEHR, "serve", "--listen", url.removeprefix("http://")) as again:
                address(again)
                found = [json.loads(line) for line in rows.until('"Converged"')]
                assert {row["id"] for row in found} == {"two"}
                interrupt(watching, errors)


def test_on_a_terminal_the_status_is_drawn_in_place_and_the_terminal_is_restored(folder: Path) -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with on_terminal(theirs, "status", "--watch") as watching:
        shown = until(ours, b"1 Converged")
        assert shown.startswith(b"\x1b[?1049h\x1b[?25l")
        assert not termios.tcgetattr(theirs)[3] & termios.ECHO
        termios.tcsetwinsize(theirs, (4, 60))
        watching.send_signal(signal.SIGWINCH)
        until(ours, b"more lines\x1b[?2026l")
        watching.send_signal(signal.SIGINT)
        until(ours, b"\x1b[?25h\x1b[?1049l")
        assert watching.wait(30) == 130
        assert termios.tcgetattr(theirs) == before
    os.close(ours)


def test_top_shows_the_work_of_a_run_here_and_over_http(folder: Path) -> None:
    declare(folder, ONE + BAD)
    subprocess.run(
        [*LEHR, "wait", "bad", "--for", "status=Retrying", "--timeout", "30s"], check=True, timeout=150
    )
    with started(*LEHR, "serve", "--listen", "127.0.0.1:0") as server:
        for where in ((), ("--server", address(server))):
            command = [*LEHR, "top", "-o", "json", *where]
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=150)
            found = json.loads(done.stdout)
            assert [item["asset"] for item in found["failing"]] == ["bad"]
            assert found["failures_per_second"] > 0.0
            assert found["turns_per_second"] is not None
            assert found["run"]["load"]["turns"] > 0


def test_top_is_drawn_on_a_terminal_until_q_is_pressed(folder: Path) -> None:
    ours, theirs = pty.openpty()
    with on_terminal(theirs, "top", "-n", "0.2") as process:
        until(ours, b"turns/s")
        os.write(ours, b"q")
        until(ours, b"\x1b[?25h\x1b[?1049l")
        assert process.wait(30) == 0
    os.close(ours)


@contextlib.contextmanager
def on_terminal(terminal: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "TERM": "xterm"}
    command = interruptible(*arguments)
    try:
        with subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        os.close(terminal)


def until(terminal: int, text: bytes) -> bytes:
    """What appears on a terminal, up to `text`."""
    seen = b""
    while text not in seen:
        ready, _, _ = select.select((terminal,), (), (), 30.0)
        assert ready, seen
        seen += os.read(terminal, 65_536)
    return seen


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "--watch", "--exit-code"),
        ("status", "--watch", "-o", "yaml"),
        ("get", "assets", "--watch", "--incarnation", "1"),
    ],
)
def test_what_cannot_be_watched_is_refused(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 2
    assert "--watch" in done.stderr
