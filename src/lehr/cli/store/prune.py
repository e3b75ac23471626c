"""`lehr store prune`: removes what is no longer needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli.stored import named_store, open_store, partition_option, running, state_folder, state_option
from lehr.cli.words import duration

if TYPE_CHECKING:
    from lehr.model.asset import Partition
    from lehr.model.writes import Prune, Pruned
    from lehr.sdk.store import Store

_LEAST_SECONDS = 600.0
"""A turn may have begun with what was the newest incarnation then, and take minutes."""

_LONGEST_SECONDS = 3600.0


@click.command(
    epilog="""
    \b
    Examples:
      lehr store prune --dry-run
      lehr store prune --keep 1000 --older-than 90d
      lehr store prune --keep 100 --older-than 7d --partition shop
    """
)
@click.option(
    "--keep", type=click.IntRange(1), default=1000, show_default=True, help="Newest incarnations that stay."
)
@click.option(
    "--older-than",
    "seconds",
    callback=duration,
    default="90d",
    show_default=True,
    metavar="TIME",
    help="What is younger stays: 90d, 12h.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@state_option
@partition_option
def prune(keep: int, seconds: float, dry_run: bool, state: Path | None, partition: str | None) -> None:
    """Remove old incarnations, decisions and operations.

    What is pinned, in production, being pushed, or the last to hold an asset that is not turned down
    yet, stays, whatever its age; so do the audit trail and the headers of all incarnations. A
    `lehr run` on the same state does it itself, in between its work.
    """
    if seconds < _LEAST_SECONDS:
        raise click.BadParameter("what is younger than 10m may be in use", param_hint="--older-than")
    folder = state_folder(state)
    if dry_run:
        _tell(folder, keep, seconds, partition)
    elif running(folder):
        from lehr.cli.commanding import command
        from lehr.control.messages import PruneHistory

        request = PruneHistory(keep=keep, seconds=seconds)
        print(command(folder, request, timeout=_LONGEST_SECONDS).message)
    else:
        _prune_here(folder, keep, seconds, partition)


def _wanted(store: Store, keep: int, seconds: float, partition: str | None) -> Prune:
    from lehr.base.clock import SystemClock
    from lehr.model.writes import Prune
    from lehr.query.partition_view import choose_partition

    chosen = choose_partition(store.intent.partitions(), partition)
    return Prune(chosen, keep, SystemClock().now() - seconds)


def _tell(folder: Path, keep: int, seconds: float, partition: str | None) -> None:
    from lehr.control.commands import told_of

    with open_store(folder) as store:
        print(f"dry run: {told_of(store.records.prunable(_wanted(store, keep, seconds, partition)))}")


def _prune_here(folder: Path, keep: int, seconds: float, partition: str | None) -> None:
    """No `lehr run` is there to do it."""
    from lehr import wiring
    from lehr.cli.progress import bar
    from lehr.control.commands import told_of
    from lehr.control.lock import exclusive
    from lehr.model.writes import Pruned

    with open_store(folder):
        pass  # there is something to prune
    with exclusive(folder), bar("rows") as progress:
        store = wiring.open_store(folder, named_store())
        try:
            wanted = _wanted(store, keep, seconds, partition)
            total = Pruned(rest=wanted)
            while total.rest is not None:
                [share] = store.commit([total.rest])
                total = total.plus(share)
                progress.advance(share.versions + share.decisions + share.operations)
            _audit(store, wanted.partition, keep, seconds, total)
        finally:
            store.close()
    print(told_of(total))


def _audit(store: Store, partition: Partition, keep: int, seconds: float, total: Pruned) -> None:
    import os
    import pwd

    from lehr.base.clock import SystemClock
    from lehr.control.commands import told_of
    from lehr.model.control import AuditEntry
    from lehr.model.writes import Audit

    try:
        actor = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        actor = f"uid {os.getuid()}"
    entry = AuditEntry(
        at=SystemClock().now(),
        actor=actor,
        command="prune",
        arguments={"keep": keep, "seconds": seconds},
        result=told_of(total),
    )
    store.commit([Audit(partition, entry)])
