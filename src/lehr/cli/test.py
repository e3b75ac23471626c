"""`lehr test`: tests policies with their examples."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lehr.base.diagnostics import Diagnostic, errors
from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.output import Column, Shape, output_option, show
from lehr.model.declared_sources import WORKSPACE_FILE
from lehr.wiring import known_types

if TYPE_CHECKING:
    from lehr.dry_run.examples import Declared, Trial


@command()
@click.argument("path", metavar="[PATH]", default=".", type=click.Path(path_type=Path))
@output_option()
def test(path: Path, form: str) -> None:
    """Run the examples of the policies in PATH: a workspace, or a file or folder of policies.

    In each example, the policy must make exactly the changes and assets that the example lists, and the
    assets must break exactly the rules that it names. A workspace is built first, so that its own types and
    the policies made by generators are known.

    Examples:
        lehr test
        lehr test assets/policies.yaml
        lehr test -o json                    for CI

    Exits with 1 if an example fails.
    """
    from lehr.base.errors import LehrError
    from lehr.dry_run.examples import declared_in_files, tried, untried

    in_workspace = (path / WORKSPACE_FILE).is_file()
    declared = _declared_in_workspace(path) if in_workspace else declared_in_files(path, known_types())
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
    of = formatting.counted(len(declared.policies), "policy", "policies")
    click.echo(f"{formatting.counted(len(trials), 'example')} of {of}, {len(failed)} failed", err=True)
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


def _declared_in_workspace(directory: Path) -> Declared:
    """The policies of a workspace; their examples run even if its assets break the policies."""
    import asyncio

    from lehr.cli.working_tree import look_at
    from lehr.dry_run.examples import Declared, locating
    from lehr.model.policy import POLICY
    from lehr.validate.policies import BROKEN, NO_ANSWER

    tree = asyncio.run(look_at(directory, None))
    others = tuple(item for item in tree.diagnostics if item.code not in (BROKEN, NO_ANSWER))
    policies = tuple(asset for asset in tree.assets.values() if asset.type == POLICY)

    def read(file: str) -> bytes | None:
        found = directory / file
        return found.read_bytes() if found.is_file() else None

    return Declared(policies, tree.registry, locating(read), others)


def _require_none(diagnostics: Iterable[Diagnostic]) -> None:
    """Show `diagnostics` on stderr, and exit with 1 if one of them is an error."""
    from lehr.cli.diagnostics import refuse

    found = list(diagnostics)
    if errors(found):
        refuse(found)
