"""Reads incarnations. Each database adds its own parts in a subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

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
from lehr.store.sql.rows import asset_of, assets_of, changes_of, imported_of, kept, version_of
from lehr.store.sql.session import OpenSession, Session
from lehr.store.sql.tables import IMPORTED_ASSET, INCARNATION, VERSION

T = TypeVar("T")
Make = Callable[[Iterable[tuple[Any, ...]]], Iterator[T]]
"""Makes values of rows of `VERSION.names()`."""

_LAST_VERSION = (
    f"SELECT {VERSION.names()} FROM asset_version"  # noqa: S608 - here as below, made of our own names
    " WHERE partition = :partition AND id = :id AND sequence <= :sequence AND digest IS NOT NULL"
    " ORDER BY sequence DESC LIMIT 1"
)
_NO_LIMIT = 2**62  # comes after every sequence
_VERSIONS = (
    f"SELECT {VERSION.names()} FROM asset_version"  # noqa: S608
    " WHERE partition = ? AND id = ? ORDER BY sequence DESC"
)
_IMPORTED = f"SELECT {IMPORTED_ASSET.names()} FROM imported_asset WHERE name = ? AND id > ? ORDER BY id"  # noqa: S608


class SqlIntent(ABC):
    """`lehr.sdk.store.StoredIntent` over sessions for reading.

    Args:
        reading: opens a session.
        moment: the same; all reads in it are from one snapshot, if the database has cheap ones.

    Attributes:
        version_at: query for the version of asset `:id` as of `:sequence`, and its columns `pruned` and
            `pruned_checksum`; always one row.
        changed_between: query for what `:before` and `:after` have of assets that changed between `:low` and
            `:high`.
    """

    version_at: ClassVar[str]
    changed_between: ClassVar[str]

    def __init__(self, reading: OpenSession, moment: OpenSession) -> None:
        self._reading = reading
        self._moment = moment

    @abstractmethod
    def _made(
        self, make: Make[T], partition: Partition, sequence: int, types: Sequence[str] | None, span: Span
    ) -> Iterator[T]:
        """Values of the assets of an incarnation, by id."""

    @abstractmethod
    def heads(self, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]: ...

    def newest(self, partition: Partition) -> Incarnation | None:
        with self._reading() as db:
            return newest_header(db, partition)

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        with self._reading() as db:
            return header(db, partition, sequence)

    def incarnations(self, partition: Partition, limit: int, before: int = 0) -> list[Incarnation]:
        with self._reading() as db:
            rows = db.execute(
                f"SELECT {INCARNATION.names()} FROM incarnation{db.by('incarnation_kept')}"  # noqa: S608
                " WHERE partition = ? AND pruned = 0 AND sequence < ? ORDER BY sequence DESC LIMIT ?",
                (partition, before or _NO_LIMIT, limit),
            ).fetchall()
            return list(headers(rows))

    def partitions(self) -> list[Partition]:
        with self._reading() as db:
            return [row[0] for row in db.execute("SELECT name FROM partition ORDER BY name")]

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        with self._reading() as db:
            row = self._row(db, self.version_at, key, sequence)
            if shows_pruned(key.partition, sequence, row[-2:]):
                require_kept(db, key.partition, sequence)
            return None if row[0] is None else version_of(row[:-2])

    def _row(self, db: Session, statement: str, key: AssetKey, sequence: int | None = None) -> Any:
        """The one row that a query returns for an asset."""
        asked = {
            "partition": key.partition,
            "id": key.id,
            "sequence": _NO_LIMIT if sequence is None else sequence,
        }
        return db.execute(statement, asked).fetchone()

    def require_kept(self, partition: Partition, sequence: int) -> None:
        with self._reading() as db:
            require_kept(db, partition, sequence)

    def last(self, key: AssetKey, sequence: int | None = None) -> tuple[Asset, int] | None:
        with self._reading() as db:
            row = self._row(db, _LAST_VERSION, key, sequence)
            return (asset_of(row), row[3]) if row else None

    def versions(self, key: AssetKey, sequence: int) -> Iterator[tuple[int, Asset | None]]:
        with self._reading() as db:
            for row in db.stream(_VERSIONS, (key.partition, key.id)):
                if row[3] <= sequence:
                    yield row[3], version_of(row)

    def assets(
        self, partition: Partition, sequence: int, types: Sequence[str] | None = None, span: Span = WHOLE
    ) -> Iterator[Asset]:
        return self._made(assets_of, partition, sequence, types, span)

    def rows(
        self, partition: Partition, sequence: int, types: Sequence[str] | None = None, span: Span = WHOLE
    ) -> Iterator[Row]:
        return self._made(kept, partition, sequence, types, span)

    def changes(self, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
        low, high = sorted((before, after))
        asked = {"partition": partition, "low": low, "high": high, "before": before, "after": after}
        with self._moment() as db:
            rows = db.stream(self.changed_between, asked)
            # Checked after the read of the rows began: pruning from now on does not affect them.
            for sequence in (before, after):
                require_kept(db, partition, sequence)
            yield from changes_of(rows)

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

    def past_and_present_referrers(self, key: AssetKey) -> list[AssetId]:
        with self._reading() as db:
            return mentions.past_and_present_referrers(db, key)

    def claimed_by(self, partition: Partition, claim: str) -> list[AssetId]:
        with self._reading() as db:
            return mentions.claimed_by(db, partition, claim)

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        with self._moment() as db:
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


def require_kept(db: Session, partition: Partition, sequence: int) -> None:
    """Check that an incarnation is not pruned.

    Raises:
        PrunedError: it is.
    """
    if not is_pruned(db, partition, sequence):
        return
    oldest = db.execute(
        f"SELECT min(sequence) FROM incarnation{db.by('incarnation_kept')}"  # noqa: S608
        " WHERE partition = ? AND pruned = 0",
        (partition,),
    ).fetchone()[0]
    raise PrunedError(partition, sequence, oldest)


def spanned(span: Span, table: str, among: str) -> str:
    """SQL for the condition that the id in `table` is within `span`; `among` compares it with `:ids`."""
    return "".join(
        f" AND {table}id {condition}"
        for condition, given in (
            (among, span.ids is not None),
            (">= :prefix", span.prefix),
            ("< :end", span.prefix),
            ("> :after", span.after),
        )
        if given
    )
