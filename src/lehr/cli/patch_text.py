"""Differences of texts, as lines of a patch for a terminal or a file."""

from __future__ import annotations

from collections.abc import Iterator

import click

from lehr.cli import formatting, terminal

_MOST_LINES = 40
_CONTEXT = 2

full_diff_option = click.option(
    "--full-diff",
    is_flag=True,
    help=f"Show all differences, and all lines of a text that differ, instead of the first {_MOST_LINES}.",
)


def patch(before: str, after: str, *, full: bool) -> Iterator[str]:
    """The lines of a patch, without colours; the first of very many, unless `full`."""
    from lehr.base.patches import unified_diff

    lines = list(unified_diff(before, after, context=_CONTEXT))
    most = len(lines) if full else _MOST_LINES
    yield from map(readable, lines[:most])
    if len(lines) > most:
        yield f"  {formatting.counted(len(lines) - most, 'more line')}; see --full-diff"


def readable(line: str) -> str:
    r"""`line` without anything that a terminal would obey; a carriage return, also at its end, is `\r`."""
    return "\t".join(map(_escaped, line.split("\t")))


def _escaped(part: str) -> str:
    if part.isprintable():
        return part
    from lehr.cli.diagnostics import visible

    bare = part.rstrip("\r")
    return visible(bare) + "\\r" * (len(part) - len(bare))


def coloured(line: str) -> str:
    """A line of a patch in its colour."""
    return terminal.style(line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
