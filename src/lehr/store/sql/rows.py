"""What rows of incarnations stand for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from lehr.model.asset import Asset
from lehr.model.incarnation import Incarnation
from lehr.store.interface import Row

header_of = msgspec.json.Decoder(Incarnation).decode


def kept(rows: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """The rows themselves."""
    return itertools.starmap(Row, rows)


def asset_of(row: tuple[Any, ...]) -> Asset:
    """The asset of a row that begins with id, type, body, digest, origin."""
    return Row(*row[:5]).asset()


def assets_of(rows: Iterable[tuple[Any, ...]]) -> Iterator[Asset]:
    """The asset of each."""
    return map(asset_of, rows)


def version_of(row: tuple[Any, ...]) -> Asset | None:
    """The same; None for a tombstone."""
    return None if row[3] is None else asset_of(row)
