"""Writes an incarnation: copies rows in, then updates the current state, all in O(changed)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, TypeVar

from lehr.base.digest import Digest, digest_all, digest_bytes
from lehr.model.asset import Partition
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import bucket_digest, bucket_of, root_digest
from lehr.model.origins import origin_bytes
from lehr.model.reason import Reason
from lehr.model.writes import Publish, Refused
from lehr.store.postgres.session import PostgresSession
from lehr.store.sql.headers import append_header, header
from lehr.store.sql.partitions import partition_row
from lehr.store.sql.rows import HEAD, heads_of
from lehr.store.sql.tables import BUCKET, CLAIM, CURRENT, MENTION, MENTION_END, VERSION

T = TypeVar("T")

_AT_ONCE = 10_000
"""Maximum number of ids in one statement."""

_BUCKETS_AT_ONCE = 256

_STAGED = """
CREATE TEMPORARY TABLE IF NOT EXISTS staged (
    partition text COLLATE "C", id text COLLATE "C", type text, digest text, bucket bigint, version bigint,
    checksum bytea
) ON COMMIT DELETE ROWS
"""
_CURRENT_TYPES = ("text", "text", "text", "text", "int8", "int8", "bytea")
_VERSION_TYPES = ("int8", "text", "text", "int8", "text", "text", "bytea", "bytea", "bytea")


def publish(db: PostgresSession, write: Publish) -> Incarnation | Refused:
    """Store `write.candidate` as the next incarnation of its partition."""
    candidate = write.candidate
    partition = candidate.partition
    row = partition_row(db, partition)
    newest = row.newest
    if newest != candidate.base:
        return Refused(Reason.OVERTAKEN, f"{partition}@{newest} has been published since")
    buckets = [bucket_of(asset.id) for asset in candidate.upserts]
    added = _upsert(db, write, buckets)
    _remove(db, write)
    if newest:
        _forget(db, write)
    _index(db, write)
    if len(candidate.upserts) > _AT_ONCE:  # the planner would still assume nearly empty tables
        db.execute("ANALYZE asset_version, asset_current, mention")
    root, governance = _new_root(db, write, buckets), _governance(db, partition, write.governing_types)
    return append_header(db, write, row, header(db, partition, newest), root, governance, added)


def _upsert(db: PostgresSession, write: Publish, buckets: list[int]) -> int:
    """Append versions and point the current state at them. Returns the number of new ones."""
    assets, partition, sequence = write.candidate.upserts, write.candidate.partition, write.candidate.base + 1
    if not assets:
        return 0
    numbers = db.numbers("asset_version", len(assets))
    db.copy(
        "asset_version",
        VERSION.names(),
        _VERSION_TYPES,
        (
            VERSION.sealed(
                number, partition, item.id, sequence, item.type, item.digest, item.body, origin_bytes(item)
            )
            for number, item in zip(numbers, assets, strict=True)
        ),
    )
    current = (
        CURRENT.sealed(partition, item.id, item.type, item.digest, bucket, number)
        for number, item, bucket in zip(numbers, assets, buckets, strict=True)
    )
    if write.candidate.base:
        return _replace_current(db, current, len(assets))
    db.copy("asset_current", CURRENT.names(), _CURRENT_TYPES, current)
    return len(assets)


def _replace_current(db: PostgresSession, rows: Iterable[tuple[Any, ...]], count: int) -> int:
    """Returns the number of new rows."""
    db.execute(_STAGED)
    db.copy("staged", CURRENT.names(), _CURRENT_TYPES, rows)
    changed = db.execute(
        "UPDATE asset_current c SET type = s.type, digest = s.digest, bucket = s.bucket,"
        " version = s.version, checksum = s.checksum"
        " FROM staged s WHERE c.partition = s.partition AND c.id = s.id"
    ).rowcount
    if changed < count:
        db.execute(
            f"INSERT INTO asset_current ({CURRENT.names()})"  # noqa: S608 - our own names
            f" SELECT {CURRENT.names()} FROM staged ON CONFLICT DO NOTHING"
        )
    return count - changed


def _remove(db: PostgresSession, write: Publish) -> None:
    partition, sequence = write.candidate.partition, write.candidate.base + 1
    removals = write.candidate.removals
    numbers = db.numbers("asset_version", len(removals)) if removals else []
    db.copy(
        "asset_version",
        VERSION.names(),
        _VERSION_TYPES,
        (
            VERSION.sealed(number, partition, id, sequence, None, None, None, None)
            for number, id in zip(numbers, removals, strict=True)
        ),
    )
    for ids in _shares(write.candidate.removals):
        db.execute("DELETE FROM asset_current WHERE partition = ? AND id = ANY(?)", (partition, ids))


def _forget(db: PostgresSession, write: Publish) -> None:
    """Remove the references and claims of assets that are replaced or removed."""
    candidate = write.candidate
    for ids in _shares([*(asset.id for asset in candidate.upserts), *candidate.removals]):
        sealed = [MENTION_END.sealed(candidate.partition, id, candidate.base + 1) for id in ids]
        db.execute(
            "UPDATE mention m SET until = ?, until_checksum = e.checksum"
            " FROM unnest(?::text[], ?::bytea[]) AS e (source, checksum)"
            " WHERE m.partition = ? AND m.source = e.source AND m.until IS NULL",
            (candidate.base + 1, ids, [row[-1] for row in sealed], candidate.partition),
        )
        db.execute(
            "DELETE FROM claim_current WHERE partition = ? AND asset = ANY(?)", (candidate.partition, ids)
        )


def _index(db: PostgresSession, write: Publish) -> None:
    """Add references and claims."""
    partition = write.candidate.partition
    db.copy(
        "claim_current",
        CLAIM.names(),
        ("text", "text", "text", "bytea"),
        (CLAIM.sealed(partition, claim, id) for id, claims in write.claims.items() for claim in claims),
    )
    db.copy(
        "mention",
        MENTION.names(),
        ("text", "text", "text", "text", "bytea"),
        (
            MENTION.sealed(partition, source, mention.path, mention.target)
            for source, mentions in write.mentions.items()
            for mention in mentions
        ),
    )


def _new_root(db: PostgresSession, write: Publish, buckets: list[int]) -> Digest:
    candidate = write.candidate
    partition, touched = candidate.partition, sorted({*buckets, *map(bucket_of, candidate.removals)})
    digests = list(
        _bucket_digests(db, partition, touched) if candidate.base else _first_digests(write, buckets)
    )
    for share in _shares(touched):
        db.execute("DELETE FROM bucket_current WHERE partition = ? AND bucket = ANY(?)", (partition, share))
    db.copy(
        "bucket_current",
        BUCKET.names(),
        ("text", "int8", "text", "bytea"),
        (BUCKET.sealed(partition, bucket, digest) for bucket, digest in digests),
    )
    if not candidate.base:
        return root_digest(digests)
    query = f"SELECT {BUCKET.names()} FROM bucket_current WHERE partition = ? ORDER BY bucket"  # noqa: S608
    rows = BUCKET.read_all(db.execute(query, (partition,)))
    return root_digest((bucket, digest) for _partition, bucket, digest in rows)


def _first_digests(write: Publish, buckets: list[int]) -> Iterator[tuple[int, Digest]]:
    """The digests of all buckets of a first incarnation, from memory."""
    upserts = zip(buckets, write.candidate.upserts, strict=True)
    rows = sorted((bucket, item.id, item.digest) for bucket, item in upserts)
    for bucket, assets in groupby(rows, itemgetter(0)):
        yield bucket, bucket_digest((id, digest) for _bucket, id, digest in assets)


def _bucket_digests(
    db: PostgresSession, partition: Partition, buckets: list[int]
) -> Iterator[tuple[int, Digest]]:
    """The digests of the non-empty `buckets`, in order.

    The server frames the parts as `lehr.base.digest.digest_all` does: one text per bucket is faster to
    transfer than two per asset.
    """
    for share in _shares(buckets, _BUCKETS_AT_ONCE):
        for bucket, framed in db.execute(
            "SELECT bucket,"
            " string_agg(length(id) || ':' || id || length(digest) || ':' || digest, '' ORDER BY id)"
            " FROM asset_current WHERE partition = ? AND bucket = ANY(?) GROUP BY bucket ORDER BY bucket",
            (partition, share),
        ):
            yield bucket, digest_bytes(framed.encode())


def _governance(db: PostgresSession, partition: Partition, types: tuple[str, ...]) -> Digest:
    rows = db.execute(
        f"{HEAD} WHERE partition = ? AND type = ANY(?) ORDER BY type, id", (partition, list(types))
    )
    return digest_all(part for head in heads_of(rows) for part in (head.id, head.digest))


def _shares(items: Sequence[T] | Iterable[T], most: int = _AT_ONCE) -> Iterator[list[T]]:
    rest = iter(items)
    while share := list(islice(rest, most)):
        yield share
