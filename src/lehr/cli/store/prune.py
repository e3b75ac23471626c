"""`lehr store prune`: removes history that is no longer needed."""

from __future__ import annotations

from pathlib import Path

import click

from lehr.base.clock import SystemClock
from lehr.cli.command import command
from lehr.cli.formatting import duration
from lehr.cli.stored import (
    named_partition,
    open_store,
    partition_option,
    running,
    state_folder,
    state_option,
)
from lehr.control.commands import pruned_summary
from lehr.model.asset import Partition
from lehr.model.writes import Audit, Prune, Pruned
from lehr.query.partition_view import choose_partition
from lehr.sdk.store import Store

_LEAST_SECONDS = 600.0
"""A turn may still use the incarnation that was newest when it began, and take minutes."""

_LONGEST_SECONDS = 3600.0


@command()
@click.option(
    "--keep",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Number of newest incarnations to keep.",
)
@click.option(
    "--older-than",
    "seconds",
    callback=duration,
    default="90d",
    show_default=True,
    metavar="TIME",
    help="Keep everything younger than this, such as 90d or 12h.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would be removed.")
@state_option
@partition_option
def prune(keep: int, seconds: float, dry_run: bool) -> None:
    """Remove old incarnations, decisions and operations.

    Whatever their age, this keeps incarnations that are pinned, in production, being pushed, or the last to
    contain an asset that is not turned down yet; also the audit trail and the headers of all incarnations.
    If a `lehr run` is active on the state, it does the pruning between its other work.

    Examples:
        lehr store prune --dry-run
        lehr store prune --keep 1000 --older-than 90d
        lehr store prune --keep 100 --older-than 7d --partition shop
    """
    if seconds < _LEAST_SECONDS:
        raise click.BadParameter("history younger than 10m may be in use", param_hint="--older-than")
    folder = state_folder()
    if dry_run:
        _print_prunable(folder, keep, seconds)
    elif running(folder):
        from lehr.cli.run_requests import send_request
        from lehr.control.messages import PruneHistory

        request = PruneHistory(keep=keep, seconds=seconds)
        print(send_request(request, timeout=_LONGEST_SECONDS).message)
    else:
        _prune_here(folder, keep, seconds)


def _wanted(store: Store, keep: int, seconds: float) -> Prune:
    chosen = choose_partition(store.intent.partitions(), named_partition())
    return Prune(chosen, keep, SystemClock().now() - seconds)


def _print_prunable(folder: Path, keep: int, seconds: float) -> None:
    with open_store(folder) as store:
        print(f"dry run: {pruned_summary(store.records.prunable(_wanted(store, keep, seconds)))}")


def _prune_here(folder: Path, keep: int, seconds: float) -> None:
    """Prune in this process, if no `lehr run` is active."""
    from lehr.cli.progress import bar
    from lehr.control.lock import exclusive

    with open_store(folder):
        pass  # it exists, so there is something to prune
    with exclusive(folder), bar("rows") as progress, open_store(folder, read_only=False) as store:
        wanted = _wanted(store, keep, seconds)
        total = Pruned(rest=wanted)
        while total.rest is not None:
            [share] = store.commit([total.rest])
            total = total.plus(share)
            progress.advance(share.versions + share.decisions + share.operations)
        _audit(store, wanted.partition, keep, seconds, total)
    print(pruned_summary(total))


def _audit(store: Store, partition: Partition, keep: int, seconds: float, total: Pruned) -> None:
    import os

    from lehr.control.server import user_name
    from lehr.model.control import AuditEntry

    entry = AuditEntry(
        at=SystemClock().now(),
        actor=user_name(os.getuid()),
        command="prune",
        arguments={"keep": keep, "seconds": seconds},
        result=pruned_summary(total),
    )
    store.commit([Audit(partition, entry)])
