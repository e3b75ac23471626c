"""What all commands have: examples in their `--help`, and options that may come before the command."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import click

from lehr.cli.global_options import understood, with_global_options
from lehr.cli.named_server import settle_server


class Command(click.Command):
    """A command whose docstring ends with `Examples:`, calls on a line each; paragraphs may follow them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.help, _, rest = inspect.cleandoc(self.help or "").partition("\n\nExamples:\n")
        calls, gap, notes = rest.partition("\n\n")
        self.epilog = f"\b\nExamples:\n{textwrap.indent(textwrap.dedent(calls), '  ')}{gap}{notes}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take global options from before the command."""
        if isinstance(self, click.Group):
            return super().parse_args(ctx, args)
        try:
            rest = super().parse_args(ctx, with_global_options(self, ctx, args))
        except click.NoSuchOption as error:
            raise understood(error, ctx) from None
        settle_server(ctx)
        return rest


class Group(Command, click.Group):
    """A group of such commands."""

    command_class = Command


def command(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a `Command` from a function: `click.command` with the arguments of that class."""
    return click.command(name, cls=Command, **settings)


def commands_of(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its full name, groups before their members. Imports all of them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{before}{name} ")
