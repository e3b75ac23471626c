"""What rows of incarnations stand for."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.model.asset import Asset
from lehr.model.incarnation import Incarnation
from lehr.store.interface import Row

header_of = msgspec.json.Decoder(Incarnation).decode


def kept(row: tuple[Any, ...]) -> Row:
    """The row itself."""
    return Row(*row)


def asset_of(row: tuple[Any, ...]) -> Asset:
    """The asset of a row that begins with id, type, body, digest, origin."""
    return kept(row[:5]).asset()


def version_of(row: tuple[Any, ...]) -> Asset | None:
    """The same; None for a tombstone."""
    return None if row[3] is None else asset_of(row)
