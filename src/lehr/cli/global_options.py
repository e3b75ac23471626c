"""Options that may be written before the command or after it, with the same meaning.

Before the command they are options of `lehr` itself, which are passed on to the command.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


class _Option(NamedTuple):
    flags: tuple[str, ...]
    metavar: str
    help: str


_SERVER = "--server"
_OPTIONS = {
    "server": _Option((_SERVER,), "URL", "Read from the `lehr serve` at this URL instead of local state."),
    "state": _Option(("--state",), "PATH", "State folder."),
    "store": _Option(("--store",), "URL", "Store, if not a file."),
    "partition": _Option(("--partition",), "NAME", "Partition, if the state has several."),
    "form": _Option(("-o", "--output"), "FORMAT", "Output format."),
}
"""By the name of their parameter, which is the same in all commands."""


def global_options(function: Function) -> Function:
    """Adds the options to `lehr` itself, or to a group of commands."""
    for name, option in reversed(_OPTIONS.items()):
        function = click.option(*option.flags, name, metavar=option.metavar, help=option.help)(function)
    return function


def with_global_options(command: click.Command, context: click.Context, arguments: list[str]) -> list[str]:
    """The arguments of a command, and before them the options that were given before the command.

    Raises:
        UsageError: the command does not have the option, or it is given twice with different values.
    """
    before = _given_before(context)
    if not before:
        return arguments
    after, _rest, _order = command.make_parser(context).parse_args(list(arguments))
    for name, value in before.items():
        flag = _OPTIONS[name].flags[-1]
        if not any(flag in item.opts for item in command.params):
            raise not_taken(context, flag)
        if after.get(name, value) != value:
            message = f"{flag} is {value} before the command, but {after[name]} after it"
            raise click.UsageError(message, context)
    return [*(f"{_OPTIONS[name].flags[-1]}={value}" for name, value in before.items()), *arguments]


def _given_before(context: click.Context) -> dict[str, str]:
    """The options of `lehr` and of the groups on the way to a command.

    Raises:
        UsageError: one is given twice with different values.
    """
    found: dict[str, str] = {}
    above = context.parent
    while above is not None:
        for name, option in _OPTIONS.items():
            value = above.params.get(name)
            if value is not None and found.setdefault(name, value) != value:
                message = f"{option.flags[-1]} is {found[name]} in one place, and {value} in another"
                raise click.UsageError(message, context)
        above = above.parent
    return found


def understood(error: click.NoSuchOption, context: click.Context) -> click.UsageError:
    """The error to show when a command does not have an option."""
    return not_taken(context, _SERVER) if error.option_name == _SERVER else error


def not_taken(context: click.Context, flag: str) -> click.UsageError:
    """The error of a command that does not have a global option."""
    where = "; run it without, on the machine of `lehr run` or of the workspace" if flag == _SERVER else ""
    return click.UsageError(f"`{context.command_path}` does not take {flag}{where}", context)
