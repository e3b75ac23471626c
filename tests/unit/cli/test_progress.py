"""Bars are for terminals, and count what was done."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.progress import Progress

from lehr.cli.progress import Bar, bar


def test_nothing_is_shown_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("rows") as progress:
        progress.begin(5000)
        progress.advance(5000)
    assert capsys.readouterr() == ("", "")


def test_the_bar_is_moved_in_steps_and_counts_all() -> None:
    shown = Progress(console=Console(quiet=True))
    task = shown.add_task("rows", total=None)
    progress = Bar(shown, task)
    progress.begin(5000)
    for _ in range(999):
        progress.advance(1)
    assert (shown.tasks[0].total, shown.tasks[0].completed) == (5000, 0)
    progress.advance(1)
    assert shown.tasks[0].completed == 1000
    progress.advance(2500)
    assert shown.tasks[0].completed == 3500
