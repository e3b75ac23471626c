"""Reading incarnations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from lehr.base.diagnostics import Position
from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.types import addon_names
from lehr.store.interface import Head
from lehr.store.sqlite.connection import translated

_header = msgspec.json.Decoder(Incarnation)
_origin = msgspec.json.Decoder(Position | None)

_VERSION_AT = (
    "SELECT id, type, body, digest, origin FROM asset_version"
    " WHERE partition = ? AND id = ? AND sequence <= ? ORDER BY sequence DESC LIMIT 1"
)
_LAST_VERSION = (
    "SELECT id, type, body, digest, origin, sequence FROM asset_version"
    " WHERE partition = ? AND id = ? AND digest IS NOT NULL ORDER BY sequence DESC LIMIT 1"
)
_VERSIONS = (
    "SELECT id, type, body, digest, origin, sequence FROM asset_version"
    " WHERE partition = ? AND id = ? ORDER BY sequence DESC"
)
_AT = """
    SELECT v.id, v.type, v.body, v.digest, v.origin FROM asset_version v
    JOIN (SELECT id, max(sequence) AS sequence FROM asset_version
          WHERE partition = :partition AND sequence <= :sequence GROUP BY id) newest
      ON v.partition = :partition AND v.id = newest.id AND v.sequence = newest.sequence
    WHERE v.digest IS NOT NULL ORDER BY v.id
"""
_CURRENT = """
    SELECT v.id, v.type, v.body, v.digest, v.origin FROM asset_current c
    JOIN asset_version v ON v.number = c.version
    WHERE c.partition = :partition ORDER BY c.id
"""
_CURRENT_OF_TYPES = """
    SELECT v.id, v.type, v.body, v.digest, v.origin FROM asset_current c INDEXED BY asset_current_type
    JOIN asset_version v ON v.number = c.version
    WHERE c.partition = :partition AND c.type IN (SELECT value FROM json_each(:types)) ORDER BY c.id
"""


class SqliteIntent:
    """`lehr.store.StoredIntent` over a connection of its own."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def newest(self, partition: Partition) -> Incarnation | None:
        with translated(self._path):
            row = self._db.execute(
                "SELECT header FROM incarnation WHERE partition = ? ORDER BY sequence DESC LIMIT 1",
                (partition,),
            ).fetchone()
            return _header.decode(row[0]) if row else None

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        with translated(self._path):
            row = self._db.execute(
                "SELECT header FROM incarnation WHERE partition = ? AND sequence = ?", (partition, sequence)
            ).fetchone()
            return _header.decode(row[0]) if row else None

    def incarnations(self, partition: Partition, limit: int) -> list[Incarnation]:
        with translated(self._path):
            rows = self._db.execute(
                "SELECT header FROM incarnation WHERE partition = ? ORDER BY sequence DESC LIMIT ?",
                (partition, limit),
            ).fetchall()
            return [_header.decode(row[0]) for row in rows]

    def partitions(self) -> list[Partition]:
        with translated(self._path):
            return [row[0] for row in self._db.execute("SELECT name FROM partition ORDER BY name")]

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        with translated(self._path):
            row = self._db.execute(_VERSION_AT, (key.partition, key.id, sequence)).fetchone()
            return _asset(row) if row and row[3] is not None else None

    def last(self, key: AssetKey) -> tuple[Asset, int] | None:
        with translated(self._path):
            row = self._db.execute(_LAST_VERSION, (key.partition, key.id)).fetchone()
            return (_asset(row[:5]), row[5]) if row else None

    def assets(
        self, partition: Partition, sequence: int, types: Sequence[str] | None = None
    ) -> Iterator[Asset]:
        wanted = {"partition": partition, "sequence": sequence, "types": msgspec.json.encode(types).decode()}
        with translated(self._path):
            if sequence == self._newest_sequence(partition):
                rows = self._db.execute(_CURRENT if types is None else _CURRENT_OF_TYPES, wanted)
                # Another incarnation may have been published before the rows were there to be read.
                if sequence == self._newest_sequence(partition):
                    yield from map(_asset, rows)
                    return
            for row in self._db.execute(_AT, wanted):
                if types is None or row[1] in types:
                    yield _asset(row)

    def _newest_sequence(self, partition: Partition) -> int:
        row = self._db.execute("SELECT newest FROM partition WHERE name = ?", (partition,)).fetchone()
        return row[0] if row else 0

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        with translated(self._path):
            if ids is None:
                rows = self._db.execute(
                    "SELECT id, type, digest FROM asset_current WHERE partition = ?", (partition,)
                )
                yield from (Head(*row) for row in rows)
                return
            for id in ids:
                row = self._db.execute(
                    "SELECT id, type, digest FROM asset_current WHERE partition = ? AND id = ?",
                    (partition, id),
                ).fetchone()
                if row:
                    yield Head(*row)

    def changes(self, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
        low, high = sorted((before, after))
        with translated(self._path):
            ids = self._db.execute(
                "SELECT DISTINCT id FROM asset_version WHERE partition = ? AND sequence > ? AND sequence <= ?"
                " ORDER BY id",
                (partition, low, high),
            ).fetchall()
        for (id,) in ids:
            key = AssetKey(partition, id)
            old, new = self.asset(key, before), self.asset(key, after)
            if _digest(old) != _digest(new):
                yield AssetChange(id, old, new)

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        with translated(self._path):
            row = self._db.execute(
                "SELECT min(sequence) FROM asset_version WHERE partition = ? AND id = ? AND sequence > ?",
                (key.partition, key.id, sequence),
            ).fetchone()
            return None if row[0] is None else int(row[0])

    def mentioned_by(self, key: AssetKey) -> list[tuple[AssetId, str]]:
        with translated(self._path):
            return self._db.execute(
                "SELECT source, path FROM mention WHERE partition = ? AND target = ? AND until IS NULL"
                " ORDER BY source, path",
                (key.partition, key.id),
            ).fetchall()

    def once_mentioned_by(self, key: AssetKey) -> list[AssetId]:
        with translated(self._path):
            rows = self._db.execute(
                "SELECT DISTINCT source FROM mention WHERE partition = ? AND target = ? ORDER BY source",
                (key.partition, key.id),
            ).fetchall()
            return [row[0] for row in rows]

    def claimed_by(self, partition: Partition, claim: str) -> list[AssetId]:
        with translated(self._path):
            rows = self._db.execute(
                "SELECT asset FROM claim_current WHERE partition = ? AND claim = ? ORDER BY asset",
                (partition, claim),
            ).fetchall()
            return [row[0] for row in rows]

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        with translated(self._path):
            rows = self._db.execute(_VERSIONS, (key.partition, key.id))
            oldest: int | None = None
            for row in rows:
                if row[3] is None:
                    continue  # a tombstone: the asset left intent with what it carried
                if addon not in addon_names(_asset(row[:5])):
                    break
                oldest = row[5]
        header = None if oldest is None else self.incarnation(key.partition, oldest)
        return None if header is None else header.created_at


def _asset(row: tuple[str, str, bytes, str, bytes]) -> Asset:
    return Asset(AssetId(row[0]), row[1], row[2], Digest(row[3]), _origin.decode(row[4]))


def _digest(asset: Asset | None) -> Digest | None:
    return None if asset is None else asset.digest
