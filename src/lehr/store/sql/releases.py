"""Releases: written by compare-and-swap, withdrawn, and read as a version of their own."""

from __future__ import annotations

from itertools import groupby

import msgspec
from msgspec.structs import replace

from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.feed import ChangeKind
from lehr.model.reason import Reason
from lehr.model.release import Release, Released
from lehr.model.writes import Refused, WriteReleases
from lehr.store.sql.evidence import append_evidence
from lehr.store.sql.headers import is_pruned
from lehr.store.sql.partitions import partition_row, write_partition
from lehr.store.sql.session import Row, Session
from lehr.store.sql.tables import RELEASE

_COUNTS = f"SELECT {RELEASE.names()} FROM release WHERE id = ? AND partition = ? AND withdrawn_at IS NULL"  # noqa: S608
_CHANGED = f"SELECT {RELEASE.names()} FROM release WHERE partition = ? AND changed > ?"  # noqa: S608
_COUNTING = f"""
    SELECT {RELEASE.names()} FROM release r
    WHERE partition = :partition
      AND asset IN (SELECT asset FROM release WHERE partition = :partition AND changed > :since)
      AND number >= coalesce((SELECT max(number) FROM release n WHERE n.partition = r.partition
                              AND n.asset = r.asset AND n.withdrawn_at IS NULL), 0)
    ORDER BY asset, number
"""  # noqa: S608
"""The newest release of each asset that was not withdrawn, and those after it, which must be undamaged."""
_OF_ASSET = f"SELECT {RELEASE.names()} FROM release WHERE partition = ? AND asset = ? ORDER BY number DESC"  # noqa: S608

_decode = msgspec.json.Decoder(Release).decode


def write_releases(db: Session, write: WriteReleases) -> Refused | None:
    """Write and withdraw releases, unless something has changed since the writer looked."""
    row = partition_row(db, write.partition)
    if row.releases != write.version:
        return Refused(
            Reason.RELEASES_CHANGED,
            f"releases have version {row.releases}, and this rests on {write.version}",
        )
    if row.governance != write.governance:
        return Refused(Reason.GOVERNANCE_CHANGED, "policies, checks or limits have changed")
    targets = {release.target for release in write.releases if release.target is not None}
    for target in sorted(targets):
        if not 1 <= target <= row.newest or is_pruned(db, write.partition, target):
            return Refused(Reason.PRUNED, f"incarnation {write.partition}@{target} is not kept")
    version = row.releases + 1
    write_partition(db, row._replace(releases=version))
    for id in write.withdrawn:
        _withdraw(db, write, id, version)
    for release in write.releases:
        body = msgspec.json.encode(release)
        number = db.next_number("release")
        db.noted.add(write.partition, ChangeKind.RELEASED, write.at, release.asset, release.id)
        db.execute(
            RELEASE.insert,
            RELEASE.sealed(
                number, release.id, write.partition, release.asset, release.target, None, version, body
            ),
        )
    append_evidence(db, write.evidence)
    return None


def _withdraw(db: Session, write: WriteReleases, id: str, version: int) -> None:
    row = db.execute(_COUNTS, (id, write.partition)).fetchone()
    if row is None:
        return
    number, _id, partition, asset, target, _none, _changed, body = RELEASE.read(row)
    db.noted.add(write.partition, ChangeKind.RELEASE_WITHDRAWN, write.at, asset, id)
    values = RELEASE.sealed(number, id, partition, asset, target, float(write.at), version, body)
    db.execute(
        "UPDATE release SET withdrawn_at = ?, changed = ?, checksum = ? WHERE number = ?",
        (*values[5:7], values[-1], number),
    )


def released_since(db: Session, partition: Partition, version: int) -> frozenset[AssetId]:
    """The assets of which a release was written or withdrawn after this version.

    Raises:
        DamagedError: one of these rows is damaged.
    """
    return frozenset(
        row[3] for row in RELEASE.read_all(db.execute(_CHANGED, (partition, version)).fetchall())
    )


def released(db: Session, partition: Partition, since: int) -> list[Released]:
    """Which release counts for each of these assets.

    Raises:
        DamagedError: it may be another one than the undamaged rows show.
    """
    rows = RELEASE.read_all(db.execute(_COUNTING, {"partition": partition, "since": since}))
    oldest = [next(of_asset) for _asset, of_asset in groupby(rows, key=lambda row: row[3])]
    return [Released(AssetId(row[3]), None if row[5] is not None else _release(row)) for row in oldest]


def releases(db: Session, key: AssetKey, limit: int) -> list[Release]:
    """The newest releases of an asset, newest first."""
    rows = db.execute(f"{_OF_ASSET} LIMIT ?", (*key, limit)).fetchall()
    return [_release(row) for row in RELEASE.read_all(rows)]


def _release(row: Row) -> Release:
    return replace(_decode(row[7]), withdrawn_at=row[5])
