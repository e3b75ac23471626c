"""`lehr doctor`: whether this machine has what Lehr needs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import click

from lehr import wiring
from lehr.cli import terminal
from lehr.cli.command import command
from lehr.cli.output import output_option, show_text
from lehr.cli.stored import found_state, named_store, open_store, running, state_option
from lehr.control.prerequisites import CheckResult, Level, of_machine, of_state


@command()
@output_option("text", "json", "yaml")
@state_option
def doctor(form: str) -> None:
    """Check that this machine has what Lehr needs, and print how to fix problems.

    Examples:
        lehr doctor
        lehr doctor --state /var/lib/lehr -o json

    Exits with 1 if something that Lehr requires is missing.
    """
    folder = found_state()
    findings = of_machine()
    if folder is None:
        findings.append(CheckResult("state", Level.OK, "none yet; `lehr run` creates it"))
    else:
        elsewhere = named_store() is not None
        place = partial(wiring.store_place, folder, named_store())
        findings += of_state(folder, partial(open_store, folder), place, elsewhere, running)
    show_text(form, (line for finding in findings for line in _lines(finding)), lambda: findings)
    if any(finding.level is Level.FAIL for finding in findings):
        raise click.exceptions.Exit(1)


def _lines(finding: CheckResult) -> Iterator[str]:
    colour = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}[finding.level]
    yield f"{terminal.style(finding.level.ljust(4), colour)}  {finding.name.ljust(12)}  {finding.detail}"
    if finding.fix:
        yield f"      {' ' * 12}  fix: {finding.fix}"
