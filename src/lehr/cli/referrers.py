"""`lehr get referrers`: references in the reverse direction."""

from __future__ import annotations

import click
import msgspec

from lehr.cli.command import command
from lehr.cli.complete import complete_asset
from lehr.cli.output import Column, Shape, bounded, show
from lehr.cli.stored import incarnation_option, list_options, open_reading, remote_store
from lehr.query.partition_view import Reading
from lehr.query.referrers import Behind, Referrer, behind_at, behind_now
from lehr.query.referrers import referrers as find
from lehr.wiring import registry_of


@command()
@click.argument("asset", shell_complete=complete_asset)
@click.option(
    "--field",
    metavar="FIELD",
    help="Only references through this payload field (parent, members.who) or JSON pointer.",
)
@click.option("--tree", is_flag=True, help="Also list indirect referrers.")
@incarnation_option("Incarnation: 3, hello@3, latest, previous, or a time.")
@list_options(None)
def referrers(
    asset: str, field: str | None, tree: bool, incarnation: str | None, limit: int | None, form: str
) -> None:
    """List the assets that refer to ASSET, and through which field; with --tree, also indirectly.

    Examples:
        lehr get referrers team/web
        lehr get referrers team/web --field parent --tree    all teams below it
        lehr get referrers db --field /addons/lehr.DependsOn/assets
        lehr get referrers db --incarnation shop@3 -o json
    """
    from lehr.query.asset_rows import known_asset

    with open_reading() as reading:
        id = known_asset(reading, asset)[0].id
        remote = remote_store(reading)
        if remote is not None:
            at = "latest" if incarnation is None else reading.incarnation(incarnation).name
            found = remote.referrers(reading.partition, id, field, at, tree=tree)
        else:
            behind = _behind(reading, incarnation)
            found = list(find(behind, id, field, most_deep=None if tree else 1))
        show(form, bounded(found, limit, "referrers"), _shape(tree), nothing="no referrers")


def _behind(reading: Reading, incarnation: str | None) -> Behind:
    if incarnation is None:
        return behind_now(reading)
    sequence = reading.incarnation(incarnation).sequence
    known = registry_of(reading.store, reading.partition, sequence)
    return behind_at(reading, sequence, known)


def _shape(tree: bool) -> Shape[Referrer]:
    columns: list[Column[Referrer]] = [
        Column("id", lambda item: item.id),
        Column("through", lambda item: item.path),
        Column("to", lambda item: item.to, wide=not tree),
        Column("depth", lambda item: str(item.depth), wide=not tree),
    ]
    return Shape(columns, msgspec.to_builtins, lambda item: item.id)
