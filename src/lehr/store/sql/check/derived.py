"""References and claims: derived from the newest incarnation's assets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.damage import REBUILD, Advance, Damage, TypesOf
from lehr.model.types import Registry
from lehr.store.sql.check.records import newest_of
from lehr.store.sql.check.row_pairs import gathered, side_by_side
from lehr.store.sql.session import Session

_CURRENT = """
    SELECT v.id, v.type, v.body, v.digest FROM asset_current c JOIN asset_version v ON v.number = c.version
    WHERE c.partition = ? ORDER BY c.id
"""

_ABSENT = "the newest incarnation does not have it"


def check(db: Session, partition: Partition, types: TypesOf, advance: Advance) -> Iterator[Damage]:
    """Indexes that contradict the assets, or belong to assets that do not exist."""
    registry = types(partition)
    if registry is None:
        yield from _of_none(db, partition)
        return
    assets = db.stream(_CURRENT, (partition,))
    mentions = db.stream(
        "SELECT source, path, target FROM mention WHERE partition = ? AND until IS NULL ORDER BY source",
        (partition,),
    )
    claims = db.stream(
        "SELECT asset, claim FROM claim_current WHERE partition = ? ORDER BY asset", (partition,)
    )
    both = side_by_side(gathered(mentions), gathered(claims))
    for _id, row, stored in side_by_side(assets, both):
        if row is None:
            continue
        advance(1)
        id, type, body, digest = row
        if type in registry.types:
            _same, mentioned, claimed = stored or (id, None, None)
            yield from _of_asset(
                partition,
                registry,
                Asset(id, type, body, Digest(digest)),
                mentioned[1] if mentioned else [],
                claimed[1] if claimed else [],
            )
    yield from _of_none(db, partition)


def _of_asset(
    partition: Partition,
    registry: Registry,
    asset: Asset,
    mentioned: list[tuple[str, ...]],
    claimed: list[tuple[str, ...]],
) -> Iterator[Damage]:
    expected = _asked(lambda: [(item.path, item.target) for item in registry.mentions(asset)])
    if expected is not None and set(mentioned) != set(expected):
        yield _differs(partition, asset.id, "refers to", mentioned, expected)
    claims = _asked(lambda: [(claim,) for claim in registry.claims(asset)])
    if claims is not None and set(claimed) != set(claims):
        yield _differs(partition, asset.id, "claims", claimed, claims)


def _asked(question: Callable[[], list[tuple[str, ...]]]) -> list[tuple[str, ...]] | None:
    """The answer; None for an asset that is damaged, or of another version of its type."""
    try:
        return question()
    except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _differs(
    partition: Partition,
    id: AssetId,
    verb: str,
    stored: Iterable[tuple[str, ...]],
    expected: Iterable[tuple[str, ...]],
) -> Damage:
    def listed(items: Iterable[tuple[str, ...]]) -> str:
        return ", ".join(sorted(" ".join(item) for item in items)) or "nothing"

    return Damage(
        f"the record of what asset {id} of {partition} {verb} is wrong",
        f"it is {listed(stored)}, and should be {listed(expected)}",
        REBUILD,
    )


def _of_none(db: Session, partition: Partition) -> Iterator[Damage]:
    newest = newest_of(db, partition)
    strays = {
        "there is a reference of": "SELECT DISTINCT source FROM mention m WHERE partition = :partition"
        " AND until IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM asset_current c WHERE c.partition = m.partition AND c.id = m.source)",
        "there is a claim of": "SELECT DISTINCT asset FROM claim_current m WHERE partition = :partition"
        " AND NOT EXISTS (SELECT 1 FROM asset_current c WHERE c.partition = m.partition AND c.id = m.asset)",
    }
    for what, query in strays.items():
        for (id,) in db.execute(query, {"partition": partition}):
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
