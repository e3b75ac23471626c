"""What the demo's narrator writes."""

from __future__ import annotations

import shlex

import pytest

from lehr.demo.narrator import Narrator


def tell(narrator: Narrator) -> None:
    narrator.scene(1, "A [bold] title")
    narrator.shell(("echo", "a b"), "first\n" * 40)
    narrator.holds("it is so")


def test_off_a_terminal_lines_are_plain_and_long_output_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Narrator(pretty=False))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["--- 1. A [bold] title", "  $ echo 'a b'", "    first"]
    assert lines[-2:] == ["    ... and 10 more lines", "  ok  it is so"]


def test_what_is_shown_is_never_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Narrator(pretty=True))
    assert "A [bold] title" in capsys.readouterr().out


def test_a_silent_narrator_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tell(Narrator(pretty=True, silent=True))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("word", "shown"),
    [("x = 'y'", "\"x = 'y'\""), ("$x 'y'", "'$x '\"'\"'y'\"'\"''"), ("a b", "'a b'"), ("a", "a")],
)
def test_a_command_is_quoted_so_that_a_shell_takes_it_as_it_was_run(
    word: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Narrator(pretty=False).shell(("echo", word))
    line = capsys.readouterr().out.rstrip()
    assert line == f"  $ echo {shown}"
    assert shlex.split(line)[2:] == [word]
