"""Capabilities of the terminal: colours, width, characters; and tables that fit it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

import click

_GAP = "  "
_LEAST = 8


def coloured(stream: TextIO | None = None) -> bool:
    """Whether to write colours to `stream` (stdout by default): a terminal without `NO_COLOR`."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, colour: str | None = None, *, bold: bool = False, stream: TextIO | None = None) -> str:
    """`text` in a colour, if `stream` shows colours."""
    return click.style(text, fg=colour, bold=bold or None) if coloured(stream) else text


def width() -> int | None:
    """Columns of the terminal; None if stdout is not one, so that nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def interactive() -> bool:
    """Whether a user can be prompted."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def printable(text: str) -> str:
    """`text` on one line, without control characters."""
    if text.isprintable():
        return text
    from lehr.cli.diagnostics import visible

    return visible(text)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None) -> list[str]:
    """Lines of a table whose columns are as wide as their content.

    Args:
        columns: of the terminal; the last column is cut to fit. None cuts nothing.
    """
    return GrowingTable(titles).lines(rows, columns)


class GrowingTable:
    """A table to which rows are added. Columns become wider when they must, and never narrower."""

    def __init__(self, titles: Sequence[str]) -> None:
        self._new = [[title.upper() for title in titles]]
        self._widths = [len(title) for title in titles]

    def lines(self, rows: Sequence[Sequence[str]], columns: int | None) -> list[str]:
        """The next lines, as of `table`; first the titles."""
        cells = [[printable(cell) for cell in row] for row in rows]
        for row in cells:
            self._widths = list(map(max, self._widths, map(len, row)))
        widths = [*self._widths]
        if columns is not None:
            before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
            widths[-1] = min(widths[-1], max(columns - before, _LEAST))
        new, self._new = self._new, []
        return [_line(row, widths) for row in new + cells]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    *most, last = zip(cells, widths, strict=True)
    text, room = last
    cut = text if len(text) <= room else text[: room - 1] + "…"
    return _GAP.join([*(cell.ljust(size) for cell, size in most), cut]).rstrip()
