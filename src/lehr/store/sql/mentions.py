"""References and claims: derived from assets, and verified when read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.store.sql.session import Session
from lehr.store.sql.tables import CLAIM, MENTION, MENTION_END

_FIND = f"SELECT {MENTION.names()}, until, until_checksum FROM mention"  # noqa: S608 - our own names
_END = "UPDATE mention SET until = ?, until_checksum = ? WHERE partition = ? AND source = ? AND until IS NULL"


def mentioned_by(db: Session, key: AssetKey) -> list[tuple[AssetId, str]]:
    """References to an asset in the newest incarnation: ids and paths.

    Raises:
        DamagedError: a reference is damaged; so do all other reads here.
    """
    rows = db.execute(
        f"{_FIND}{db.by('mention_target')} WHERE partition = ? AND target = ? AND until IS NULL"
        " ORDER BY source, path",
        (key.partition, key.id),
    )
    return [(source, path) for source, path in _read(rows)]


def past_and_present_referrers(db: Session, key: AssetKey) -> list[AssetId]:
    """Ids of assets that refer to an asset in any incarnation that is kept, or did."""
    rows = db.execute(f"{_FIND} WHERE partition = ? AND target = ? ORDER BY source", (key.partition, key.id))
    return list(dict.fromkeys(source for source, _path in _read(rows)))


def claimed_by(db: Session, partition: Partition, claim: str) -> list[AssetId]:
    """Assets that claim a thing in production, in the newest incarnation."""
    rows = db.execute(
        f"SELECT {CLAIM.names()} FROM claim_current"  # noqa: S608 - our own names
        " WHERE partition = ? AND claim = ? ORDER BY asset",
        (partition, claim),
    )
    return [row[2] for row in CLAIM.read_all(rows)]


def end_mentions(db: Session, partition: Partition, sources: Iterable[AssetId], until: int) -> None:
    """End the current references of `sources` at incarnation `until`."""
    sealed = (MENTION_END.sealed(partition, source, until) for source in sources)
    db.executemany(_END, ((at, sum_, of, source) for of, source, at, sum_ in sealed))


def _read(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[AssetId, str]]:
    for row in rows:
        partition, source, path, _target = MENTION.read(row[:5])
        if row[5:] != (None, None):
            MENTION_END.read((partition, source, *row[5:]))
        yield source, path
