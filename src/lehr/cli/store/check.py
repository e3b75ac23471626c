"""`lehr store check`: whether the state is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli.output import output_option
from lehr.cli.stored import open_store, registry_of, state_folder, state_option

if TYPE_CHECKING:
    from lehr.model.asset import Partition
    from lehr.model.damage import Damage, TypesOf
    from lehr.model.types import Registry
    from lehr.sdk.store import Store


@click.command(
    epilog="""
    \b
    Examples:
      lehr store check
      lehr store check --state /var/lib/lehr -o json

    Ends with 1 when something is damaged.
    """
)
@output_option("text", "json")
@state_option
def check(form: str, state: Path | None) -> None:
    """Recompute every digest and compare all that is stored; name whatever is wrong.

    Nothing is changed, and a `lehr run` on the same state goes on meanwhile.
    """
    import msgspec

    from lehr.cli.output import show_document
    from lehr.cli.progress import bar
    from lehr.cli.words import counted

    folder = state_folder(state)
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
        show_document("json", [msgspec.to_builtins(damage) for damage in found])
    elif not found:
        print(f"nothing is wrong with the state in {folder}: {counted(looked_at, 'row')} looked at")
    if found:
        click.echo(
            f"{counted(len(found), 'thing is', 'things are')} wrong with the state in {folder}", err=True
        )
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
                    f"types of {partition} are not known, so indexes are not checked: {error}", err=True
                )
        return known[partition]

    return types
