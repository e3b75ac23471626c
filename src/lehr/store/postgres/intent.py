"""Reading incarnations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.types import addon_names
from lehr.sdk.store import WHOLE, Head, Imported, PrunedError, Row, Span
from lehr.store.postgres.session import PostgresSession, Readers
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
from lehr.store.sql.tables import CURRENT, IMPORTED_ASSET, INCARNATION, VERSION

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
_LAST_VERSION = (
    f"SELECT {_ROW} FROM asset_version"  # noqa: S608
    " WHERE partition = ? AND id = ? AND digest IS NOT NULL ORDER BY sequence DESC LIMIT 1"
)
_VERSIONS = f"SELECT {_ROW} FROM asset_version WHERE partition = ? AND id = ? ORDER BY sequence DESC"  # noqa: S608
_IMPORTED = f"SELECT {IMPORTED_ASSET.names()} FROM imported_asset WHERE name = ? AND id > ? ORDER BY id"  # noqa: S608
_AT = f"""
    SELECT * FROM (
        SELECT DISTINCT ON (id) {_ROW} FROM asset_version c
        WHERE partition = :partition AND sequence <= :sequence {{span}} ORDER BY id, sequence DESC) newest
    WHERE digest IS NOT NULL ORDER BY id
"""  # noqa: S608
_CURRENT = f"""
    SELECT {VERSION.names("v")}, c.id, c.type, c.digest FROM asset_current c
    JOIN asset_version v ON v.number = c.version
    WHERE c.partition = :partition {{span}} ORDER BY c.id
"""  # noqa: S608
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


class PostgresIntent:
    """`lehr.sdk.store.StoredIntent` over sessions of `readers`."""

    def __init__(self, readers: Readers) -> None:
        self._reading = readers.session
        self._at_one_moment = readers.moment

    def newest(self, partition: Partition) -> Incarnation | None:
        with self._reading() as db:
            return newest_header(db, partition)

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        with self._reading() as db:
            return header(db, partition, sequence)

    def incarnations(self, partition: Partition, limit: int) -> list[Incarnation]:
        with self._reading() as db:
            rows = db.execute(
                f"SELECT {INCARNATION.names()} FROM incarnation"  # noqa: S608
                " WHERE partition = ? AND pruned = 0 ORDER BY sequence DESC LIMIT ?",
                (partition, limit),
            ).fetchall()
            return list(headers(rows))

    def partitions(self) -> list[Partition]:
        with self._reading() as db:
            return [row[0] for row in db.execute("SELECT name FROM partition ORDER BY name")]

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        asked = {"partition": key.partition, "id": key.id, "sequence": sequence}
        with self._reading() as db:
            row = db.execute(_VERSION_AT, asked).fetchone()
            if shows_pruned(key.partition, sequence, row[-2:]):
                _require_kept(db, key.partition, sequence)
            return None if row[0] is None else version_of(row[:-2])

    def require_kept(self, partition: Partition, sequence: int) -> None:
        with self._reading() as db:
            _require_kept(db, partition, sequence)

    def last(self, key: AssetKey) -> tuple[Asset, int] | None:
        with self._reading() as db:
            row = db.execute(_LAST_VERSION, (key.partition, key.id)).fetchone()
            return (asset_of(row), row[3]) if row else None

    def versions(self, key: AssetKey, sequence: int) -> Iterator[tuple[int, Asset | None]]:
        with self._reading() as db:
            for row in db.stream(_VERSIONS, (key.partition, key.id)):
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
        ids = sorted(span.ids or ())
        asked: dict[str, Any] = {"partition": partition, "sequence": sequence, "ids": ids}
        asked |= {"prefix": span.prefix, "end": span.end, "after": span.after}
        with self._at_one_moment() as db:
            _require_kept(db, partition, sequence)
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

    def changes(self, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
        low, high = sorted((before, after))
        asked = {"partition": partition, "low": low, "high": high, "before": before, "after": after}
        with self._at_one_moment() as db:
            for sequence in (before, after):
                _require_kept(db, partition, sequence)
            yield from changes_of(db.stream(_CHANGES, asked))

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        with self._reading() as db:
            row = db.execute(
                "SELECT min(sequence) FROM asset_version WHERE partition = ? AND id = ? AND sequence > ?",
                (key.partition, key.id, sequence),
            ).fetchone()
            return None if row[0] is None else int(row[0])

    def mentioned_by(self, key: AssetKey) -> list[tuple[AssetId, str]]:
        with self._reading() as db:
            return mentions.mentioned_by(db, key)

    def once_mentioned_by(self, key: AssetKey) -> list[AssetId]:
        with self._reading() as db:
            return mentions.once_mentioned_by(db, key)

    def claimed_by(self, partition: Partition, claim: str) -> list[AssetId]:
        with self._reading() as db:
            return mentions.claimed_by(db, partition, claim)

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        with self._at_one_moment() as db:
            oldest: int | None = None
            for row in db.stream(_VERSIONS, (key.partition, key.id)):
                asset = version_of(row)
                if asset is None:
                    continue  # a tombstone: the asset left intent with its addons
                if addon not in addon_names(asset):
                    break
                if oldest is not None and any_pruned(db, key.partition, row[3], oldest):
                    break  # a pruned version may have lacked it
                oldest = row[3]
            came_with = None if oldest is None else header(db, key.partition, oldest)
            return None if came_with is None else came_with.created_at

    def imported(self) -> list[Imported]:
        with self._reading() as db:
            return imported_headers(db)

    def imported_assets(self, name: str, after: str = "") -> Iterator[Asset]:
        with self._reading() as db:
            yield from imported_of(db.stream(_IMPORTED, (name, after)))


def _spanned(span: Span) -> str:
    """The condition that the id is within `span`."""
    return "".join(
        f" AND c.id {condition}"
        for condition, given in (
            ("= ANY(:ids)", span.ids is not None),
            (">= :prefix", span.prefix),
            ("< :end", span.prefix),
            ("> :after", span.after),
        )
        if given
    )


def _require_kept(db: PostgresSession, partition: Partition, sequence: int) -> None:
    if not is_pruned(db, partition, sequence):
        return
    oldest = db.execute(
        "SELECT min(sequence) FROM incarnation WHERE partition = ? AND pruned = 0", (partition,)
    ).fetchone()[0]
    raise PrunedError(partition, sequence, oldest)
