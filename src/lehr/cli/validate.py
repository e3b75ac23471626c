"""`lehr validate`: all problems of a workspace, before it is published."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.text import listed
from lehr.cli import formatting, terminal
from lehr.cli.command import command
from lehr.cli.diagnostics import refuse, render, to_json
from lehr.cli.output import output_option
from lehr.cli.plugins_file import note_of_unasked, plugins_option
from lehr.cli.stored import has_store, named_store, open_store, workspace_state, workspace_state_option
from lehr.wiring import MEMO_FILE

if TYPE_CHECKING:
    from lehr.cli.working_tree import WorkingTree
    from lehr.sdk.store import Store
    from lehr.store.claims import HostClaims


@command()
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option(
    "--clean",
    is_flag=True,
    help="Build twice from scratch, with different hash seeds and memory layout, and compare the results.",
)
@output_option("text", "json")
@plugins_option
@workspace_state_option
def validate(directory: Path, clean: bool, form: str, plugins_file: Path | None, state: Path | None) -> None:
    """Check the workspace in DIR as its files are now, committed or not.

    If state exists, Lehr also checks the workspace against the newest incarnation (assets that disappear,
    types that change). It also checks the claims of other partitions on this host (lehr claims); if they
    cannot be read, that is a warning. With --plugins, it asks the validators of these plugins.

    With --clean, a generator that makes different output from the same input is an error, which names the
    first asset and field: its incarnations could not be reproduced. If state exists, the results that the
    control plane cached from earlier builds must match as well.

    Examples:
        lehr validate
        lehr validate ../intent -o json        for editors and CI
        lehr validate --plugins plugins.yaml   also ask the validators of plugins
        lehr validate --clean                  also check that the build is reproducible

    Exits with 1 if there are errors; with warnings only, it exits with 0.
    """
    import asyncio

    from lehr.cli.working_tree import look_at

    with beside(directory, state) as store:
        memo = workspace_state(directory, state) / MEMO_FILE
        kept = memo if clean and memo.exists() else None
        claims = claims_beside(directory, state)
        looking = partial(look_at, directory, store, twice=clean, memo=kept, claims=claims)
        tree = asyncio.run(_asking(looking, directory, plugins_file, state))
    show_notes(tree)
    if form == "json":
        print(to_json(tree.diagnostics))
    elif tree.diagnostics:
        print(render(tree.diagnostics, colour=terminal.coloured()))
    if tree.valid and form == "text":
        click.echo(_summary(tree, clean, kept), err=True)
    if not tree.valid:
        raise click.exceptions.Exit(1)


async def _asking(
    looking: Callable[..., Awaitable[WorkingTree]], directory: Path, plugins: Path | None, state: Path | None
) -> WorkingTree:
    """The result of `looking` with the validators of plugins, or with a note that they were not asked."""
    if plugins is None:
        tree = await looking()
        return tree._replace(
            notes=(*tree.notes, *note_of_unasked(plugins, workspace_state(directory, state)))
        )
    import msgspec

    from lehr.cli.deployment import deployment_of
    from lehr.cli.run_log import configure_logs
    from lehr.wiring.dry_runs import opened_validators

    configure_logs()
    deployment = deployment_of(str(directory), state, kind="directory")
    deployment = msgspec.structs.replace(deployment, plugins=plugins)
    async with opened_validators(deployment) as validators:
        return await looking(asked_validators=lambda: validators)


@contextlib.contextmanager
def beside(directory: Path, state: Path | None) -> Iterator[Store | None]:
    """The store of a workspace: that of `state`, or its own; None if there is none."""
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
    """Print notes that need no action on stderr."""
    for note in tree.notes:
        click.echo(f"note: {note}", err=True)


def require_valid(tree: WorkingTree) -> None:
    """If the workspace could not be published, show the problems on stderr and exit with 1."""
    if not tree.valid:
        refuse(tree.diagnostics)


def _summary(tree: WorkingTree, clean: bool, kept: Path | None) -> str:
    against = f", against {tree.newest.name}" if tree.newest else ""
    if tree.judged_by:
        against += f", judged by {listed(tree.judged_by)}"
    same = ", reproducible in two clean builds" if clean else ""
    same += " and in one with cached results" if kept else ""
    return (
        f"partition {tree.partition} is valid: {formatting.counted(len(tree.assets), 'asset')}{against}{same}"
    )
