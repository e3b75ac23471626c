"""`lehr help`: commands, topics and codes, from the pages of `docs`."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

import click

import lehr
from lehr.cli import terminal
from lehr.cli.command import command
from lehr.cli.complete import complete_topic
from lehr.cli.main import FOREIGN
from lehr.cli.pager import no_pager_option, page
from lehr.model.reason import Reason

_HERE = Path(lehr.__file__).parent


class Topic(NamedTuple):
    """The subject of a topic, and the page, or the section of a page, that explains it."""

    summary: str
    page: str
    section: str = ""


TOPICS: Mapping[str, Topic] = {
    "selectors": Topic("How to select assets.", "reference/cli", "Selectors"),
    "statuses": Topic("The statuses of assets, with their meaning.", "reference/reasons", "Statuses"),
    "reasons": Topic("Causes of each status, with remedies.", "reference/reasons", "Reasons"),
    "exit-codes": Topic("The exit codes of commands.", "reference/cli", "Exit codes"),
    "environment": Topic("Environment variables.", "reference/cli", "Environment variables"),
    "glossary": Topic("The words that Lehr uses in a sense of its own.", "reference/glossary"),
    "workspace": Topic("The files of a workspace, and lehr.yaml.", "reference/workspace"),
    "intent": Topic("Types of assets that declare files, links and commands.", "reference/types"),
    "processes": Topic("Processes: replicas, probes, restarts and reloads.", "reference/types-process"),
    "checks": Topic("Calendars, freezes, rate limits and dependencies.", "reference/checks"),
    "cel": Topic("The language of filters and policies.", "reference/cel"),
    "policies": Topic("Rules of your own for what may be published.", "how-to/write-a-policy"),
    "generators": Topic("Python functions that declare assets.", "how-to/write-a-generator"),
    "templates": Topic("Configuration files as Jinja2 templates.", "how-to/use-templates"),
    "sources": Topic("Intent from several repositories and databases.", "how-to/use-several-sources"),
    "secrets": Topic("Passwords and keys.", "how-to/keep-secrets"),
    "queries": Topic("How to find assets by their content.", "how-to/query"),
    "target-selection": Topic("Which units of a rollout are updated next.", "reference/target-selection"),
    "services": Topic("Lehr as a service of systemd.", "how-to/run-as-a-service"),
    "nginx": Topic("Websites with nginx.", "how-to/run-nginx"),
    "http": Topic("The HTTP API of lehr serve.", "reference/http"),
    "questions": Topic("Why it was so, and what would unblock it.", "how-to/ask-why"),
    "troubleshooting": Topic("Reactions to broken parts, and remedies.", "how-to/when-something-goes-wrong"),
}
"""Names that are not commands."""

_ALL = "topics"
"""The name of the list of topics."""

_CODES = ("reference/reasons", "reference/errors", "reference/diagnostics")
"""Pages with tables that begin with a reason or a code."""


@command(name="help")
@click.argument("names", metavar="[COMMAND|TOPIC|CODE]...", nargs=-1, shell_complete=complete_topic)
@no_pager_option
@click.pass_context
def help_(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Explain a command, a topic, or a reason or code that Lehr has shown; without one, list them.

    Examples:
        lehr help
        lehr help selectors
        lehr help get assets
        lehr help OutsideWindow
    """
    root = ctx.find_root()
    page(_lines(root, names))


def _lines(root: click.Context, names: tuple[str, ...]) -> Iterator[str]:
    if not names:
        yield f"{root.get_help()}\n"
    if not names or names == (_ALL,):
        formatter = root.make_formatter()
        with formatter.section("Topics of `lehr help`"):
            formatter.write_dl([(name, topic.summary) for name, topic in TOPICS.items()])
        yield formatter.getvalue().rstrip()
    elif names[0] in TOPICS:
        yield _shown(topic_text(TOPICS[names[0]]))
    elif rows := list(_rows(names[0])):
        yield from rows
    else:
        _require_known(root, names[0])
        yield _of_command(root, names)


def _require_known(root: click.Context, name: str) -> None:
    commands = cast(click.Group, root.command).list_commands(root)
    if name in commands or name in FOREIGN:
        return
    close = difflib.get_close_matches(name, [*commands, *TOPICS, *Reason], n=1)
    hint = f"Did you mean `lehr help {close[0]}`?" if close else "`lehr help` lists commands and topics."
    raise click.UsageError(f"There is no help for {name!r}. {hint}")


def _of_command(context: click.Context, names: tuple[str, ...]) -> str:
    for name in names:
        if isinstance(context.command, click.Group):
            known, found, _rest = context.command.resolve_command(context, [name])
            if found is not None:
                context = click.Context(found, info_name=known, parent=context)
    return context.get_help()


def page_text(name: str) -> str:
    """A page of `docs`, which is part of the package, or next to it in a repository."""
    places = (_HERE / "docs", _HERE.parents[1] / "docs")
    return next(path for place in places if (path := place / f"{name}.md").is_file()).read_text()


def topic_text(topic: Topic) -> str:
    """The page of a topic, or its section, as Markdown."""
    text = page_text(topic.page)
    if not topic.section:
        return text
    found = re.search(rf"^## {topic.section}\n.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, topic
    return found[0]


def _shown(text: str) -> str:
    """Markdown as it is, or laid out on a terminal."""
    if not sys.stdout.isatty():
        return text.rstrip()
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    console = Console(
        width=min(terminal.width() or 100, 100),
        force_terminal=terminal.coloured(),
        color_system="standard",
        theme=Theme({"markdown.code": "bold", "markdown.code_block": "none"}),
    )
    with console.capture() as captured:
        console.print(Markdown(text, hyperlinks=False))
    return captured.get().rstrip()


def _rows(code: str) -> Iterator[str]:
    """The row of a table that begins with `code`, each cell with its title."""
    for name in _CODES:
        titles: list[str] = []
        for line in page_text(name).splitlines():
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            titles = (titles or cells) if cells else []
            if cells and cells[0] == f"`{code}`":
                yield from (f"{title}: {cell}" for title, cell in zip(titles, cells, strict=True) if cell)
