"""A bar on the terminal for work that takes long; nothing off a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_STEP = 1000
"""To draw the bar costs more than to look at a row."""


class Bar:
    """How far some work has come."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress = progress
        self._task = task
        self._waiting = 0

    def begin(self, total: int) -> None:
        """Number of steps to do."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=total)

    def advance(self, count: int) -> None:
        """So much more is done."""
        self._waiting += count
        if self._progress is not None and self._task is not None and self._waiting >= _STEP:
            self._progress.update(self._task, advance=self._waiting)
            self._waiting = 0


@contextlib.contextmanager
def bar(noun: str) -> Iterator[Bar]:
    """A bar on stderr that counts `noun`."""
    if not sys.stderr.isatty():
        yield Bar(None, None)
        return
    with _drawn() as progress:
        yield Bar(progress, progress.add_task(noun, total=None))


@contextlib.contextmanager
def tally(noun: str, total: int | None, wrong: str, *, shown: bool) -> Iterator[Callable[[bool], None]]:
    """A bar on stderr that counts `noun`; its function is called for each one with whether it is `wrong`."""
    if not shown or not sys.stderr.isatty():
        yield lambda is_wrong: None
        return
    with _drawn() as progress:
        task = progress.add_task(noun, total=total)
        found = 0

        def advance(is_wrong: bool) -> None:
            nonlocal found
            found += is_wrong
            progress.update(task, advance=1, description=f"{noun}, {found} {wrong}" if found else noun)

        yield advance


def _drawn() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
