"""`lehr sim play`: scenarios as text, played under virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli import terminal

if TYPE_CHECKING:
    from lehr.testing.sim.script_play import Played
    from lehr.testing.sim.script_stage import Cast


@click.command(
    epilog="""
    \b
    Examples:
      lehr sim play scenarios/*.txt
      lehr sim play --rewrite scenarios/freeze.txt        take what it says as what it is to say
      lehr sim play --cast my_plugin.scenarios:CAST x.txt with asset types of your own
    """
)
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--rewrite", is_flag=True, help="Write the output anew into the files.")
@click.option("--cast", metavar="MODULE:NAME", help="A `Cast`: further asset types, and their production.")
def play(files: tuple[Path, ...], rewrite: bool, cast: str | None) -> int:
    """Play each script of FILES with the real control plane in a simulated world.

    Shows how what happens differs from what the script expects. Exits with 1 if it does, if an
    expectation does not come true, or if an invariant is broken.
    """
    chosen = None if cast is None else _cast(cast)
    wrong = sum(not _played(path, chosen, rewrite=rewrite) for path in files)
    click.echo(f"{len(files)} played, {wrong or 'none'} went wrong", err=True)
    return 1 if wrong else 0


def _played(path: Path, cast: Cast | None, *, rewrite: bool) -> bool:
    """Play one script, and return whether all went well."""
    from lehr.cli.diagnostics import render
    from lehr.testing.sim.script_play import play, read
    from lehr.testing.sim.suite import scratch, silence

    try:
        script, diagnostics = read(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise LehrError(f"{path} cannot be read", code="SIM102", why=str(error)) from error
    if diagnostics:
        click.echo(render(diagnostics, colour=terminal.coloured()))
        return False
    with scratch() as folder, silence():
        played = play(script, folder, cast)
    if rewrite:
        text = script.rewritten(played.outputs)
        if text != path.read_text():
            path.write_text(text)
            click.echo(f"{path} is written anew", err=True)
    return _told(path, played, rewritten=rewrite)


def _told(path: Path, played: Played, *, rewritten: bool) -> bool:
    difference = [] if rewritten else played.difference
    for line in difference:
        print(terminal.printable(line))
    for line in played.failures:
        print(terminal.printable(f"{path}: {line}"))
    return not difference and not played.failures


def _cast(place: str) -> Cast:
    import importlib

    from lehr.testing.sim.script_stage import Cast

    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise LehrError(
            f"{place} is not there", code="SIM103", why=str(error), fix="write MODULE:NAME"
        ) from error
    if not isinstance(found, Cast):
        raise LehrError(f"{place} is no Cast", code="SIM104", why=f"it is a {type(found).__name__}")
    return found
