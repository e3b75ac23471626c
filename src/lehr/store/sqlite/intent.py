"""Reading incarnations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.types import addon_names
from lehr.sdk.store import WHOLE, Head, Imported, PrunedError, Row, Span
from lehr.store.sql import mentions
from lehr.store.sql.headers import (
    any_pruned,
    header,
    headers,
    imported_headers,
    is_pruned,
    newest_header,
    shows_pruned,
)
from lehr.store.sql.partitions import partition_row
from lehr.store.sql.rows import (
    HEAD,
    asset_of,
    assets_of,
    changes_of,
    heads_of,
    imported_of,
    in_force,
    kept,
    version_of,
)
from lehr.store.sql.tables import IMPORTED_ASSET, INCARNATION, VERSION
from lehr.store.sqlite.connection import Connection, is_no_text, translated

T = TypeVar("T")

_ROW = VERSION.names()
_VERSION_AT = f"""
    SELECT {VERSION.names("v")}, i.pruned, i.pruned_checksum FROM (SELECT 1) one
    LEFT JOIN asset_version v ON v.number = (
        SELECT number FROM asset_version
        WHERE partition = ?1 AND id = ?2 AND sequence <= ?3 ORDER BY sequence DESC LIMIT 1)
    LEFT JOIN incarnation i ON i.partition = ?1 AND i.sequence = ?3
"""  # noqa: S608 - here as below, made of our own names
_LAST_VERSION = (
    f"SELECT {_ROW} FROM asset_version"  # noqa: S608
    " WHERE partition = ? AND id = ? AND digest IS NOT NULL ORDER BY sequence DESC LIMIT 1"
)
_VERSIONS = f"SELECT {_ROW} FROM asset_version WHERE partition = ? AND id = ? ORDER BY sequence DESC"  # noqa: S608
_IMPORTED = f"SELECT {IMPORTED_ASSET.names()} FROM imported_asset WHERE name = ? AND id > ? ORDER BY id"  # noqa: S608
_AT = f"""
    SELECT {VERSION.names("v")} FROM asset_version v
    JOIN (SELECT id, max(sequence) AS sequence FROM asset_version
          WHERE partition = :partition AND sequence <= :sequence {{span}} GROUP BY id) newest
      ON v.partition = :partition AND v.id = newest.id AND v.sequence = newest.sequence
    WHERE v.digest IS NOT NULL ORDER BY v.id
"""  # noqa: S608
_CHANGES = f"""
    SELECT touched.id, {VERSION.names("old")}, {VERSION.names("new")}
    FROM (SELECT DISTINCT id FROM asset_version INDEXED BY asset_version_sequence
          WHERE partition = :partition AND sequence > :low AND sequence <= :high) touched
    LEFT JOIN asset_version old ON old.number = (
        SELECT number FROM asset_version
        WHERE partition = :partition AND id = touched.id AND sequence <= :before
        ORDER BY sequence DESC LIMIT 1)
    LEFT JOIN asset_version new ON new.number = (
        SELECT number FROM asset_version
        WHERE partition = :partition AND id = touched.id AND sequence <= :after
        ORDER BY sequence DESC LIMIT 1)
    WHERE old.digest IS NOT new.digest ORDER BY touched.id
"""  # noqa: S608
_CURRENT = f"""
    SELECT {VERSION.names("v")}, c.id, c.type, c.digest FROM asset_current c {{index}}
    JOIN asset_version v ON v.number = c.version
    WHERE c.partition = :partition {{span}} {{types}} ORDER BY c.id
"""  # noqa: S608
_OF_TYPES = "AND c.type IN (SELECT value FROM json_each(:types))"
_OF_ONE_TYPE = "AND c.type = json_extract(:types, '$[0]')"  # the index is in order of ids
_BY_TYPE = "INDEXED BY asset_current_type"


class SqliteIntent:
    """`lehr.sdk.store.StoredIntent` over a connection of its own."""

    def __init__(self, db: Connection, path: Path) -> None:
        self._db = db
        self._path = path

    def newest(self, partition: Partition) -> Incarnation | None:
        with translated(self._path):
            return newest_header(self._db, partition)

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        with translated(self._path):
            return header(self._db, partition, sequence)

    def incarnations(self, partition: Partition, limit: int) -> list[Incarnation]:
        with translated(self._path):
            rows = self._db.execute(
                f"SELECT {INCARNATION.names()} FROM incarnation INDEXED BY incarnation_kept"  # noqa: S608
                " WHERE partition = ? AND pruned = 0 ORDER BY sequence DESC LIMIT ?",
                (partition, limit),
            ).fetchall()
            return list(headers(rows))

    def partitions(self) -> list[Partition]:
        with translated(self._path):
            return [row[0] for row in self._db.execute("SELECT name FROM partition ORDER BY name")]

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        with translated(self._path):
            row = self._row(_VERSION_AT, key, sequence)
            if row[0] is None or shows_pruned(key.partition, sequence, row[-2:]):
                self.require_kept(key.partition, sequence)
            return None if row[0] is None else version_of(row[:-2])

    def _row(self, statement: str, key: AssetKey, *sequence: int) -> Any:
        """The one row that a query returns for an asset.

        Raises:
            DamagedError: it has a text that is not UTF-8, so none of it can be read.
        """
        try:
            return self._db.execute(statement, (key.partition, key.id, *sequence)).fetchone()
        except sqlite3.OperationalError as error:
            if not is_no_text(error):
                raise
            shown = sequence[0] if sequence else "?"
            raise VERSION.damaged((None, key.partition, key.id, shown, *[None] * 4)) from error

    def require_kept(self, partition: Partition, sequence: int) -> None:
        with translated(self._path):
            if not is_pruned(self._db, partition, sequence):
                return
            oldest = self._db.execute(
                "SELECT min(sequence) FROM incarnation INDEXED BY incarnation_kept"
                " WHERE partition = ? AND pruned = 0",
                (partition,),
            ).fetchone()[0]
        raise PrunedError(partition, sequence, oldest)

    def last(self, key: AssetKey) -> tuple[Asset, int] | None:
        with translated(self._path):
            row = self._row(_LAST_VERSION, key)
            return (asset_of(row), row[3]) if row else None

    def versions(self, key: AssetKey, sequence: int) -> Iterator[tuple[int, Asset | None]]:
        with translated(self._path):
            for row in self._db.execute(_VERSIONS, (key.partition, key.id)):
                if row[3] <= sequence:
                    yield row[3], version_of(row)

    def assets(
        self,
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None = None,
        span: Span = WHOLE,
    ) -> Iterator[Asset]:
        return self._made(assets_of, partition, sequence, types, span)

    def rows(
        self,
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None = None,
        span: Span = WHOLE,
    ) -> Iterator[Row]:
        return self._made(kept, partition, sequence, types, span)

    def _made(
        self,
        make: Callable[[Iterable[tuple[Any, ...]]], Iterator[T]],
        partition: Partition,
        sequence: int,
        types: Sequence[str] | None,
        span: Span,
    ) -> Iterator[T]:
        wanted = {
            "partition": partition,
            "sequence": sequence,
            "types": msgspec.json.encode(types).decode(),
            "ids": msgspec.json.encode(span.ids and sorted(span.ids)).decode(),
            "after": span.after,
            "prefix": span.prefix,
            "end": span.end,
        }
        with translated(self._path):
            if sequence == self._newest_sequence(partition):
                rows = self._db.execute(_current(types, span), wanted)
                # Another incarnation may have been published before the read of the rows began.
                if sequence == self._newest_sequence(partition):
                    yield from make(in_force(rows))
                    return
            rows = self._db.execute(_AT.format(span=_spanned("", span)), wanted)
            # Checked after the read of the rows began: pruning from now on does not affect them.
            self.require_kept(partition, sequence)
            yield from make(row for row in rows if types is None or row[4] in types)

    def _newest_sequence(self, partition: Partition) -> int:
        return partition_row(self._db, partition).newest

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        with translated(self._path):
            if ids is None:
                yield from heads_of(self._db.execute(f"{HEAD} WHERE partition = ?", (partition,)))
                return
            for id in ids:
                yield from heads_of(
                    self._db.execute(f"{HEAD} WHERE partition = ? AND id = ?", (partition, id))
                )

    def changes(self, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
        low, high = sorted((before, after))
        asked = {"partition": partition, "low": low, "high": high, "before": before, "after": after}
        with translated(self._path):
            rows = self._db.execute(_CHANGES, asked)
            # Checked after the read of the rows began: pruning from now on does not affect them.
            for sequence in (before, after):
                self.require_kept(partition, sequence)
            yield from changes_of(rows)

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        with translated(self._path):
            row = self._db.execute(
                "SELECT min(sequence) FROM asset_version WHERE partition = ? AND id = ? AND sequence > ?",
                (key.partition, key.id, sequence),
            ).fetchone()
            return None if row[0] is None else int(row[0])

    def mentioned_by(self, key: AssetKey) -> list[tuple[AssetId, str]]:
        with translated(self._path):
            return mentions.mentioned_by(self._db, key)

    def once_mentioned_by(self, key: AssetKey) -> list[AssetId]:
        with translated(self._path):
            return mentions.once_mentioned_by(self._db, key)

    def claimed_by(self, partition: Partition, claim: str) -> list[AssetId]:
        with translated(self._path):
            return mentions.claimed_by(self._db, partition, claim)

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        with translated(self._path):
            rows = self._db.execute(_VERSIONS, (key.partition, key.id))
            oldest: int | None = None
            for row in rows:
                asset = version_of(row)
                if asset is None:
                    continue  # a tombstone: the asset left intent with its addons
                if addon not in addon_names(asset):
                    break
                if oldest is not None and any_pruned(self._db, key.partition, row[3], oldest):
                    break  # a pruned version may have lacked it
                oldest = row[3]
        came_with = None if oldest is None else self.incarnation(key.partition, oldest)
        return None if came_with is None else came_with.created_at

    def imported(self) -> list[Imported]:
        with translated(self._path):
            return imported_headers(self._db)

    def imported_assets(self, name: str, after: str = "") -> Iterator[Asset]:
        with translated(self._path):
            yield from imported_of(self._db.execute(_IMPORTED, (name, after)))


def _current(types: Sequence[str] | None, span: Span) -> str:
    by_type = types is not None and span.ids is None
    of_types = "" if types is None else _OF_ONE_TYPE if len(types) == 1 else _OF_TYPES
    return _CURRENT.format(index=_BY_TYPE if by_type else "", span=_spanned("c.", span), types=of_types)


def _spanned(table: str, span: Span) -> str:
    """The condition that the id is within `span`."""
    return "".join(
        f" AND {table}id {condition}"
        for condition, given in (
            ("IN (SELECT value FROM json_each(:ids))", span.ids is not None),
            (">= :prefix", span.prefix),
            ("< :end", span.prefix),
            ("> :after", span.after),
        )
        if given
    )
