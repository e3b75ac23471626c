"""Groups of commands that are only imported when called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import click

from lehr.cli.command import Group


class Lazy(NamedTuple):
    """A command that is not imported yet: its location and its summary in `--help`."""

    place: str
    summary: str


class LazyGroup(Group):
    """Commands in sections, each imported when it is called."""

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, Lazy]],
        foreign: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Makes the group.

        Args:
            sections: all commands, in the order in which `--help` shows them.
            foreign: commands of other tools, and what to do in Lehr instead.
        """
        super().__init__(*args, **kwargs)
        self._foreign = foreign or {}
        self._sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in self._sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for section in self._sections.values():
            if cmd_name in section:
                module, _, attribute = section[cmd_name].place.partition(":")
                return cast(click.Command, getattr(importlib.import_module(module), attribute))
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.list_commands(ctx):
            if answer := self._foreign.get(name):
                raise click.UsageError(f"Lehr has no command {name!r}. {answer}", ctx)
            import difflib  # slow to import, and only needed for typos

            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise click.UsageError(f"Unknown command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, item.summary) for name, item in section.items()], col_max=12)
