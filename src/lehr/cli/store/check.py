"""`lehr store check`: detects damage of the store."""

from __future__ import annotations

import click

from lehr.base.errors import LehrError
from lehr.cli.command import command
from lehr.cli.output import output_option, show_document
from lehr.cli.stored import open_store, state_folder, state_option
from lehr.model.asset import Partition
from lehr.model.damage import Damage, TypesOf
from lehr.model.types import Registry
from lehr.sdk.store import Store
from lehr.wiring import registry_of


@command()
@output_option("text", "json")
@state_option
def check(form: str) -> None:
    """Recompute every digest, cross-check all rows, and report all damage.

    Changes nothing; a `lehr run` on the same state can continue.

    Examples:
        lehr store check
        lehr store check --state /var/lib/lehr -o json

    Exits with 1 if something is damaged.
    """
    from lehr.cli.formatting import counted
    from lehr.cli.progress import bar

    folder = state_folder()
    found: list[Damage] = []
    looked_at = 0
    with open_store(folder) as store, bar("rows") as progress:

        def advance(rows: int) -> None:
            nonlocal looked_at
            looked_at += rows
            progress.advance(rows)

        for damage in store.check(_types(store), progress.begin, advance):
            found.append(damage)
            if form == "text":
                _show(damage)
    if form == "json":
        show_document("json", found)
    elif not found:
        print(f"no damage found in {folder}: {counted(looked_at, 'row')} checked")
    if found:
        click.echo(f"{counted(len(found), 'problem')} found in {folder}", err=True)
        raise click.exceptions.Exit(1)


def _show(damage: Damage) -> None:
    from lehr.cli.terminal import printable, style

    print(f"{style('damaged:', 'red', bold=True)} {printable(damage.what)}")
    print(f"  why: {printable(damage.why)}")
    print(f"  fix: {printable(damage.fix)}")


def _types(store: Store) -> TypesOf:
    known: dict[Partition, Registry | None] = {}

    def types(partition: Partition) -> Registry | None:
        if partition not in known:
            try:
                known[partition] = registry_of(store, partition)
            except (LehrError, ValueError, TypeError) as error:
                known[partition] = None
                click.echo(
                    f"indexes of {partition} are not checked, because its types are not known: {error}",
                    err=True,
                )
        return known[partition]

    return types
