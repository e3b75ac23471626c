"""`lehr plan`: compares a workspace with production."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from lehr.base.blocking import Inline
from lehr.base.errors import LehrError
from lehr.cli import patch_text
from lehr.cli.command import command
from lehr.cli.complete import complete_folder_or_selector, complete_selector
from lehr.cli.main import DIFFERENCES
from lehr.cli.metrics_file import metrics_option
from lehr.cli.output import output_option, show_text
from lehr.cli.pager import no_pager_option
from lehr.cli.plugins_file import note_of_unasked, plugins_option
from lehr.cli.selected_workspace import location_and_selector
from lehr.cli.stored import workspace_state, workspace_state_option
from lehr.model.selector import Selector

if TYPE_CHECKING:
    from asyncio import Runner, Task

    from lehr.cli.working_tree import WorkingTree
    from lehr.dry_run.intent_changes import IntentChanges
    from lehr.dry_run.planned import Planned
    from lehr.dry_run.planner import Planner
    from lehr.enforce.recovery import Recovery
    from lehr.model.asset import Partition
    from lehr.model.incarnation import Incarnation
    from lehr.sdk.generation import Generation
    from lehr.sdk.plugin import AssetPlugin, TextChange
    from lehr.sdk.store import Store
    from lehr.wiring import Deployment


@command()
@click.argument("location", metavar="[DIR]", required=False, shell_complete=complete_folder_or_selector)
@click.argument("selected", metavar="[SELECTOR]", required=False, shell_complete=complete_selector)
@click.option("--exit-code", is_flag=True, help=f"Exit with {DIFFERENCES} if production differs.")
@patch_text.full_diff_option
@no_pager_option
@output_option("text", "json", "yaml")
@metrics_option
@plugins_option
@workspace_state_option
def plan(
    location: str | None,
    selected: str | None,
    exit_code: bool,
    full_diff: bool,
    form: str,
    metrics: Path | None,
    plugins_file: Path | None,
    state: Path | None,
) -> None:
    """Show what Lehr would change in production for the workspace in DIR. Changes nothing.

    With SELECTOR, it shows only these assets, as `lehr run --once SELECTOR` would push them. A single
    argument is SELECTOR unless it is an existing folder or a path.

    Runs the first turn of every asset as `lehr run` would after a start, with the files in DIR as the newest
    incarnation, up to the push. If several assets compete for the rest of a limit, they get it in the order
    of their ids.

    The workspace must be valid, as `lehr validate` checks it. With --plugins, that includes the validators of
    these plugins, and assets of their types are compared.

    Text that would change is shown line by line, except where it may be a secret. JSON and YAML have the
    changes, but no text.

    Examples:
        lehr plan                  for the files here, committed or not
        lehr plan 'web/*,type=lehr.File'
        lehr plan web/nginx.conf --full-diff
        lehr plan ../intent -o json
        lehr plan --exit-code      for scripts: 0 no changes, 3 changes, 1 not known
    """
    import asyncio
    import gc

    gc.disable()  # a plan creates no cycles, and collection takes a fifth of the time
    directory, only = location_and_selector(location, selected)

    with asyncio.Runner() as runner:
        opened = contextlib.AsyncExitStack()
        try:
            opening = _planner(Path(directory), state, only, metrics, plugins_file)
            planner = runner.run(opened.enter_async_context(opening))
            planned = runner.run(planner.plan())
            if only is not None and not planned:
                raise LehrError(f"no asset is selected by {only}", code="CLI174", fix="see `lehr get assets`")
            show_text(form, _lines(runner, planner, planned, full=full_diff), lambda: planned)
        finally:
            runner.run(opened.aclose())
    if any(item.result == "not known" for item in planned):
        raise click.exceptions.Exit(1)
    if exit_code and any(item.diff is not None and not item.diff.empty for item in planned):
        raise click.exceptions.Exit(DIFFERENCES)


def _lines(runner: Runner, planner: Planner, planned: list[Planned], *, full: bool) -> Iterator[str]:
    """The plan as text. The texts of only one asset are in memory at any time."""
    from lehr.cli.plan_text import planned_lines, summary

    async def details(item: Planned) -> tuple[Sequence[TextChange], IntentChanges]:
        return await planner.texts(item), await planner.intent_changes(item)

    for item in planned:
        if item.result != "as intended":
            texts, intent = runner.run(details(item))
            yield from planned_lines(item, texts, intent, full=full)
    yield summary(planned)


@contextlib.asynccontextmanager
async def _planner(
    directory: Path,
    state: Path | None,
    only: Selector | None,
    metrics: Path | None,
    plugins_file: Path | None,
) -> AsyncIterator[Planner]:
    from msgspec.structs import replace

    from lehr import wiring
    from lehr.cli.deployment import deployment_of

    folder = workspace_state(directory, state)
    generation = wiring.generation(state=folder, keeps=False)
    await generation.begin()  # first of all: it takes as long as everything that is imported here
    try:
        deployment = replace(
            deployment_of(str(directory), state, kind="directory"),
            metrics=metrics,
            plugins=plugins_file,
        )
        async with _planner_with(generation, deployment, directory, state, only) as planner:
            yield planner
    finally:
        await generation.close()


@contextlib.asynccontextmanager
async def _planner_with(
    generation: Generation,
    deployment: Deployment,
    directory: Path,
    state: Path | None,
    only: Selector | None,
) -> AsyncIterator[Planner]:
    import asyncio

    from lehr import wiring
    from lehr.base.chance import Chance
    from lehr.base.clock import SystemClock
    from lehr.cli.diagnostics import show
    from lehr.cli.run_log import configure_logs
    from lehr.cli.validate import beside, claims_beside, require_valid, show_notes
    from lehr.cli.working_tree import look_at
    from lehr.dry_run.candidate import CandidateIntent
    from lehr.dry_run.planner import Planner
    from lehr.publish.claims import NOT_COMPARED
    from lehr.sdk.runtime import Runtime
    from lehr.validate import UNANSWERED

    configure_logs()
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as opened:
        there = opened.enter_context(beside(directory, state))
        claims = claims_beside(directory, state)
        plugins: list[AssetPlugin] = []
        asked = partial(wiring.remote_validators, plugins)
        looking = asyncio.create_task(
            look_at(directory, there, generation=generation, claims=claims, asked_validators=asked)
        )
        opened.push_async_callback(_abandon, looking)
        await clock.sleep(0)
        # The worker generates during what follows.
        plugins += wiring.plugins(deployment)
        for plugin in plugins:
            opened.push_async_callback(plugin.close)
        known = _recovery_at_newest(there)
        tree = await looking
        unasked = note_of_unasked(deployment.plugins, deployment.state)
        tree = tree._replace(notes=(*tree.notes, *unasked))
        ending = asyncio.create_task(generation.close())
        require_valid(tree)
        show_notes(tree)
        for item in tree.diagnostics:
            if item.code == NOT_COMPARED or item.code in UNANSWERED:
                show((item,))
        assert tree.partition is not None
        _require_same(there, tree.partition)
        store = there or opened.enter_context(wiring.empty_store())
        looks = wiring.looks(deployment, patience=None)
        opened.push_async_callback(looks.close)
        runtime = Runtime(tree.partition, store, tree.registry, clock, Chance(), Inline(), only, looks)
        candidate = CandidateIntent(
            store.intent, tree.partition, tree.newest, tree.assets, tree.changes, tree.registry, clock.now()
        )
        try:
            await wiring.described(plugins)
            recovery = known.recovery if known is not None and known.newest == candidate.newest else None
            yield Planner(runtime, candidate, plugins, wiring.checks(plugins), recovery=recovery)
        finally:
            await ending


async def _abandon(looking: Task[WorkingTree]) -> None:
    import asyncio

    looking.cancel()
    await asyncio.wait((looking,))


class _RecoveryAt(NamedTuple):
    """Unfinished work at the newest incarnation."""

    newest: Incarnation
    recovery: Recovery


def _recovery_at_newest(store: Store | None) -> _RecoveryAt | None:
    """Unfinished work, as the planner would find it if the workspace is the newest incarnation, unchanged."""
    from lehr import wiring
    from lehr.enforce.recovery import recover

    if store is None:
        return None
    try:
        for partition in store.intent.partitions():
            if (newest := store.intent.newest(partition)) is not None:
                registry = wiring.registry_of(store, partition)
                return _RecoveryAt(newest, recover(store.intent, store.records, registry, partition))
    except LehrError:
        pass  # the plan reports what is damaged
    return None


def _require_same(store: Store | None, partition: Partition) -> None:
    known = [] if store is None else store.intent.partitions()
    if known and partition not in known:
        raise LehrError(
            f"the workspace belongs to partition {partition}, but the state to {', '.join(known)}",
            code="CLI120",
            fix="name the matching state with --state",
        )
