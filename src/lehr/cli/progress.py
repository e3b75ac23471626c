"""A progress bar on a terminal for slow work; nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

T = TypeVar("T")

_STEP = 1000
"""Drawing the bar costs more than checking a row."""


class Bar:
    """Progress of some work."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress = progress
        self._task = task
        self._waiting = 0

    def begin(self, total: int) -> None:
        """Set the total number of steps."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=total)

    def advance(self, count: int) -> None:
        """Record that many finished steps."""
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
    with drawn() as progress:
        yield Bar(progress, progress.add_task(noun, total=None))


def tallied(
    items: Iterable[T],
    noun: str,
    total: int | None,
    wrong: str = "",
    is_wrong: Callable[[T], bool] = lambda item: False,
    *,
    shown: bool,
) -> Iterator[T]:
    """All `items`, with a bar on stderr that counts them and, in words, those that are `wrong`."""
    if not shown or not sys.stderr.isatty():
        yield from items
        return
    with drawn() as progress:
        task = progress.add_task(noun, total=total)
        found = 0
        for item in items:
            yield item
            found += is_wrong(item)
            progress.update(task, advance=1, description=f"{noun}, {found} {wrong}" if found else noun)


def drawn(*, timed: bool = True) -> Progress:
    """A bar on stderr, or several; `timed` shows the time as well."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    time = (TimeElapsedColumn(),) if timed else ()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *time)
    return Progress(*columns, console=Console(stderr=True), transient=True)
