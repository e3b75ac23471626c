"""Diagnostics as text and as JSON.

error[GEN007]: `replicas`: -1 is less than the minimum of 0
  --> assets/web.yaml:5:3
   |
 5 |   replicas: -1
   |   ^
   = why: it does not fit team.Service
   = fix: write a number that is at least 0
"""

from __future__ import annotations

import json
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

import click
import msgspec

from lehr.base.diagnostics import Diagnostic, Excerpt, Severity, errors, in_order
from lehr.cli.terminal import coloured

_WIDTH = 100
_UNUSABLE = 2
_SGR = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
_BOLD, _FRAME = "1", "1;34"
_Paint = Callable[[str, str], str]


def render(diagnostics: Iterable[Diagnostic], *, colour: bool = False, most: int | None = None) -> str:
    """All diagnostics by location, each with its source line, and `summary` at the end.

    Args:
        most: show at most this many, errors first, and count the others.
    """
    listed = in_order(diagnostics)
    shown = listed
    if most is not None and len(listed) > most:
        shown = in_order(sorted(listed, key=lambda item: item.severity is not Severity.ERROR)[:most])
    paint = _coloured if colour else lambda _sgr, text: text
    blocks = ["\n".join(_block(item, paint)) for item in shown]
    if len(shown) < len(listed):
        blocks.append(f"... and {len(listed) - len(shown)} more")
    blocks.append(summary(listed))
    return "\n\n".join(blocks)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Show diagnostics on stderr."""
    click.echo(render(diagnostics, colour=coloured(sys.stderr)), err=True)


def refuse(diagnostics: Iterable[Diagnostic]) -> NoReturn:
    """Show diagnostics on stderr, as JSON for a command with `-o json`, and exit with 1."""
    context = click.get_current_context(silent=True)
    chosen = None if context is None else context.find_object(dict)
    if chosen is not None and chosen.get("form") == "json":
        click.echo(to_json(diagnostics), err=True)
    else:
        show(diagnostics)
    raise click.exceptions.Exit(1)


def refuse_file(diagnostics: Sequence[Diagnostic], form: str) -> NoReturn:
    """Show on stderr why a file that a command was given cannot be used, and exit with 2."""
    if form == "json":
        click.echo(to_json(diagnostics), err=True)
    else:
        show(diagnostics)
    raise click.exceptions.Exit(_UNUSABLE)


def summary(diagnostics: Sequence[Diagnostic]) -> str:
    """Their number: `3 errors, 1 warning`; `no problems` if there are none."""
    found = len(errors(diagnostics))
    parts = [_count(found, "error"), _count(len(diagnostics) - found, "warning")]
    return ", ".join(part for part in parts if part) or "no problems"


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """All diagnostics by location, as an indented JSON list."""
    return json.dumps(msgspec.to_builtins(in_order(diagnostics)), indent=2)


def _coloured(sgr: str, text: str) -> str:
    return f"\x1b[{sgr}m{text}\x1b[0m"


def _block(item: Diagnostic, paint: _Paint) -> Iterator[str]:
    head = paint(_SGR[item.severity], f"{item.severity}[{item.code}]")
    yield head + paint(_BOLD, f": {visible(item.what)}")
    number = str(item.at.line) if item.at is not None and item.at.line else ""
    margin = " " * max(len(number), 2)
    if item.at is not None:
        yield f"{margin}{paint(_FRAME, '-->')} {visible(str(item.at))}"
    if item.excerpt is not None:
        yield f"{margin} {paint(_FRAME, '|')}"
        yield from _quoted(item.excerpt, number.rjust(len(margin)), paint, item.severity)
    for label, text in (("why", item.why), ("fix", item.fix)):
        if text:
            start = f"{margin} {paint(_FRAME, '=')} {paint(_BOLD, label + ':')} "
            indent = " " * (len(margin) + len(label) + 5)
            wrapped = textwrap.wrap(
                visible(text), _WIDTH - len(indent), break_long_words=False, break_on_hyphens=False
            )
            yield start + f"\n{indent}".join(wrapped)


def _quoted(excerpt: Excerpt, number: str, paint: _Paint, severity: Severity) -> Iterator[str]:
    """The source line, and a caret below."""
    bar = paint(_FRAME, "|")
    yield f"{paint(_FRAME, number)} {bar} {visible(excerpt.text)}".rstrip()
    if excerpt.caret is not None:
        before = visible(excerpt.text[: excerpt.caret])
        offset = sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in before)
        yield f"{' ' * len(number)} {bar} {' ' * offset}{paint(_SGR[severity], '^')}"


def visible(text: str) -> str:
    """`text` without anything that a terminal would obey: control characters become escapes."""
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text.rstrip("\r\n"))


def _shown(character: str) -> str:
    if character == "\t":
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""
