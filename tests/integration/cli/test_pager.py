"""On a terminal, long output goes through a pager; elsewhere it never does."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

PAGER = """\
#!/bin/sh
echo "paged LESS=$LESS"
cat
"""


@pytest.fixture
def pager(tmp_path: Path) -> str:
    program = tmp_path / "pager"
    program.write_text(PAGER)
    program.chmod(0o700)
    return str(program)


def on_a_terminal(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and output of a command whose streams are a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lehr", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **environment},
        start_new_session=True,
    )
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while part := os.read(ours, 65_536):
            written += part
    os.close(ours)
    return process.wait(timeout=20), written.decode()


@pytest.mark.parametrize("variable", ["LEHR_PAGER", "PAGER"])
def test_help_goes_through_the_pager(variable: str, pager: str) -> None:
    code, shown = on_a_terminal("help", "selectors", **{variable: pager})
    assert code == 0
    assert shown.startswith("paged LESS=-FRX")
    assert "label:team=web" in shown


def test_so_do_lists(pager: str) -> None:
    assert on_a_terminal("types", LEHR_PAGER=pager)[1].startswith("paged")


@pytest.mark.parametrize("arguments", [("--no-pager", "types"), ("types", "--no-pager")])
def test_it_can_be_turned_off(arguments: tuple[str, ...], pager: str) -> None:
    code, shown = on_a_terminal(*arguments, LEHR_PAGER=pager)
    assert code == 0
    assert shown.startswith("TYPE")


@pytest.mark.parametrize("none", ["", "cat"])
def test_an_own_setting_takes_precedence(none: str, pager: str) -> None:
    assert on_a_terminal("types", LEHR_PAGER=none, PAGER=pager)[1].startswith("TYPE")


def test_a_pager_that_is_left_early_is_quiet() -> None:
    assert on_a_terminal("help", "glossary", LEHR_PAGER="true") == (0, "")


def test_other_formats_and_files_are_never_paged(pager: str) -> None:
    assert on_a_terminal("types", "-o", "json", LEHR_PAGER=pager)[1].startswith("[")
    done = subprocess.run(
        [sys.executable, "-m", "lehr", "help", "selectors"],
        env={**os.environ, "PAGER": pager},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.stdout.startswith("## Selectors")
