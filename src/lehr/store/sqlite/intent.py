"""Reads incarnations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.sdk.store import Head, Span
from lehr.store.sql.intent import Make, SqlIntent, require_kept, spanned
from lehr.store.sql.partitions import partition_row
from lehr.store.sql.rows import HEAD, IN_FORCE, heads_of, in_force
from lehr.store.sql.session import Session
from lehr.store.sql.tables import VERSION
from lehr.store.sqlite.connection import is_no_text

T = TypeVar("T")

_VERSION_AT = f"""
    SELECT {VERSION.names("v")}, i.pruned, i.pruned_checksum FROM (SELECT 1) one
    LEFT JOIN asset_version v ON v.number = (
        SELECT number FROM asset_version
        WHERE partition = :partition AND id = :id AND sequence <= :sequence ORDER BY sequence DESC LIMIT 1)
    LEFT JOIN incarnation i ON i.partition = :partition AND i.sequence = :sequence
"""  # noqa: S608 - here as below, made of our own names
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
    {IN_FORCE} {{index}}
    JOIN asset_version v ON v.number = c.version
    WHERE c.partition = :partition {{span}} {{types}} ORDER BY c.id
"""
_OF_TYPES = "AND c.type IN (SELECT value FROM json_each(:types))"
_OF_ONE_TYPE = "AND c.type = json_extract(:types, '$[0]')"  # the index is in order of ids
_BY_TYPE = "INDEXED BY asset_current_type"
_AMONG = "IN (SELECT value FROM json_each(:ids))"


class SqliteIntent(SqlIntent):
    """Over connections that are in no transaction: each query reads a snapshot of its own."""

    version_at = _VERSION_AT
    changed_between = _CHANGES

    def _row(self, db: Session, statement: str, key: AssetKey, sequence: int | None = None) -> Any:
        try:
            return super()._row(db, statement, key, sequence)
        except sqlite3.OperationalError as error:
            if not is_no_text(error):
                raise
            # A text in it is not UTF-8, so none of it can be read.
            shown = "?" if sequence is None else sequence
            raise VERSION.damaged((None, key.partition, key.id, shown, *[None] * 4)) from error

    def _made(
        self, make: Make[T], partition: Partition, sequence: int, types: Sequence[str] | None, span: Span
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
        with self._reading() as db:
            if sequence == _newest(db, partition):
                rows = db.execute(_current(types, span), wanted)
                # Another incarnation may have been published before the read of the rows began.
                if sequence == _newest(db, partition):
                    yield from make(in_force(rows))
                    return
            rows = db.execute(_AT.format(span=spanned(span, "", _AMONG)), wanted)
            # Checked after the read of the rows began: pruning from now on does not affect them.
            require_kept(db, partition, sequence)
            yield from make(row for row in rows if types is None or row[4] in types)

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        with self._reading() as db:
            if ids is None:
                yield from heads_of(db.execute(f"{HEAD} WHERE partition = ?", (partition,)))
                return
            for id in ids:
                yield from heads_of(db.execute(f"{HEAD} WHERE partition = ? AND id = ?", (partition, id)))


def _newest(db: Session, partition: Partition) -> int:
    return partition_row(db, partition).newest


def _current(types: Sequence[str] | None, span: Span) -> str:
    by_type = types is not None and span.ids is None
    of_types = "" if types is None else _OF_ONE_TYPE if len(types) == 1 else _OF_TYPES
    return _CURRENT.format(
        index=_BY_TYPE if by_type else "", span=spanned(span, "c.", _AMONG), types=of_types
    )
