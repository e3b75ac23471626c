"""`lehr controller`: a user's own function, called with every asset of a type."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli.command import command
from lehr.cli.complete import complete_type
from lehr.cli.named_server import named_server, server_option
from lehr.cli.run_log import Form, configure_logs, errors_logged, log_options
from lehr.cli.shutdown import EndedError, Ending, run_until_ended
from lehr.cli.stored import named_partition, named_store, partition_option, state_folder, state_option

if TYPE_CHECKING:
    from lehr.client import Reconciler
    from lehr.sdk.watch import Watchable

_FUNCTION = "reconcile"


@command()
@click.argument("target", metavar="MODULE[:FUNCTION]")
@click.option(
    "--type",
    "types",
    metavar="TYPE",
    shell_complete=complete_type,
    multiple=True,
    required=True,
    help="Type of the assets. May be repeated.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Number of assets to reconcile at the same time.",
)
@partition_option
@server_option
@state_option
@log_options
def controller(target: str, types: tuple[str, ...], workers: int, verbose: bool, log_format: Form) -> None:
    """Call an async function, by default `reconcile`, for every asset of a type.

    It is called when an asset changes, again with growing delays if it raises, and after the number of
    seconds that it returns. See docs/how-to/write-a-controller.md.

    Examples:
        lehr controller backups:reconcile --type shop.Backup
        lehr controller etcd_operator --type etcd.Cluster --state /var/lib/lehr
        LEHR_SERVER=http://127.0.0.1:8470 lehr controller backups --type shop.Backup

    The module is also searched for in the current folder. Exits with 0 on SIGTERM.
    """
    from lehr.base.log import configure_now

    reconciler = load(target)
    configure_logs(log_format, verbose=verbose)
    configure_now()  # the function may log, too
    place = named_server() or state_folder()
    with errors_logged():
        run_until_ended(lambda ended: _control(ended, reconciler, place, types, workers))


def load(target: str) -> Reconciler:
    """The function that `MODULE:FUNCTION` names.

    Raises:
        LehrError: it cannot be imported, or is not an async function.
    """
    import importlib
    import inspect
    import sys

    module_name, _, name = target.partition(":")
    name = name or _FUNCTION
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise LehrError(
            f"the module {module_name} cannot be imported",
            code="CLI109",
            why=f"{type(error).__name__}: {error}",
            fix="name it as in an `import` statement, from its folder; LEHR_TRACEBACK=1 shows where it fails",
        ) from error
    found = getattr(module, name, None)
    if not inspect.iscoroutinefunction(found):
        has = [item for item, value in vars(module).items() if inspect.iscoroutinefunction(value)]
        raise LehrError(
            f"{module_name} has no async function {name}",
            code="CLI110",
            why=f"its async functions are {', '.join(has) or 'none'}",
            fix=f"write `async def {name}(request: lehr.client.Request) -> float | None`",
        )
    return found


async def _control(
    ended: Ending, reconciler: Reconciler, place: str | Path, types: tuple[str, ...], workers: int
) -> int:
    from lehr import controllers

    store = named_store()
    with controllers.open_watch(place, named_partition(), types=types, store=store) as watch:
        click.echo(f"running {reconciler.__module__} for {', '.join(types)} of {place}", err=True)
        await _warn_of_nothing(watch, types)
        with contextlib.suppress(EndedError):
            await ended.unless(controllers.run(reconciler, watch, workers=workers))
    return ended.code


async def _warn_of_nothing(watch: Watchable, types: tuple[str, ...]) -> None:
    """Warn that no asset has one of the types: a name may be misspelt."""
    try:
        first = next(iter((await watch.list()).assets), None)
    except LehrError:
        return  # the watcher reports it and retries
    if first is None:
        click.echo(
            f"warning: no asset of type {' or '.join(types)} yet; `lehr types` lists all types",
            err=True,
        )
