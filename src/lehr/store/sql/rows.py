"""What rows of incarnations stand for."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import Incarnation
from lehr.store.origins import origin_of

header_of = msgspec.json.Decoder(Incarnation).decode


def asset_of(row: tuple[Any, ...]) -> Asset:
    """The asset of a row that begins with id, type, body, digest, origin."""
    origin = origin_of(row[4])
    return Asset(
        AssetId(row[0]),
        row[1],
        row[2],
        Digest(row[3]),
        origin.position,
        origin.made_by,
        origin.annotated_by,
    )


def version_of(row: tuple[Any, ...]) -> Asset | None:
    """The same; None for a tombstone."""
    return None if row[3] is None else asset_of(row)
