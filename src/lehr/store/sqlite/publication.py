"""Writes an incarnation: appends rows, then updates the current state, all in O(changed).

The cost of a commit is the pages that it touches, more than its rows: so rows are written in index order, and
unchanged rows are left alone.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence

from lehr.base.digest import Digest, digest_all
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import bucket_of
from lehr.model.origins import origin_bytes
from lehr.model.reason import Reason
from lehr.model.writes import Publish, Refused
from lehr.store.sql.headers import append_header, header
from lehr.store.sql.mentions import end_mentions
from lehr.store.sql.partitions import partition_row
from lehr.store.sql.rows import HEAD, heads_of
from lehr.store.sql.tables import CLAIM, CURRENT, MENTION, VERSION
from lehr.store.sqlite.buckets import Buckets
from lehr.store.sqlite.connection import Connection

_MANY = 10_000
"""Rows that make it worthwhile to count all others, and to rebuild an index."""

_LARGE_SHARE = 0.1
"""Share of all rows beyond which rebuilding the index is faster than updating it."""


def publish(buckets: Buckets, db: Connection, write: Publish) -> Incarnation | Refused:
    """Store `write.candidate` as the next incarnation of its partition."""
    candidate = write.candidate
    partition = candidate.partition
    row = partition_row(db, partition)
    newest = row.newest
    if newest != candidate.base:
        return Refused(Reason.OVERTAKEN, f"{partition}@{newest} has been published since")
    sequence = newest + 1
    known = _known(db, partition, candidate.upserts) if newest else set()
    with _indexed_afterwards(db, "asset_current_bucket", len(candidate.upserts)):
        _upsert(db, partition, sequence, candidate.upserts)
    _remove(db, partition, sequence, candidate.removals)
    _replace_indexes(db, write, [*known, *candidate.removals])
    before = header(db, partition, newest)
    new = [asset.id for asset in candidate.upserts if asset.id not in known]
    root = buckets.root(
        db,
        partition,
        None if before is None else before.digest,
        (asset for asset in candidate.upserts if asset.id in known),
        (*new, *candidate.removals),
    )
    governance = _governance(db, partition, write.governing_types)
    return append_header(db, write, row, before, root, governance, len(new))


def _known(db: sqlite3.Connection, partition: Partition, assets: Sequence[Asset]) -> set[AssetId]:
    """Ids of the `assets` that are already in the newest incarnation."""
    found = "SELECT 1 FROM asset_current WHERE partition = ? AND id = ?"
    return {asset.id for asset in assets if db.execute(found, (partition, asset.id)).fetchone()}


@contextlib.contextmanager
def _indexed_afterwards(db: sqlite3.Connection, index: str, rows: int) -> Iterator[None]:
    """If a large share of all assets is written, drop an index whose order is not that of the rows.

    Rebuilt from all rows, the index is written sequentially; row by row, each would touch a different page,
    which takes longer than everything else together.
    """
    if rows < _MANY or rows < _LARGE_SHARE * db.execute("SELECT count(*) FROM asset_current").fetchone()[0]:
        yield
        return
    [statement] = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    db.execute(f"DROP INDEX {index}")
    yield
    db.execute(statement)


def _upsert(db: Connection, partition: Partition, sequence: int, assets: tuple[Asset, ...]) -> None:
    """Append versions and point the current state at them."""
    first = db.next_number("asset_version", len(assets))
    db.executemany(
        VERSION.insert,
        (
            VERSION.sealed(
                first + place,
                partition,
                asset.id,
                sequence,
                asset.type,
                asset.digest,
                asset.body,
                origin_bytes(asset),
            )
            for place, asset in enumerate(assets)
        ),
    )
    db.executemany(
        f"{CURRENT.insert} ON CONFLICT DO UPDATE SET type = excluded.type, digest = excluded.digest,"
        " bucket = excluded.bucket, version = excluded.version, checksum = excluded.checksum",
        (
            CURRENT.sealed(partition, asset.id, asset.type, asset.digest, bucket_of(asset.id), first + place)
            for place, asset in enumerate(assets)
        ),
    )


def _remove(db: Connection, partition: Partition, sequence: int, ids: tuple[AssetId, ...]) -> None:
    first = db.next_number("asset_version", len(ids))
    db.executemany(
        VERSION.insert,
        (
            VERSION.sealed(first + place, partition, id, sequence, None, None, None, None)
            for place, id in enumerate(ids)
        ),
    )
    db.executemany(
        "DELETE FROM asset_current WHERE partition = ? AND id = ?", ((partition, id) for id in ids)
    )


def _replace_indexes(db: Connection, write: Publish, known: Sequence[AssetId]) -> None:
    """References and claims: derived from the newest incarnation's assets.

    Args:
        known: those that are changed or removed.
    """
    candidate = write.candidate
    partition = candidate.partition
    end_mentions(db, partition, known, candidate.base + 1)
    claimed = "SELECT claim, asset FROM claim_current WHERE partition = ? AND asset = ?"
    before = {pair for id in known for pair in db.execute(claimed, (partition, id))}
    pairs = [(claim, id) for id, claims in write.claims.items() for claim in claims]
    db.executemany(
        "DELETE FROM claim_current WHERE partition = ? AND claim = ? AND asset = ?",
        ((partition, *pair) for pair in sorted(before.difference(pairs))),
    )
    db.executemany(
        CLAIM.insert, (CLAIM.sealed(partition, *pair) for pair in sorted(pairs) if pair not in before)
    )
    db.executemany(
        MENTION.insert,
        (
            MENTION.sealed(partition, source, mention.path, mention.target)
            for source, mentions in write.mentions.items()
            for mention in mentions
        ),
    )


def _governance(db: sqlite3.Connection, partition: Partition, types: tuple[str, ...]) -> Digest:
    parts: list[str] = []
    for type in sorted(types):
        rows = db.execute(
            # Name the index: otherwise SQLite reads all assets, which are already in order of id.
            f"{HEAD} INDEXED BY asset_current_type WHERE partition = ? AND type = ? ORDER BY id",
            (partition, type),
        )
        parts.extend(part for head in heads_of(rows) for part in (head.id, head.digest))
    return digest_all(parts)
