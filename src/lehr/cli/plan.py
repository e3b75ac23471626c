"""`lehr plan`: a workspace against production."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lehr.base.errors import LehrError
from lehr.cli import terminal
from lehr.cli.main import DIFFERENCES
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.stored import registry, workspace_state_option

if TYPE_CHECKING:
    from lehr.dry_run.planner import Planned
    from lehr.model.asset import Partition
    from lehr.sdk.store import Store

_COLOURS = {
    "will be pushed": "green",
    "waits": "yellow",
    "needs approval": "red",
    "held": "yellow",
    "orphaned": "yellow",
    "not known": "red",
}


@click.command(
    epilog="""
    \b
    Examples:
      lehr plan                  the files here, committed or not
      lehr plan ../intent -o json
      lehr plan --exit-code      for scripts: 0 nothing to do, 3 something, 1 not known
    """
)
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--exit-code", is_flag=True, help=f"End with {DIFFERENCES} when production differs.")
@output_option("text", "json", "yaml")
@workspace_state_option
def plan(directory: Path, exit_code: bool, form: str, state: Path | None) -> None:
    """Compare the workspace in DIR with production, and show what Lehr would do. Nothing is changed.

    It runs the first turn of every asset as `lehr run` would after a start, with the files here as the newest
    incarnation, up to the push. Where several assets want what is left of a limit, they get it in the order
    of their ids.
    """
    import asyncio
    import gc

    gc.disable()  # nothing that a plan makes has circles: looking takes a fifth of the time
    planned = asyncio.run(_plan(directory, state))
    if form == "text":
        print_lines(_tell(planned))
    else:
        show_document(form, [_document(item) for item in planned])
    if any(item.fate == "not known" for item in planned):
        raise click.exceptions.Exit(1)
    if exit_code and any(item.diff is not None and not item.diff.empty for item in planned):
        raise click.exceptions.Exit(DIFFERENCES)


async def _plan(directory: Path, state: Path | None) -> list[Planned]:
    from lehr import wiring
    from lehr.base.chance import Chance
    from lehr.base.clock import SystemClock
    from lehr.cli.deployment import deployment_of
    from lehr.cli.diagnostics import render
    from lehr.cli.logs import configure_logs
    from lehr.cli.validate import beside, claims_beside, require_valid, show_notes
    from lehr.cli.working_tree import look_at
    from lehr.dry_run.candidate import CandidateIntent
    from lehr.dry_run.planner import Planner
    from lehr.publish.claims import NOT_COMPARED
    from lehr.sdk.runtime import Runtime

    configure_logs(verbose=False, as_json=False)
    with beside(directory, state) as there, contextlib.ExitStack() as opened:
        tree = await look_at(directory, there, registry(), claims=claims_beside(directory, state))
        require_valid(tree)
        show_notes(tree)
        for item in tree.diagnostics:
            if item.code == NOT_COMPARED:
                click.echo(render((item,), colour=terminal.coloured(sys.stderr)), err=True)
        assert tree.partition is not None
        _require_same(there, tree.partition)
        store = there or opened.enter_context(wiring.empty_store())
        clock = SystemClock()
        runtime = Runtime(tree.partition, store, tree.registry, clock, Chance())
        candidate = CandidateIntent(
            store.intent, tree.partition, tree.newest, tree.assets, tree.changes, tree.registry, clock.now()
        )
        plugins = wiring.plugins(deployment_of(str(directory), state, kind="directory"))
        try:
            return await Planner(runtime, candidate, plugins, wiring.checks()).plan()
        finally:
            for plugin in plugins:
                await plugin.close()


def _require_same(store: Store | None, partition: Partition) -> None:
    known = [] if store is None else store.intent.partitions()
    if known and partition not in known:
        raise LehrError(
            f"the workspace is of partition {partition}, and the state of {', '.join(known)}",
            code="CLI120",
            fix="name the right state with --state",
        )


def _tell(planned: list[Planned]) -> Iterator[str]:
    from lehr.cli.told import differences

    for item in planned:
        if item.fate == "as intended":
            continue
        goal = "" if item.goal == "present" else f", to be {item.goal}"
        fate = terminal.style(item.fate, _COLOURS[item.fate])
        yield f"{item.id} ({item.type}{goal}): {fate}"
        if item.fate != "will be pushed":
            yield f"  because    {terminal.printable(item.message or item.reason)}"
        yield from differences(item.diff)
    counts = Counter(str(item.fate) for item in planned)
    yield ", ".join(f"{count:,} {fate}" for fate, count in sorted(counts.items())) or "no assets"


def _document(item: Planned) -> dict[str, Any]:
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(item)
    return document
