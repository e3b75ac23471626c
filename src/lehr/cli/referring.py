"""`lehr get referrers`: references, asked backwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lehr.cli.output import Column, Shape, bounded, show
from lehr.cli.stored import complete_asset, open_reading, registry_of, remote_store

if TYPE_CHECKING:
    from lehr.model.asset import AssetId
    from lehr.query.partition_view import Reading
    from lehr.query.referrers import Behind, Referrer

EPILOG = """
    \b
    Examples:
      lehr get referrers team/web
      lehr get referrers team/web --field parent --tree    all teams below it
      lehr get referrers db --field /addons/lehr.DependsOn/assets
      lehr get referrers db --incarnation shop@3 -o json
"""


def show_referrers(
    form: str,
    asset: str,
    field: str | None,
    tree: bool,
    incarnation: str | None,
    limit: int | None,
    state: Path | None,
    partition: str | None,
) -> None:
    """What refers to ASSET, through which field; with --tree, also what refers to that, all the way."""
    from lehr.query.asset_rows import known_asset
    from lehr.query.referrers import referrers

    with open_reading(state, partition) as reading:
        id = known_asset(reading, asset)[0].id
        remote = remote_store(reading)
        if remote is not None:
            at = "latest" if incarnation is None else reading.incarnation(incarnation).name
            found = remote.referrers(reading.partition, id, field, at, tree=tree)
        else:
            behind = _behind(reading, incarnation)
            found = list(referrers(behind, id, field, most_deep=None if tree else 1))
        show(form, bounded(found, limit, "referrers"), _shape(tree), nothing="no referrers")


def _behind(reading: Reading, incarnation: str | None) -> Behind:
    from lehr.model.asset import AssetKey
    from lehr.query.referrers import behind_at

    if incarnation is None:

        def behind(id: AssetId) -> list[tuple[AssetId, str]]:
            return reading.intent.mentioned_by(AssetKey(reading.partition, id))

        return behind
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


asset_argument = click.argument("asset", shell_complete=complete_asset)
field_option = click.option(
    "--field",
    metavar="FIELD",
    help="Only through this field of the payload, such as parent or members.who; or a JSON pointer.",
)
tree_option = click.option("--tree", is_flag=True, help="Also what refers to those, all the way.")
