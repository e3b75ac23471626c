"""Who refers to whom, and who claims what: derived from the newest incarnation's assets."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.types import Registry
from lehr.store.damage import REBUILD, Advance, Damage, TypesOf
from lehr.store.sqlite.check.records import newest_of

_CURRENT = """
    SELECT v.id, v.type, v.body, v.digest FROM asset_current c JOIN asset_version v ON v.number = c.version
    WHERE c.partition = ? ORDER BY c.id
"""

_ABSENT = "the newest incarnation does not have it"


def check(db: sqlite3.Connection, partition: Partition, types: TypesOf, advance: Advance) -> Iterator[Damage]:
    """Indexes that contradict the assets, or that are of assets that are not there."""
    registry = types(partition)
    if registry is not None:
        for id, type, body, digest in db.execute(_CURRENT, (partition,)):
            advance(1)
            if type in registry.types:
                yield from _of_asset(db, partition, registry, Asset(id, type, body, Digest(digest)))
    yield from _of_none(db, partition)


def _of_asset(
    db: sqlite3.Connection, partition: Partition, registry: Registry, asset: Asset
) -> Iterator[Damage]:
    stored = db.execute(
        "SELECT path, target FROM mention WHERE partition = ? AND source = ? AND until IS NULL",
        (partition, asset.id),
    ).fetchall()
    expected = _asked(lambda: [(item.path, item.target) for item in registry.mentions(asset)])
    if expected is not None and set(stored) != set(expected):
        yield _differs(partition, asset.id, "refers to", stored, expected)
    claimed = db.execute(
        "SELECT claim FROM claim_current WHERE partition = ? AND asset = ?", (partition, asset.id)
    ).fetchall()
    claims = _asked(lambda: [(claim,) for claim in registry.claims(asset)])
    if claims is not None and set(claimed) != set(claims):
        yield _differs(partition, asset.id, "claims", claimed, claims)


def _asked(question: Callable[[], list[tuple[str, ...]]]) -> list[tuple[str, ...]] | None:
    """The answer; None for an asset that is of another version of its type, or damaged."""
    try:
        return question()
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
        return None


def _differs(
    partition: Partition,
    id: AssetId,
    verb: str,
    stored: Iterable[tuple[str, ...]],
    expected: Iterable[tuple[str, ...]],
) -> Damage:
    def said(items: Iterable[tuple[str, ...]]) -> str:
        return ", ".join(sorted(" ".join(item) for item in items)) or "nothing"

    return Damage(
        f"what asset {id} of {partition} {verb} is stored wrongly",
        f"it is {said(expected)}, and {said(stored)} is stored",
        REBUILD,
    )


def _of_none(db: sqlite3.Connection, partition: Partition) -> Iterator[Damage]:
    newest = newest_of(db, partition)
    strays = {
        "a reference is stored of": "SELECT DISTINCT source FROM mention m WHERE partition = ?1"
        " AND until IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM asset_current c WHERE c.partition = ?1 AND c.id = m.source)",
        "a claim is stored of": "SELECT DISTINCT asset FROM claim_current m WHERE partition = ?1"
        " AND NOT EXISTS (SELECT 1 FROM asset_current c WHERE c.partition = ?1 AND c.id = m.asset)",
    }
    for what, query in strays.items():
        for (id,) in db.execute(query, (partition,)):
            yield Damage(
                f"{what} asset {id} of {partition}", "the newest incarnation does not have it", REBUILD
            )
    for source, until in db.execute(
        "SELECT DISTINCT source, until FROM mention WHERE partition = ? AND until > ?", (partition, newest)
    ):
        yield Damage(
            f"a reference of asset {source} of {partition} ends with incarnation {until}",
            f"the newest is {newest}",
            REBUILD,
        )
