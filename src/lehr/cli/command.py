"""What all commands have: examples in their `--help`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import click


class Command(click.Command):
    """A command whose `--help` ends with examples."""

    def __init__(self, *args: Any, examples: str, notes: str = "", **kwargs: Any) -> None:
        """`examples` are calls, one on each line; `notes` are paragraphs that follow them."""
        super().__init__(*args, **kwargs)
        calls = textwrap.indent(inspect.cleandoc(examples), "  ")
        self.epilog = f"\b\nExamples:\n{calls}\n\n{inspect.cleandoc(notes)}".rstrip()


class Group(Command, click.Group):
    """A group of such commands."""

    command_class = Command


def command(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a `Command` from a function: `click.command` with the arguments of that class."""
    return click.command(name, cls=Command, **settings)
