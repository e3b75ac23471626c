"""The narrator: colours on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 96
_INDENT = "  "
_MOST_LINES = 30


class Narrator:
    """Writes to stdout.

    Args:
        pretty: colours and rules; for terminals.
        silent: print nothing, for a scene that only prepares another.

    Attributes:
        console: where it writes; None unless `pretty`, and not silent.
    """

    def __init__(self, *, pretty: bool, silent: bool = False) -> None:
        self.console = _console() if pretty and not silent else None
        self._silent = silent

    def scene(self, number: int, title: str) -> None:
        """A new scene."""
        self.heading(f"{number}. {title}")

    def heading(self, text: str) -> None:
        """The topic of the following lines."""
        self._line(f"--- {text}" if self.console is None else f"\n{text}", "bold blue")

    def say(self, text: str) -> None:
        """Narrate the next step, and why it is worth watching."""
        # A path broken over two lines cannot be copied.
        self._line(textwrap.fill(text, _WIDTH, break_on_hyphens=False, break_long_words=False))

    def shell(self, command: Sequence[str], output: str = "") -> None:
        """A command that was run, and what it printed."""
        self._line(f"{_INDENT}$ {' '.join(map(_quoted, command))}", "bold cyan")
        lines = output.rstrip().splitlines()
        for line in lines[:_MOST_LINES]:
            self._line(f"{_INDENT}  {line}".rstrip(), "dim")
        if len(lines) > _MOST_LINES:
            self._line(f"{_INDENT}  ... and {len(lines) - _MOST_LINES} more lines", "dim")

    def holds(self, claim: str) -> None:
        """A claim that the program has checked."""
        self._line(f"{_INDENT}ok  {claim}", "green")

    def _line(self, text: str, style: str = "") -> None:
        if self._silent:
            return
        if self.console is not None:
            self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text)


def _quoted(word: str) -> str:
    """`word` quoted as people would in a shell: `shlex` only uses single quotes."""
    if "'" in word and not any(character in word for character in '"$`\\!'):
        return f'"{word}"'
    return shlex.quote(word)


def _console() -> Console:
    from rich.console import Console

    return Console()
