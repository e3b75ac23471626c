"""What all commands have: examples in their `--help`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import click


class Command(click.Command):
    """A command whose docstring ends with `Examples:`, calls on a line each; paragraphs may follow them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help, _, rest = inspect.cleandoc(self.help or "").partition("\n\nExamples:\n")
        calls, gap, notes = rest.partition("\n\n")
        self.epilog = f"\b\nExamples:\n{textwrap.indent(textwrap.dedent(calls), '  ')}{gap}{notes}"


class Group(Command, click.Group):
    """A group of such commands."""

    command_class = Command


def command(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a `Command` from a function: `click.command` with the arguments of that class."""
    return click.command(name, cls=Command, **settings)
