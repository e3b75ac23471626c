"""`lehr plugin test`: the conformance suites of asset plugins, checks and validators, over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.diagnostics import refuse
from lehr.cli.output import output_option, show_document
from lehr.cli.run_log import configure_logs
from lehr.cli.typed_file import FileType, read_typed

if TYPE_CHECKING:
    from lehr.testing.plugin_fixtures import Result

T = TypeVar("T")

_FILE = "test.yaml"
_CHECKS_FILE = "checks.yaml"
_VALIDATORS_FILE = "validators.yaml"


@command()
@click.argument("arguments", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--fixtures",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with test.yaml, which describes a small production, or cases: checks.yaml, validators.yaml.",
)
@click.option("--rule", "names", multiple=True, metavar="RULE", help="Only this rule. Can be repeated.")
@output_option("text", "json")
def test(arguments: tuple[str, ...], folder: Path, names: tuple[str, ...], form: str) -> None:
    """Start the plugin COMMAND, and hold it to the rules for asset plugins, checks and validators.

    Each rule starts the plugin again; those of asset plugins with an empty folder as its production.

    Examples:
        lehr plugin test ./routes --fixtures fixtures
        lehr plugin test node plugin.js --fixtures fixtures --rule push_converges
        lehr plugin test ./routes --fixtures fixtures -o json

    Options of the plugin's own follow `--`. Exits with 1 if a rule is broken. See `lehr help
    write-a-plugin-in-another-language` for the fixtures.
    """
    configure_logs()
    results = asyncio.run(_results(_suites(program_of(arguments), folder, names), form))
    broken = [result for result in results if result.broken]
    if form == "json":
        show_document(form, msgspec.to_builtins(results))
    rules = formatting.counted(len(results), "rule")
    click.echo(f"{rules} checked, {len(broken)} broken", err=form == "json")
    if broken:
        raise SystemExit(1)


def _suites(program: Sequence[str], folder: Path, names: Sequence[str]) -> list[AsyncIterator[Result]]:
    """The results of the suites that the folder has fixtures for."""
    from lehr.testing.check_fixtures import CheckFixtures, check_rules, checks_under_test
    from lehr.testing.plugin_fixtures import Fixtures, PluginUnderTest, rules_named
    from lehr.testing.validator_fixtures import ValidatorFixtures, validator_rules, validators_under_test

    others = [rule.__name__ for rule in (*check_rules(()), *validator_rules(()))]
    of_assets = rules_named(names, others)
    suites: list[AsyncIterator[Result]] = []
    with_checks, with_validators = ((folder / name).exists() for name in (_CHECKS_FILE, _VALIDATORS_FILE))
    if (folder / _FILE).exists() or not (with_checks or with_validators):
        fixtures = _fixtures(
            folder / _FILE, Fixtures, "write a mapping with `asset`, `changed` and `disturb`"
        )
        suites.append(PluginUnderTest(program, fixtures).results(of_assets))
    if with_checks:
        cases = _fixtures(folder / _CHECKS_FILE, CheckFixtures, "write a mapping with `cases`")
        suites.append(checks_under_test(program, cases).results(check_rules(names)))
    if with_validators:
        changes = _fixtures(folder / _VALIDATORS_FILE, ValidatorFixtures, "write a mapping with `cases`")
        suites.append(validators_under_test(program, changes).results(validator_rules(names)))
    return suites


async def _results(suites: Sequence[AsyncIterator[Result]], form: str) -> list[Result]:
    found = []
    for suite in suites:
        async for result in suite:
            found.append(result)
            if form == "text":
                _show(result)
    return found


def _show(result: Result) -> None:
    mark = "broken" if result.broken else "ok"
    click.echo(f"{mark:<7} {result.rule:<52} {result.seconds:6.1f} s")
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


def _fixtures(path: Path, kind: type[T], fix: str) -> T:
    """The fixtures in a file.

    Raises:
        LehrError: there is none. Exits if they are not valid.
    """
    from lehr.base.errors import LehrError, raised_as

    how = "write one; `lehr plugin new` shows how"
    with raised_as(LehrError, f"{path} cannot be read", code="CLI191", fix=how):
        content = path.read_bytes()
    read, problems = read_typed(str(path), content, kind, FileType("TST001", "fixtures", fix))
    if read is None:
        refuse(problems)
    return read[0]
