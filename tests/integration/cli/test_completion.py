"""Bash completes values from the state, with the script that `lehr completion bash` prints."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from lehr.base.clock import SystemClock
from lehr.cli.main import cli
from lehr.control.state_folder import default_state
from lehr.model.asset import Partition
from lehr.model.control import Control, ControlKind
from lehr.model.selector import parse_selector
from lehr.model.writes import SetControl
from lehr.wiring import open_store
from tests.installed import installed

ASSETS = """\
- {id: web/motd, type: lehr.File, payload: {path: etc/motd, content: hello}}
- {id: web/etc, type: lehr.Directory, payload: {path: etc, exclusive: true}}
- id: office-hours
  type: lehr.Calendar
  payload:
    select: {ids: [nothing]}
    timezone: UTC
    windows: [{days: [mon], from: "00:00", to: "24:00"}]
    override: true
"""
SCRIPT = """\
eval "$("$1" completion bash)"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_lehr_completion "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""
Complete = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("hello")
    (folder / "assets").mkdir()
    (folder / "etc").mkdir()
    (folder / "etc/stray").touch()
    (folder / "lehr.yaml").write_text("partition: hello\n")
    (folder / "assets/all.yaml").write_text(ASSETS)
    CliRunner().invoke(cli, ["run", str(folder), "--once"])
    freeze = Control(
        id="1",
        kind=ControlKind.FREEZE,
        partition=Partition("hello"),
        selector=parse_selector("web/*"),
        reason="closed",
        actor="ada",
        at=SystemClock().now(),
    )
    store = open_store(default_state(folder))
    store.commit([SetControl(freeze)])
    store.close()
    return folder


@pytest.fixture
def complete(tmp_path: Path) -> Complete:
    """What bash offers for the last word of a line, with what is printed on stderr."""
    program = tmp_path / "lehr"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m lehr "$@"\n')
    program.chmod(0o700)

    def complete(line: str, at: Path = tmp_path, **environment: str) -> str:
        # Bash splits words like this: COMP_WORDBREAKS.
        words = [part for word in line.split(" ") for part in re.split("([=:@]+)", word) if part or not word]
        done = subprocess.run(
            [installed("bash"), "-c", SCRIPT, "bash", program, *words],
            cwd=at,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=150,
        )
        return " ".join(done.stdout.split()) + done.stderr

    return complete


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("lehr why w", "web/etc web/motd"),
        ("lehr get asset web/m", "web/motd"),
        ("lehr get assets type=lehr.F", "lehr.File"),
        ("lehr get assets --status=st", "Stalled"),
        ("lehr wait --for status=Wai", "Waiting"),
        ("lehr diff ", "latest previous 1"),
        ("lehr diff latest hello@", "1"),
        ("lehr pin web/motd --at p", "previous"),
        ("lehr get assets --partition ", "hello"),
        ("lehr --partition hello why web/m", "web/motd"),
        ("lehr explain lehr.Fi", "lehr.File"),
        ("lehr explain lehr.File.content_s", "lehr.File.content_secret"),
        ("lehr controller x --type lehr.Sy", "lehr.Symlink"),
        ("lehr approve ", "web/etc"),
        ("lehr unfreeze ", "web/*"),
        ("lehr unpin ", ""),
        ("lehr override web/motd --check ", "office-hours"),
        ("lehr adopt lehr.Sy", "lehr.Symlink"),
        ("lehr store export p", "previous"),
        ("lehr help selecto", "selectors"),
        ("lehr help OutsideW", "OutsideWindow"),
        ("lehr help get inc", "incarnations"),
        ("lehr nothing ", ""),
        ("lehr -o json stat", "status state"),
    ],
)
def test_bash_completes_values(line: str, offered: str, folder: Path, complete: Complete) -> None:
    assert complete(line, folder) == offered


def test_nothing_is_written_or_printed_where_nothing_can_be_read(tmp_path: Path, complete: Complete) -> None:
    assert complete("lehr why ") == ""
    assert complete("lehr why ", LEHR_SERVER="http://127.0.0.1:1") == ""
    assert complete("lehr why ", LEHR_STORE="postgresql://127.0.0.1:1/x") == ""
    assert complete("lehr --state nothing why ") == ""
    assert [path.name for path in tmp_path.iterdir()] == ["lehr"]


def test_a_server_that_does_not_answer_is_given_up(complete: Complete) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert complete("lehr why ", LEHR_SERVER=f"http://127.0.0.1:{port}") == ""


def test_a_state_that_others_can_read_is_not_repaired(folder: Path, complete: Complete) -> None:
    state = default_state(folder)
    state.chmod(0o755)
    try:
        assert complete("lehr why w", folder) == ""
        assert state.stat().st_mode & 0o777 == 0o755
    finally:
        state.chmod(0o700)
