"""`lehr sim play`: scenarios as text, played under virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError, raised_as
from lehr.cli import terminal
from lehr.cli.command import command

if TYPE_CHECKING:
    from lehr.testing.sim.script_harness import ExtraTypes
    from lehr.testing.sim.script_play import Played


@command()
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--rewrite", is_flag=True, help="Rewrite the files with the actual output.")
@click.option(
    "--types", metavar="MODULE:NAME", help="An `ExtraTypes`: additional asset types and their production."
)
def play(files: tuple[Path, ...], rewrite: bool, types: str | None) -> int:
    """Play each script of FILES with the real control plane in a simulated world.

    Shows how the output differs from that in the script. Exits with 1 if it does, if an expectation is
    not met, or if an invariant is broken.

    Examples:
        lehr sim play scenarios/*.txt
        lehr sim play --rewrite scenarios/freeze.txt        accept its output as expected
        lehr sim play --types my_plugin.scenarios:TYPES x.txt with asset types of your own
    """
    extra = None if types is None else _extra_types(types)
    wrong = sum(not _played(path, extra, rewrite=rewrite) for path in files)
    click.echo(f"{len(files)} played, {wrong or 'none'} failed", err=True)
    return 1 if wrong else 0


def _played(path: Path, extra: ExtraTypes | None, *, rewrite: bool) -> bool:
    """Play one script, and return whether it passed."""
    from lehr.cli.diagnostics import render
    from lehr.testing.sim.script_play import play, read
    from lehr.testing.sim.suite import scratch, silence

    failures = (OSError, UnicodeDecodeError)
    with raised_as(LehrError, f"{path} cannot be read", code="SIM102", on=failures):
        script, diagnostics = read(path.read_text(), str(path))
    if diagnostics:
        click.echo(render(diagnostics, colour=terminal.coloured()))
        return False
    with scratch() as folder, silence():
        played = play(script, folder, extra)
    if rewrite:
        text = script.rewritten(played.outputs)
        if text != path.read_text():
            path.write_text(text)
            click.echo(f"{path} rewritten", err=True)
    return _print_outcome(path, played, rewritten=rewrite)


def _print_outcome(path: Path, played: Played, *, rewritten: bool) -> bool:
    difference = [] if rewritten else played.difference
    for line in difference:
        print(terminal.printable(line))
    for line in played.failures:
        print(terminal.printable(f"{path}: {line}"))
    return not difference and not played.failures


def _extra_types(place: str) -> ExtraTypes:
    import importlib

    from lehr.testing.sim.script_harness import ExtraTypes

    module, _, name = place.partition(":")
    what, failures = f"{place} does not exist", (ImportError, AttributeError, ValueError)
    with raised_as(LehrError, what, code="SIM103", fix="write MODULE:NAME", on=failures):
        found = getattr(importlib.import_module(module), name)
    if not isinstance(found, ExtraTypes):
        raise LehrError(f"{place} is not an ExtraTypes", code="SIM104", why=f"it is a {type(found).__name__}")
    return found
