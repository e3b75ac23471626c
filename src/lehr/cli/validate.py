"""`lehr validate`: every problem of a workspace, before anybody else sees it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli import terminal, words
from lehr.cli.output import output_option
from lehr.cli.stored import (
    has_store,
    named_store,
    open_store,
    registry,
    workspace_state,
    workspace_state_option,
)
from lehr.wiring import MEMO_FILE

if TYPE_CHECKING:
    from lehr.cli.working_tree import WorkingTree
    from lehr.sdk.store import Store
    from lehr.store.claims import HostClaims


@click.command(
    epilog="""
    \b
    Examples:
      lehr validate
      lehr validate ../intent -o json      for editors and continuous integration
      lehr validate --clean                also that another build comes out the same

    Ends with 1 when there are errors; warnings alone are fine.
    """
)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option(
    "--clean",
    is_flag=True,
    help="Build from nothing, twice, in processes that order and place things differently, and compare.",
)
@output_option("text", "json")
@workspace_state_option
def validate(directory: Path, clean: bool, form: str, state: Path | None) -> None:
    """Check the workspace in DIR as its files are now, committed or not.

    Where there is a state, also what only shows against its newest incarnation is checked: assets
    that disappear, and types that change. The register of claims says what other partitions of this
    host hold (lehr claims); if it cannot be read, that is a warning.

    With --clean, what a generator makes differently of the same input is an error that names the first
    asset and field. Such a generator makes incarnations that nobody can make again. What a control plane
    has kept of earlier builds, where there is a state, must be what is made now.
    """
    import asyncio

    from lehr.cli.diagnostics import render, to_json
    from lehr.cli.working_tree import look_at

    with beside(directory, state) as store:
        memo = workspace_state(directory, state) / MEMO_FILE
        kept = memo if clean and memo.exists() else None
        claims = claims_beside(directory, state)
        looking = look_at(directory, store, registry(), twice=clean, memo=kept, claims=claims)
        tree = asyncio.run(looking)
    show_notes(tree)
    if form == "json":
        print(to_json(tree.diagnostics))
    elif tree.diagnostics:
        print(render(tree.diagnostics, colour=terminal.coloured()))
    if tree.valid and form == "text":
        click.echo(_said(tree, clean, kept), err=True)
    if not tree.valid:
        raise click.exceptions.Exit(1)


@contextlib.contextmanager
def beside(directory: Path, state: Path | None) -> Iterator[Store | None]:
    """The store that belongs to a workspace: that of `state`, or its own; None for none."""
    folder = workspace_state(directory, state)
    if state is None and not has_store(folder):
        yield None
        return
    with open_store(folder) as store:
        yield store


def claims_beside(directory: Path, state: Path | None) -> list[HostClaims]:
    """Claims of partitions on this host, to compare a workspace with; read-only."""
    from lehr import wiring
    from lehr.cli.deployment import deployment_of

    deployment = deployment_of(str(directory), state, kind="directory")
    return wiring.claims_to_look_at(deployment, named_store())


def show_notes(tree: WorkingTree) -> None:
    """Notify people, on stderr, of things that need no action."""
    for note in tree.notes:
        click.echo(f"note: {note}", err=True)


def require_valid(tree: WorkingTree) -> None:
    """End with 1, having shown the problems on stderr, if the workspace could not be published."""
    from lehr.cli.diagnostics import render

    if tree.valid:
        return
    click.echo(render(tree.diagnostics, colour=terminal.coloured(sys.stderr)), err=True)
    raise click.exceptions.Exit(1)


def _said(tree: WorkingTree, clean: bool, kept: Path | None) -> str:
    against = f", against {tree.newest.name}" if tree.newest else ""
    same = ", the same in two builds from nothing" if clean else ""
    same += " and in one with what was kept" if kept else ""
    return f"partition {tree.partition} is valid: {words.counted(len(tree.assets), 'asset')}{against}{same}"
