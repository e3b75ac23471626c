"""`lehr test`: do policies do what they should?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lehr.cli import terminal, words
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.stored import registry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lehr.base.diagnostics import Diagnostic
    from lehr.dry_run.examples import Declared, Trial

_WORKSPACE_FILE = "lehr.yaml"


@click.command(
    epilog="""
    \b
    Examples:
      lehr test
      lehr test assets/policies.yaml
      lehr test -o json                    for continuous integration

    Ends with 1 when an example comes out otherwise than it says.
    """
)
@click.argument("path", metavar="[PATH]", default=".", type=click.Path(path_type=Path))
@output_option()
def test(path: Path, form: str) -> None:
    """Try the examples of policies: those of the workspace in PATH, or of a file or folder of policies.

    What a policy changes and makes in an example has to be what it says, whole; and it has to break exactly
    the rules that it names. A workspace is built for that, so that its own types and policies that generators
    make are known.
    """
    from lehr.base.errors import LehrError
    from lehr.dry_run.examples import tried, untried

    declared = _declared(path)
    _require_none(declared.diagnostics)
    if not declared.policies:
        raise LehrError(
            f"{path} declares no policy",
            code="CLI159",
            fix="declare an asset of type lehr.Policy, or name a file",
        )
    trials = list(tried(declared))
    show(form, trials, _shape(), nothing="no examples")
    for told in untried(declared, trials):
        click.echo(f"warning: {told}", err=True)
    failed = [trial for trial in trials if not trial.passed]
    of = words.counted(len(declared.policies), "policy", "policies")
    click.echo(f"{words.counted(len(trials), 'example')} of {of}, {len(failed)} failed", err=True)
    _require_none([item for trial in failed for item in trial.problems])


def _shape() -> Shape[Trial]:
    return Shape(
        (
            Column("POLICY", lambda item: item.policy),
            Column("EXAMPLE", lambda item: item.example),
            Column("RESULT", lambda item: "passed" if item.passed else "failed"),
            Column("EXPECTED", lambda item: ", ".join(item.expected) or "-"),
            Column("FOUND", lambda item: ", ".join(sorted({found.rule for found in item.found})) or "-"),
            Column("EFFECTS", lambda item: ", ".join(item.effects) or "-"),
            Column("AT", lambda item: str(item.at or "-"), wide=True),
        ),
        lambda item: {"passed": item.passed, **msgspec.to_builtins(item)},
        lambda item: f"{item.policy}: {item.example}",
    )


def _declared(path: Path) -> Declared:
    from lehr.dry_run.examples import declared_in_files

    if (path / _WORKSPACE_FILE).is_file():
        return _declared_in_workspace(path)
    return declared_in_files(path, registry())


def _declared_in_workspace(directory: Path) -> Declared:
    """The policies of a workspace; their examples are tried even if its assets break them."""
    import asyncio

    from lehr.cli.working_tree import look_at
    from lehr.dry_run.examples import Declared, locating
    from lehr.model.policy import POLICY
    from lehr.validate.policies import BROKEN, NO_ANSWER

    tree = asyncio.run(look_at(directory, None, registry()))
    others = tuple(item for item in tree.diagnostics if item.code not in (BROKEN, NO_ANSWER))
    policies = tuple(asset for asset in tree.assets.values() if asset.type == POLICY)

    def read(file: str) -> bytes | None:
        found = directory / file
        return found.read_bytes() if found.is_file() else None

    return Declared(policies, tree.registry, locating(read), others)


def _require_none(diagnostics: Iterable[Diagnostic]) -> None:
    """Show `diagnostics` on stderr, and end with 1 if one of them is an error."""
    from lehr.base.diagnostics import errors
    from lehr.cli.diagnostics import render

    found = list(diagnostics)
    if not errors(found):
        return
    click.echo(render(found, colour=terminal.coloured(sys.stderr)), err=True)
    raise click.exceptions.Exit(1)
