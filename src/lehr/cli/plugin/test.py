"""`lehr plugin test`: the conformance suite of asset plugins, over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.diagnostics import refuse
from lehr.cli.output import output_option, show_document
from lehr.cli.run_log import configure_logs
from lehr.cli.typed_file import FileType, read_typed

if TYPE_CHECKING:
    from lehr.testing.conformance.asset_plugin import Rule
    from lehr.testing.plugin_fixtures import Fixtures, PluginUnderTest, Result

_FILE = "test.yaml"


@command()
@click.argument("arguments", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--fixtures",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with test.yaml, which describes a small production.",
)
@click.option("--rule", "names", multiple=True, metavar="RULE", help="Only this rule. Can be repeated.")
@output_option("text", "json")
def test(arguments: tuple[str, ...], folder: Path, names: tuple[str, ...], form: str) -> None:
    """Start the plugin COMMAND, and hold it to the rules that every asset plugin must keep.

    Each rule starts the plugin again, with an empty folder as its production.

    Examples:
        lehr plugin test ./routes --fixtures fixtures
        lehr plugin test node plugin.js --fixtures fixtures --rule push_converges
        lehr plugin test ./routes --fixtures fixtures -o json

    Options of the plugin's own follow `--`. Exits with 1 if a rule is broken. See `lehr help
    write-a-plugin-in-another-language` for the fixtures.
    """
    from lehr.testing.plugin_fixtures import PluginUnderTest, rules_named

    configure_logs()
    plugin = PluginUnderTest(program_of(arguments), _fixtures(folder))
    results = asyncio.run(_results(plugin, rules_named(names), form))
    broken = [result for result in results if result.broken]
    if form == "json":
        show_document(form, msgspec.to_builtins(results))
    rules = formatting.counted(len(results), "rule")
    click.echo(f"{rules} checked, {len(broken)} broken", err=form == "json")
    if broken:
        raise SystemExit(1)


async def _results(plugin: PluginUnderTest, rules: Sequence[Rule], form: str) -> list[Result]:
    found = []
    async for result in plugin.results(rules):
        found.append(result)
        if form == "text":
            _show(result)
    return found


def _show(result: Result) -> None:
    mark = "broken" if result.broken else "ok"
    click.echo(f"{mark:<7} {result.rule:<40} {result.seconds:6.1f} s")
    if result.broken:
        click.echo(f"        The rule: {result.about}")
        click.echo(f"        Broken:   {result.broken}")
        for line in result.log:
            click.echo(f"        | {line}")


def program_of(arguments: Sequence[str]) -> list[str]:
    """The command, whose program may be relative to this folder."""
    program = Path(arguments[0])
    return [
        str(program.absolute()) if len(program.parts) > 1 or program.exists() else str(program),
        *arguments[1:],
    ]


def _fixtures(folder: Path) -> Fixtures:
    """The fixtures in a folder.

    Raises:
        LehrError: it has none. Exits if they are not valid.
    """
    from lehr.base.errors import LehrError, raised_as
    from lehr.testing.plugin_fixtures import Fixtures

    path = folder / _FILE
    fix = "write one; `lehr plugin new` shows how"
    with raised_as(LehrError, f"{path} cannot be read", code="CLI191", fix=fix):
        content = path.read_bytes()
    about = FileType("TST001", "fixtures", "write a mapping with `asset`, `changed` and `disturb`")
    read, problems = read_typed(str(path), content, Fixtures, about)
    if read is None:
        refuse(problems)
    return read[0]
