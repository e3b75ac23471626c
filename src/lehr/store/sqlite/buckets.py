"""The digest of the newest incarnation, updated without reading the same rows again.

At a million assets a bucket has 244 of them, and reading them takes several times as long as hashing them. So
the buckets that a publication has read are kept as they are hashed (`lehr.base.digest.digest_all`), and the
next publication that changes an asset there overwrites its old digest with the new one.

The cache belongs to the state with one digest: whatever another process has published or a rollback has
undone since, it is never taken for the buckets of another state.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable

from lehr.base.digest import Digest, digest_bytes
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.merkle import BUCKETS, bucket_of, root_digest
from lehr.store.sql.tables import BUCKET

_MOST_BYTES = 96 * 2**20
"""Maximum size of cached buckets: all of them, at a million assets."""

_MANY = BUCKETS // 4
"""If one publication touches more buckets than this, caching them is not worth the memory."""


_FIND = f"SELECT {BUCKET.names()} FROM bucket_current WHERE partition = ? ORDER BY bucket"  # noqa: S608


class Buckets:
    """The cached buckets of one state."""

    def __init__(self) -> None:
        self._of: tuple[Partition, Digest] | None = None
        self._texts: OrderedDict[int, bytearray] = OrderedDict()
        self._bytes = 0
        self._digests: dict[int, Digest] = {}

    def root(
        self,
        db: sqlite3.Connection,
        partition: Partition,
        before: Digest | None,
        changed: Iterable[Asset],
        others: Iterable[AssetId],
    ) -> Digest:
        """The digest of the current state, whose rows are written; updates its buckets.

        Args:
            before: digest of the previous state; None if there was none.
            changed: assets that were there already.
            others: ids of assets that were added or removed.
        """
        if before is None or self._of != (partition, before):
            self._forget()
            rows = BUCKET.read_all(db.execute(_FIND, (partition,)))
            self._digests = {bucket: digest for _partition, bucket, digest in rows}
        self._of = None  # until all of it is done
        touched: dict[int, list[Asset]] = {}
        for asset in changed:
            touched.setdefault(bucket_of(asset.id), []).append(asset)
        reread = {bucket_of(id) for id in others}
        remember = len(touched.keys() | reread) <= _MANY
        for bucket in touched.keys() | reread:
            text = None if bucket in reread else self._changed(bucket, touched[bucket])
            if text is None:
                text = self._read(db, partition, bucket)
                if remember:
                    self._remember(bucket, text)
            self._store(db, partition, bucket, text)
        if list(self._digests) != sorted(self._digests):
            self._digests = dict(sorted(self._digests.items()))
        root = root_digest(self._digests.items())
        self._of = partition, root
        return root

    def _changed(self, bucket: int, assets: list[Asset]) -> bytearray | None:
        """The text of a bucket with the digests of `assets`; None if it is not cached."""
        text = self._texts.get(bucket)
        if text is None:
            return None
        self._texts.move_to_end(bucket)
        for asset in assets:
            name = f"{len(asset.id)}:{asset.id}{len(asset.digest)}:".encode()
            place = text.find(name)
            # A longer id may contain this text: a match is certain only if it is unique.
            if place < 0 or text.find(name, place + 1) >= 0:
                self._drop(bucket)
                return None
            place += len(name)
            text[place : place + len(asset.digest)] = asset.digest.encode()
        return text

    def _read(self, db: sqlite3.Connection, partition: Partition, bucket: int) -> bytearray:
        rows = db.execute(
            "SELECT id, digest FROM asset_current WHERE partition = ? AND bucket = ? ORDER BY id",
            (partition, bucket),
        )
        return bytearray("".join([f"{len(id)}:{id}{len(digest)}:{digest}" for id, digest in rows]).encode())

    def _store(self, db: sqlite3.Connection, partition: Partition, bucket: int, text: bytearray) -> None:
        if not text:
            db.execute("DELETE FROM bucket_current WHERE partition = ? AND bucket = ?", (partition, bucket))
            self._digests.pop(bucket, None)
            return
        digest = self._digests[bucket] = digest_bytes(bytes(text))
        db.execute(
            f"{BUCKET.insert} ON CONFLICT DO UPDATE SET digest = excluded.digest,"
            " checksum = excluded.checksum",
            BUCKET.sealed(partition, bucket, digest),
        )

    # --- cache -----------------------------------------------------------

    def _remember(self, bucket: int, text: bytearray) -> None:
        self._drop(bucket)
        self._texts[bucket] = text
        self._bytes += len(text)
        while self._bytes > _MOST_BYTES:
            self._drop(next(iter(self._texts)))

    def _drop(self, bucket: int) -> None:
        text = self._texts.pop(bucket, None)
        if text is not None:
            self._bytes -= len(text)

    def _forget(self) -> None:
        self._texts.clear()
        self._bytes = 0
