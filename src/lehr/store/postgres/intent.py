"""Reading incarnations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from lehr.model.asset import AssetId, Partition
from lehr.sdk.store import Head, Span
from lehr.store.sql.intent import Make, SqlIntent, require_kept, spanned
from lehr.store.sql.partitions import partition_row
from lehr.store.sql.rows import HEAD, IN_FORCE, heads_of, in_force
from lehr.store.sql.tables import CURRENT, VERSION

T = TypeVar("T")

_IDS_AT_ONCE = 1000

_ROW = VERSION.names()
_VERSION_AT = f"""
    SELECT {VERSION.names("v")}, i.pruned, i.pruned_checksum
    FROM (SELECT 1) one
    LEFT JOIN incarnation i ON i.partition = :partition AND i.sequence = :sequence
    LEFT JOIN LATERAL (
        SELECT {_ROW} FROM asset_version
        WHERE partition = :partition AND id = :id AND sequence <= :sequence
        ORDER BY partition, id, sequence DESC LIMIT 1) v ON true
"""  # noqa: S608 - here as below, made of our own names
_AT = f"""
    SELECT * FROM (
        SELECT DISTINCT ON (id) {_ROW} FROM asset_version c
        WHERE partition = :partition AND sequence <= :sequence {{span}} ORDER BY id, sequence DESC) newest
    WHERE digest IS NOT NULL ORDER BY id
"""  # noqa: S608
_CURRENT = f"""
    {IN_FORCE}
    JOIN asset_version v ON v.number = c.version
    WHERE c.partition = :partition {{span}} ORDER BY c.id
"""
_CHANGES = f"""
    SELECT touched.id, {VERSION.names("old")}, {VERSION.names("new")}
    FROM (SELECT DISTINCT id FROM asset_version
          WHERE partition = :partition AND sequence > :low AND sequence <= :high) touched
    LEFT JOIN LATERAL (
        SELECT {_ROW} FROM asset_version
        WHERE partition = :partition AND id = touched.id AND sequence <= :before
        ORDER BY sequence DESC LIMIT 1) old ON true
    LEFT JOIN LATERAL (
        SELECT {_ROW} FROM asset_version
        WHERE partition = :partition AND id = touched.id AND sequence <= :after
        ORDER BY sequence DESC LIMIT 1) new ON true
    WHERE old.digest IS DISTINCT FROM new.digest ORDER BY touched.id
"""  # noqa: S608
_OF_TYPES = " AND c.type = ANY(:types)"


class PostgresIntent(SqlIntent):
    """Over a connection for each concurrent reader."""

    version_at = _VERSION_AT
    changed_between = _CHANGES

    def _made(
        self, make: Make[T], partition: Partition, sequence: int, types: Sequence[str] | None, span: Span
    ) -> Iterator[T]:
        ids = sorted(span.ids or ())
        asked: dict[str, Any] = {"partition": partition, "sequence": sequence, "ids": ids}
        asked |= {"prefix": span.prefix, "end": span.end, "after": span.after}
        with self._moment() as db:
            require_kept(db, partition, sequence)
            if partition_row(db, partition).newest != sequence:
                rows = db.stream(_AT.format(span=_spanned(span)), asked)
                yield from make(item for item in rows if types is None or item[4] in types)
            elif types is None:
                yield from make(in_force(db.stream(_CURRENT.format(span=_spanned(span)), asked)))
            else:
                statement = _CURRENT.format(span=_spanned(span) + _OF_TYPES)
                yield from make(in_force(db.stream(statement, {**asked, "types": list(types)})))

    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
        if ids is None:
            with self._reading() as db:
                yield from heads_of(db.stream(f"{HEAD} WHERE partition = ?", (partition,)))
            return
        rest = iter(ids)
        while share := list(islice(rest, _IDS_AT_ONCE)):
            with self._reading() as db:
                rows = db.execute(
                    f"SELECT {CURRENT.names('c')}"  # noqa: S608 - our own names
                    " FROM unnest(?::text[]) WITH ORDINALITY AS wanted (id, place)"
                    " JOIN asset_current c ON c.partition = ? AND c.id = wanted.id ORDER BY wanted.place",
                    (share, partition),
                ).fetchall()
                found = list(heads_of(rows))
            yield from found


def _spanned(span: Span) -> str:
    return spanned(span, "c.", "= ANY(:ids)")
