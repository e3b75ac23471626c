"""What rows of incarnations stand for."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import Incarnation
from lehr.store.origins import origin_of

header_of = msgspec.json.Decoder(Incarnation).decode


def asset_of(id: str, type: str, body: bytes, digest: str, origin: bytes | None) -> Asset:
    """An asset from the columns of its version."""
    made = origin_of(origin)
    return Asset(AssetId(id), type, body, Digest(digest), made.position, made.made_by, made.annotated_by)


def version_of(row: tuple[Any, ...]) -> Asset | None:
    """The asset of a row that begins with id, type, body, digest, origin; None for a tombstone."""
    return None if row[3] is None else asset_of(*row[:5])
