"""Decodes rows of assets. Each is verified when read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lehr.model.asset import Asset
from lehr.model.incarnation import AssetChange
from lehr.sdk.store import Head, Row
from lehr.store.sql.tables import CURRENT, IMPORTED_ASSET, VERSION

IN_FORCE = f"""
    SELECT {VERSION.names("v")},
           CASE WHEN v.id = c.id AND v.type = c.type AND v.digest = c.digest THEN NULL ELSE c.id END
      FROM asset_current c"""  # noqa: S608 - here as below, our own names
HEAD = f"SELECT {CURRENT.names()} FROM asset_current"  # noqa: S608


def kept(rows: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """The rows of `VERSION.names()` themselves; none may be a tombstone.

    Raises:
        DamagedError: one of them is damaged; so do all other functions here.
    """
    for _number, _partition, id, _sequence, type, digest, body, origin in VERSION.read_all(rows):
        yield Row(id, type, body, digest, origin)


def version_of(row: tuple[Any, ...]) -> Asset | None:
    """The asset of a row of `VERSION.names()`; None for a tombstone."""
    _number, _partition, id, _sequence, type, digest, body, origin = VERSION.read(row)
    return None if digest is None else Row(id, type, body, digest, origin).asset()


def asset_of(row: tuple[Any, ...]) -> Asset:
    """The asset of a row that is not a tombstone."""
    asset = version_of(row)
    if asset is None:  # the statement excludes tombstones: the digest differs from the row's
        raise VERSION.damaged(row[:-1])
    return asset


def assets_of(rows: Iterable[tuple[Any, ...]]) -> Iterator[Asset]:
    """The asset of each."""
    return (row.asset() for row in kept(rows))


def in_force(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The versions in rows of `IN_FORCE`, which compares each with its entry of the current state.

    The database compares, since the values of three more columns would take as long as all other checks.
    """
    for row in rows:
        if row[9] is not None:
            raise CURRENT.damaged((row[1], row[9], row[4], row[5], None, row[0]))
        yield row[:9]


def heads_of(rows: Iterable[tuple[Any, ...]]) -> Iterator[Head]:
    """The asset of each row of the current state."""
    for _partition, id, type, digest, _bucket, _version in CURRENT.read_all(rows):
        yield Head(id, type, digest)


def changes_of(rows: Iterable[tuple[Any, ...]]) -> Iterator[AssetChange]:
    """Rows of an id and two versions of its asset, each a row of `VERSION.names()` or of nothing."""
    for id, *sides in rows:
        old, new = (None if side[0] is None else version_of(tuple(side)) for side in (sides[:9], sides[9:]))
        yield AssetChange(id, old, new)


def imported_of(rows: Iterable[tuple[Any, ...]]) -> Iterator[Asset]:
    """The asset of each row of `IMPORTED_ASSET.names()`."""
    for _name, id, type, digest, body, origin in IMPORTED_ASSET.read_all(rows):
        yield Row(id, type, body, digest, origin).asset()
