"""The digest of an incarnation, kept up in O(changed).

Assets fall into buckets by the digest of their id. A bucket's digest covers its assets in order of
id, the root covers the buckets in order. A change touches one bucket; the root is a hash over at
most `BUCKETS` digests. Empty buckets do not count, so equal contents have equal digests whatever
happened before. The digest can be recomputed from the assets alone (invariant I2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from lehr.base.digest import Digest, RunningDigest, digest_all
from lehr.model.asset import AssetId

BUCKETS = 4096


def bucket_of(id: AssetId) -> int:
    """The bucket of an asset id."""
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=2).digest(), "big") % BUCKETS


def bucket_digest(assets: Iterable[tuple[AssetId, Digest]]) -> Digest:
    """Digest of one bucket's assets, which must come in order of id."""
    return digest_all(part for pair in assets for part in pair)


def root_digest(buckets: Iterable[tuple[int, Digest]]) -> Digest:
    """Digest of an incarnation from its buckets that are not empty, in order."""
    return digest_all(part for number, value in buckets for part in (str(number), value))


def incarnation_digest(assets: Iterable[tuple[AssetId, Digest]]) -> Digest:
    """The same digest, from nothing but the assets, in whatever order."""
    buckets: dict[int, list[tuple[AssetId, Digest]]] = {}
    for pair in assets:
        buckets.setdefault(bucket_of(pair[0]), []).append(pair)
    return root_digest((number, bucket_digest(sorted(buckets[number]))) for number in sorted(buckets))


class RunningMerkle:
    """`incarnation_digest` of assets that come in order of id, in constant memory."""

    def __init__(self) -> None:
        self._buckets: dict[int, RunningDigest] = {}

    def add(self, id: AssetId, digest: Digest) -> None:
        """The next asset."""
        bucket = self._buckets.setdefault(bucket_of(id), RunningDigest())
        bucket.add(id)
        bucket.add(digest)

    def digest(self) -> Digest:
        """Of the assets so far."""
        return root_digest((number, self._buckets[number].digest()) for number in sorted(self._buckets))
