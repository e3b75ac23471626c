"""Replays the history of a partition: the digest of every version and every incarnation."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import msgspec

from lehr.base.digest import Digest, digest_all, short
from lehr.model.asset import AssetId, Partition
from lehr.model.damage import REBUILD, Advance, Damage, TypesOf
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import bucket_digest, bucket_of, root_digest
from lehr.model.origins import origin_of
from lehr.store.sql.check.row_pairs import side_by_side
from lehr.store.sql.session import Session

_header = msgspec.json.Decoder(Incarnation)

_TABLE = """
    CREATE TABLE replay (
        id TEXT PRIMARY KEY, type TEXT, digest TEXT, bucket INTEGER, version INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX replay_bucket ON replay (bucket, id, digest);
    CREATE INDEX replay_type ON replay (type, id, digest);
"""

Row = tuple[int, int, AssetId, str | None, Digest | None, bytes | None, bytes | None]
"""A version: sequence, number, id, type, digest, body, origin."""


class Replay:
    """A partition's assets after the incarnations so far, in a temporary file.

    The file is SQLite's, whatever the store: it is queried for every version, too often for a server.
    """

    def __init__(self, partition: Partition) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(_TABLE)
        self._db.execute("BEGIN")  # never committed: temporary data need not be durable
        self.partition = partition
        self.buckets: dict[int, Digest] = {}
        self.assets = self.added = self.changed = self.removed = 0
        self.touched_types: set[str] = set()
        self._touched: set[int] = set()

    def apply(self, row: Row) -> None:
        """The next version."""
        _sequence, number, id, type, digest, _body, _origin = row
        bucket = bucket_of(id)
        self._touched.add(bucket)
        before = self._db.execute("SELECT type FROM replay WHERE id = ?", (id,)).fetchone()
        self.touched_types.update(before or ())
        if digest is None:
            self._db.execute("DELETE FROM replay WHERE id = ?", (id,))
            self.removed += 1
        else:
            self.touched_types.add(type or "")
            self._db.execute(
                "INSERT OR REPLACE INTO replay VALUES (?, ?, ?, ?, ?)", (id, type, digest, bucket, number)
            )
            self.added += before is None
            self.changed += before is not None
        self.assets += (digest is not None) - (before is not None)

    def counted(self) -> dict[str, int]:
        """The values that this incarnation's header must have."""
        return {
            "assets": self.assets,
            "added": self.added,
            "changed": self.changed,
            "removed": self.removed,
        }

    def root(self) -> Digest:
        """Digest of the current assets."""
        for bucket in self._touched:
            query = "SELECT id, digest FROM replay WHERE bucket = ? ORDER BY id"
            assets = self._db.execute(query, (bucket,)).fetchall()
            if assets:
                self.buckets[bucket] = bucket_digest(assets)
            else:
                self.buckets.pop(bucket, None)
        self._touched.clear()
        return root_digest((number, self.buckets[number]) for number in sorted(self.buckets))

    def governance(self, types: Iterable[str]) -> Digest:
        """Digest of the assets of some types, which must be sorted."""
        query = "SELECT id, digest FROM replay WHERE type = ? ORDER BY id"
        return digest_all(part for type in types for row in self._db.execute(query, (type,)) for part in row)

    def current(self) -> Iterator[tuple[Any, ...]]:
        """Id, type, digest, bucket and number of every asset, by id."""
        yield from self._db.execute("SELECT id, type, digest, bucket, version FROM replay ORDER BY id")

    def close(self) -> None:
        """Remove the temporary file."""
        self._db.close()

    def next(self) -> None:
        """Reset the counters."""
        self.added = self.changed = self.removed = 0
        self.touched_types.clear()


def check(
    db: Session, partition: Partition, types: TypesOf, replay: Replay, advance: Advance
) -> Iterator[Damage]:
    """Headers, versions and digests of a partition, from its first incarnation on."""
    headers: dict[int, tuple[Incarnation, bool]] = {}
    yield from _read_headers(db, partition, headers)
    judged = _Judged(replay, headers, types)
    by_sequence = db.by("asset_version_sequence")
    versions = db.stream(
        "SELECT sequence, number, id, type, digest, body, origin"  # noqa: S608 - our own
        f" FROM asset_version{by_sequence} WHERE partition = ? ORDER BY sequence",
        (partition,),
    )
    last = 0
    known = sorted(headers)
    for sequence, rows in groupby(versions, itemgetter(0)):
        for between in _between(known, last, sequence):
            yield from judged.incarnation(between)
        for row in rows:
            advance(1)
            yield from _version(partition, row)
            replay.apply(row)
        if sequence not in headers:
            yield Damage(
                f"there are assets of incarnation {partition}@{sequence}, which does not exist",
                f"it has {replay.added + replay.changed + replay.removed} versions",
            )
        yield from judged.incarnation(sequence)
        last = sequence
    for between in _between(known, last, max(headers, default=0) + 1):
        yield from judged.incarnation(between)
    yield from judged.ended()


def _between(known: Sequence[int], last: int, until: int) -> Iterator[int]:
    """The incarnations in a range, and only the first of each gap: a damaged number may open a gap of any
    size.

    Args:
        known: those that have a header, sorted.
    """
    for sequence in known[bisect_right(known, last) : bisect_left(known, until)]:
        if sequence > last + 1:
            yield last + 1
        yield sequence
        last = sequence
    if until > last + 1:
        yield last + 1


def _read_headers(
    db: Session, partition: Partition, headers: dict[int, tuple[Incarnation, bool]]
) -> Iterator[Damage]:
    for sequence, header, pruned in db.execute(
        "SELECT sequence, header, pruned FROM incarnation WHERE partition = ? ORDER BY sequence", (partition,)
    ):
        name = f"{partition}@{sequence}"
        try:
            found = _header.decode(header)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            yield Damage(f"the header of incarnation {name} cannot be read", str(error))
            continue
        if (found.partition, found.sequence) != (partition, sequence):
            yield Damage(
                f"the header of incarnation {name} belongs to another row", f"it has the name {found.name}"
            )
        headers[sequence] = (found, bool(pruned))
    newest = max(headers, default=0)
    for before, sequence in pairwise((0, *sorted(headers))):
        if sequence > before + 1:
            missing = range(before + 1, sequence)
            yield Damage(f"{_named(partition, missing)} missing", f"the newest is {newest}")
    row = db.execute("SELECT newest, governance FROM partition WHERE name = ?", (partition,)).fetchone()
    stored = row or (0, "")
    if stored[0] != newest:
        yield Damage(
            f"partition {partition} has the wrong newest incarnation",
            f"it has {stored[0]}, and the newest that exists is {newest}",
        )
    elif newest and stored[1] != headers[newest][0].governance:
        yield Damage(
            f"partition {partition} and its newest incarnation disagree on the governing assets",
            f"the digests are {short(stored[1])} and {short(headers[newest][0].governance)}",
        )


def _version(partition: Partition, row: Row) -> Iterator[Damage]:
    """Whether a version matches its digest."""
    sequence, _number, id, type, digest, body, origin = row
    name = f"asset {id} of incarnation {partition}@{sequence}"
    if digest is None:
        if (type, body) != (None, None):
            yield Damage(f"{name} is a tombstone that is not empty", "its digest is missing")
        return
    try:
        found = digest_all((id, type or "", bytes(body or b"").decode()))
        origin_of(origin)
    except (UnicodeDecodeError, TypeError, msgspec.MsgspecError) as error:
        yield Damage(f"{name} cannot be read", str(error))
        return
    if found != digest:
        yield Damage(f"{name} was changed", f"its digest is {short(found)}, it was stored as {short(digest)}")


class _Judged:
    """Compares headers with the replay. Damage in consecutive incarnations is reported once, as a range."""

    def __init__(self, replay: Replay, headers: dict[int, tuple[Incarnation, bool]], types: TypesOf) -> None:
        self._replay = replay
        self._headers = headers
        registry = types(replay.partition)
        self._known = registry
        known = () if registry is None else registry.types.items()
        self._governing = sorted(name for name, item in known if item.governs)
        self._wrong: list[int] = []
        self._governance: Digest | None = None
        self._pruned_before = False
        self._unknown = registry is None
        self._misgoverned: list[int] = []

    def incarnation(self, sequence: int) -> Iterator[Damage]:
        """Compare at the end of an incarnation in the replay."""
        header, pruned = self._headers.get(sequence, (None, True))
        if self._known is not None and not self._replay.touched_types <= self._known.types.keys():
            self._unknown = True
        if header is not None and not pruned:
            yield from self._counts(header)
            yield from self._digest(header)
            self._governs(header)
        if not pruned:
            self._replay.next()
        self._pruned_before = pruned

    def _counts(self, header: Incarnation) -> Iterator[Damage]:
        for name, count in self._replay.counted().items():
            stored = getattr(header, name)
            # The changes of a pruned one cannot be distinguished from this one's.
            if stored != count and (name == "assets" or not self._pruned_before):
                yield Damage(
                    f"the header of incarnation {header.name} has wrong asset counts",
                    f"its {name} is {stored}, and should be {count}",
                )

    def _digest(self, header: Incarnation) -> Iterator[Damage]:
        if self._replay.root() != header.digest:
            self._wrong.append(header.sequence)
        else:
            yield from self.ended_digests()

    def _governs(self, header: Incarnation) -> None:
        if self._governance is None or not self._replay.touched_types.isdisjoint(self._governing):
            self._governance = self._replay.governance(self._governing)
        if self._governance != header.governance:
            self._misgoverned.append(header.sequence)

    def ended_digests(self) -> Iterator[Damage]:
        """The consecutive incarnations whose digests do not match their assets."""
        if self._wrong:
            yield Damage(
                f"{_named(self._replay.partition, self._wrong)} inconsistent with the digest",
                "the stored assets have another digest",
            )
        self._wrong = []

    def ended(self) -> Iterator[Damage]:
        """Finish after the last incarnation."""
        yield from self.ended_digests()
        # Whether an unknown type governs is unknown.
        if self._misgoverned and not self._unknown:
            found = _named(self._replay.partition, self._misgoverned)
            yield Damage(
                f"{found} governed by assets other than those stored",
                "the digest of the governing assets differs",
            )


def _named(partition: Partition, sequences: Sequence[int]) -> str:
    if len(sequences) == 1:
        return f"incarnation {partition}@{sequences[0]} is"
    return f"{len(sequences)} incarnations from {partition}@{sequences[0]} to {partition}@{sequences[-1]} are"


def check_current(db: Session, replay: Replay) -> Iterator[Damage]:
    """Check that the table of the current state matches the result of history."""
    partition = replay.partition
    stored_assets = db.stream(
        "SELECT id, type, digest, bucket, version FROM asset_current WHERE partition = ? ORDER BY id",
        (partition,),
    )
    yield from _compared(replay.current(), stored_assets, partition)
    stored = dict(
        db.execute("SELECT bucket, digest FROM bucket_current WHERE partition = ?", (partition,)).fetchall()
    )
    for bucket in sorted(stored.keys() | replay.buckets.keys()):
        if stored.get(bucket) != replay.buckets.get(bucket):
            yield Damage(
                f"the digest of bucket {bucket} of {partition} is wrong",
                f"it is {stored.get(bucket, 'missing')}, and should be {replay.buckets.get(bucket, 'none')}",
            )


def _compared(
    expected: Iterator[tuple[Any, ...]], stored: Iterator[tuple[Any, ...]], partition: Partition
) -> Iterator[Damage]:
    """Both are ordered by id."""
    for id, played, found in side_by_side(expected, stored):
        if found is None:
            yield Damage(
                f"asset {id} of {partition} is missing from the current state",
                "the newest incarnation has it",
                REBUILD,
            )
        elif played is None:
            yield Damage(
                f"asset {id} of {partition} is in the current state",
                "the newest incarnation does not have it",
            )
        elif found != played:
            yield Damage(
                f"asset {id} of {partition} is not in the current state as the newest incarnation has it",
                f"type, digest, bucket and version are {list(found[1:])} instead of {list(played[1:])}",
                REBUILD,
            )
