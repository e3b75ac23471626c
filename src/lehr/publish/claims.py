"""What a candidate claims in production: asked about before it is judged, taken before it is published."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lehr.base.blocking import Blocking
from lehr.base.diagnostics import Diagnostic, Severity
from lehr.base.errors import LehrError
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.decision import LEFT, Status
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry, addon_names
from lehr.publish.predecessor import leaving
from lehr.sdk.claims import Claims, Conflict, NoRegisterError
from lehr.sdk.store import Store

NOT_COMPARED = "VAL033"

Claimed = Mapping[AssetId, Sequence[str]]


class Compared(NamedTuple):
    """What registers say of a candidate.

    Attributes:
        warnings: one for each that could not be read.
        notes: one for each that there is not, as before the first `lehr run`.
    """

    conflicts: tuple[Conflict, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


def claims_of(changes: Iterable[AssetChange], registry: Registry) -> Claimed:
    """All that each changed asset that stays in production claims from now on."""
    staying = (change.after for change in changes if change.after is not None and not leaves(change.after))
    return {asset.id: registry.claims(asset) for asset in staying}


def claim_anything(changes: Iterable[AssetChange], registry: Registry) -> bool:
    """Whether an asset that changes does, or did: only then a register that cannot be used is in the way."""
    both = (asset for change in changes for asset in (change.before, change.after))
    return any(asset is not None and registry.claims(asset) for asset in both)


async def conflicts_of(
    claims: Claims,
    partition: Partition,
    claimed: Claimed,
    newest: Callable[[Iterable[AssetId]], Awaitable[Claimed]],
) -> Sequence[Conflict]:
    """What keeps `claimed` from being taken.

    What another asset of this partition has moved away from does not: it may pass on within a partition.

    Args:
        newest: looks up what others claim, of those that there are.
    """
    found = await claims.conflicts(partition, claimed)
    holders = {item.holder.asset for item in found if item.holder.ours and not item.protected}
    holders -= claimed.keys()
    if not holders:
        return found
    again = await claims.conflicts(partition, {**await newest(sorted(holders)), **claimed})
    return [item for item in again if item.asset in claimed]


async def take(claims: Claims, partition: Partition, claimed: Claimed) -> Diagnostic | None:
    """Take what stays in production claims; or why that cannot be.

    Nothing is released: it may not be published after all, and production holds what was claimed before.
    Within this partition a claim passes on: validation has found that its holder has moved or left.
    """
    try:
        conflicts = await claims.take(partition, claimed, only=False)
        if conflicts and all(item.holder.ours and not item.protected for item in conflicts):
            over = {item.holder.asset for item in conflicts}
            conflicts = await claims.take(partition, claimed, only=False, over=over)
    except LehrError as error:
        return register_unusable(error)
    return taken_meanwhile(conflicts) if conflicts else None


def leaves(asset: Asset) -> bool:
    """Whether an asset is turned down."""
    return TURNDOWN in addon_names(asset)


async def take_up(
    claims: Claims, partition: Partition, store: Store, registry: Registry, blocking: Blocking
) -> None:
    """Have a register that does not know this partition learn what it claims.

    It was lost, or the partition was published before there was one. What others hold stays theirs; pushes
    of those assets wait.
    """
    newest = store.intent.newest(partition)
    if newest is None or await claims.known(partition):
        return
    claimed = await blocking.run(held, store, partition, newest.sequence, registry)
    await claims.take_free(partition, claimed)


def held(store: Store, partition: Partition, sequence: int, registry: Registry) -> Claimed:
    """What the assets of the newest incarnation claim, and those that it does not have any more, by id.

    Not what its turndown has removed from production. O(all).
    """
    types = sorted(name for name, item in registry.types.items() if item.claims is not None)
    found = {asset.id: asset for asset in store.intent.assets(partition, sequence, types)}
    for standing in store.records.standings(partition):
        key, status = AssetKey(partition, standing.asset), standing.condition.status
        asset = found.get(key.id)
        if asset is not None and leaves(asset) and status is Status.TURNED_DOWN:
            del found[key.id]
        elif asset is None and status not in LEFT and not any(store.intent.heads(partition, (key.id,))):
            asset = leaving(store.intent, store.records, registry, key)
            found |= {} if asset is None else {key.id: asset}
    return {asset.id: registry.claims(asset) for asset in found.values()}


async def compare(
    registers: Iterable[Claims],
    partition: Partition,
    changes: Iterable[AssetChange],
    assets: Mapping[AssetId, Asset],
    registry: Registry,
) -> Compared:
    """What keeps `changes` from being published, as far as the registers can be read. Nothing is taken.

    Args:
        assets: all that there are after them.
    """

    async def newest(ids: Iterable[AssetId]) -> Claimed:
        return {id: registry.claims(assets[id]) for id in ids if id in assets}

    claimed = claims_of(changes, registry)
    if not any(claimed.values()):
        return Compared()
    conflicts: dict[Conflict, None] = {}
    warnings, notes = [], []
    for register in registers:
        try:
            conflicts |= dict.fromkeys(await conflicts_of(register, partition, claimed, newest))
        except NoRegisterError as error:
            notes.append(f"claims are not compared with those of other partitions: {error}")
        except LehrError as error:
            warnings.append(_not_compared(error))
    return Compared(tuple(conflicts), tuple(warnings), tuple(notes))


def _not_compared(error: LehrError) -> Diagnostic:
    return Diagnostic(
        code=NOT_COMPARED,
        what=f"claims are not compared with those of other partitions: {error.what}",
        why=error.why,
        fix="`lehr run` compares them before it publishes",
        severity=Severity.WARNING,
    )


def taken_meanwhile(conflicts: Sequence[Conflict]) -> Diagnostic:
    """Another partition was faster, between validation and publication."""
    first = next((conflict for conflict in conflicts if not conflict.holder.ours), conflicts[0])
    holder = f"`{first.holder.asset}`" if first.holder.ours else f"partition {first.holder.partition}"
    who = f"{first.protected} now has" if first.protected else f"{holder} has just claimed"
    return Diagnostic(
        code="PUB008",
        what=f"{who} {first.what}",
        why=f"`{first.asset}` claims it, too; nothing is published before that is settled",
        fix="the next look at the source reports it at its line",
        subject=first.asset,
    )


def register_unusable(error: LehrError) -> Diagnostic:
    """It is not known what other partitions of this host claim."""
    return Diagnostic(
        code="PUB008",
        what=f"claims cannot be compared with those of other partitions: {error}",
        why="two partitions could push against each other",
        fix=error.fix,
    )
