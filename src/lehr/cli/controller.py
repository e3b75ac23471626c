"""`lehr controller`: a user's own function, called with every asset of a type."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.cli.named_server import named_server
from lehr.cli.stored import named_store, partition_option, state_folder, state_option

if TYPE_CHECKING:
    from lehr.cli.ending import Ending
    from lehr.client import Reconciler
    from lehr.sdk.watch import Watchable

_FUNCTION = "reconcile"


@click.command(
    epilog="""
    \b
    Examples:
      lehr controller backups:reconcile --type shop.Backup
      lehr controller etcd_operator --type etcd.Cluster --state /var/lib/lehr
      LEHR_SERVER=http://127.0.0.1:8470 lehr controller backups --type shop.Backup

    The module is looked for in the current folder, too. Ends with 0 when asked to by SIGTERM.
    """
)
@click.argument("target", metavar="MODULE[:FUNCTION]")
@click.option(
    "--type", "types", metavar="TYPE", multiple=True, required=True, help="Of the assets; may be repeated."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Ask about so many assets at a time.",
)
@partition_option
@state_option
@click.option("-v", "--verbose", is_flag=True, help="Log all that happens.")
@click.option("--log-json", is_flag=True, help="Log in JSON.")
def controller(
    target: str,
    types: tuple[str, ...],
    workers: int,
    partition: str | None,
    state: Path | None,
    verbose: bool,
    log_json: bool,
) -> None:
    """Ask an async function, `reconcile` unless FUNCTION names another, about every asset of a type.

    It is asked when an asset changes, again, later and later, when it raises, and after as many seconds as it
    returns. See docs/how-to/write-a-controller.md.
    """
    from lehr.cli.ending import run_until_ended
    from lehr.cli.logs import configure_logs

    reconciler = load(target)
    configure_logs(verbose=verbose, as_json=log_json)
    place = named_server() or state_folder(state)
    run_until_ended(lambda ended: _control(ended, reconciler, place, types, partition, workers))


def load(target: str) -> Reconciler:
    """The function that `MODULE:FUNCTION` names.

    Raises:
        LehrError: it cannot be imported, or is not an async function.
    """
    import importlib
    import inspect
    import sys

    from lehr.base.errors import LehrError

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
            fix="name it as `import` does, and go to its folder; LEHR_TRACEBACK=1 shows where it fails",
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
    ended: Ending,
    reconciler: Reconciler,
    place: str | Path,
    types: tuple[str, ...],
    partition: str | None,
    workers: int,
) -> int:
    import asyncio

    from lehr import controllers

    store = named_store()
    with controllers.open_watch(place, partition, types=types, store=store) as watch:
        click.echo(f"asking {reconciler.__module__} about {', '.join(types)} of {place}", err=True)
        await _warn_of_nothing(watch, types)
        running = asyncio.create_task(controllers.run(reconciler, watch, workers=workers))
        ending = asyncio.create_task(ended.wait())
        await asyncio.wait((running, ending), return_when=asyncio.FIRST_COMPLETED)
        for task in (running, ending):
            task.cancel()
        results = await asyncio.gather(running, ending, return_exceptions=True)
    if not ended.is_set() and isinstance(results[0], Exception):
        raise results[0]
    return ended.code


async def _warn_of_nothing(watch: Watchable, types: tuple[str, ...]) -> None:
    """Report that there is nothing to ask about yet: a type may be misspelt, and then there never will be."""
    from lehr.base.errors import LehrError

    try:
        first = next(iter((await watch.list()).assets), None)
    except LehrError:
        return  # the watcher reports it, and tries again
    if first is None:
        click.echo(
            f"warning: no asset is of type {' or '.join(types)} yet; `lehr types` lists those that there are",
            err=True,
        )
