"""A candidate's claims in production: looked up before validation, taken before publication."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from lehr.base.blocking import Blocking
from lehr.base.diagnostics import Diagnostic, Severity
from lehr.base.errors import LehrError
from lehr.model.addons import is_turned_down
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.decision import LEFT, Status
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry
from lehr.publish.predecessor import leaving
from lehr.sdk.claims import Claims, Conflict, NoRegisterError
from lehr.sdk.store import Store

NOT_COMPARED = "VAL033"

Claimed = Mapping[AssetId, Sequence[str]]


class Compared(NamedTuple):
    """Information from the registers of claims about a candidate.

    Attributes:
        warnings: one for each register that could not be read.
        notes: one for each missing register, as before the first `lehr run`.
    """

    conflicts: tuple[Conflict, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


def claims_of(changes: Iterable[AssetChange], registry: Registry) -> Claimed:
    """Everything that each changed asset that stays in production will claim from now on."""
    staying = (
        change.after for change in changes if change.after is not None and not is_turned_down(change.after)
    )
    return {asset.id: registry.claims(asset) for asset in staying}


def claim_anything(changes: Iterable[AssetChange], registry: Registry) -> bool:
    """Whether a changing asset has or had claims: only then does an unusable register block publication."""
    both = (asset for change in changes for asset in (change.before, change.after))
    return any(asset is not None and registry.claims(asset) for asset in both)


async def conflicts_of(
    claims: Claims,
    partition: Partition,
    claimed: Claimed,
    newest: Callable[[Iterable[AssetId]], Awaitable[Claimed]],
) -> Sequence[Conflict]:
    """Problems that prevent taking `claimed`.

    A claim that another asset of this partition has moved away from is not one: it may pass on within a
    partition.

    Args:
        newest: looks up the claims of other existing assets.
    """
    found = await claims.conflicts(partition, claimed)
    holders = {item.holder.asset for item in found if item.holder.ours and not item.protected}
    holders -= claimed.keys()
    if not holders:
        return found
    again = await claims.conflicts(partition, {**await newest(sorted(holders)), **claimed})
    return [item for item in again if item.asset in claimed]


async def take(claims: Claims, partition: Partition, claimed: Claimed) -> Diagnostic | None:
    """Take the claims of what stays in production; return what prevents that.

    Nothing is released: the publication may still fail, and production holds what was claimed before. Within
    this partition a claim passes on: validation has found that its holder has moved or left.
    """
    try:
        conflicts = await claims.take(partition, claimed, only=False)
        if conflicts and all(item.holder.ours and not item.protected for item in conflicts):
            over = {item.holder.asset for item in conflicts}
            conflicts = await claims.take(partition, claimed, only=False, over=over)
    except LehrError as error:
        return register_unusable(error)
    return taken_meanwhile(conflicts) if conflicts else None


async def take_up(
    claims: Claims, partition: Partition, store: Store, registry: Registry, blocking: Blocking
) -> None:
    """Enter this partition's claims in a register that does not know the partition.

    The register was lost, or the partition was published before the register existed. Claims of other
    holders stay; pushes of assets that need them wait.
    """
    newest = store.intent.newest(partition)
    if newest is None or await claims.known(partition):
        return
    claimed = await blocking.run(held, store, partition, newest.sequence, registry)
    await claims.take_free(partition, claimed)


def held(store: Store, partition: Partition, sequence: int, registry: Registry) -> Claimed:
    """Claims, by id, of the assets of the newest incarnation and of those that it no longer has.

    Excludes what turndown has removed from production. O(all).
    """
    types = sorted(name for name, item in registry.types.items() if item.claims is not None)
    found = {asset.id: asset for asset in store.intent.assets(partition, sequence, types)}
    for standing in store.records.standings(partition):
        key, status = AssetKey(partition, standing.asset), standing.condition.status
        asset = found.get(key.id)
        if asset is not None and is_turned_down(asset) and status is Status.TURNED_DOWN:
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
    """Problems that prevent publishing `changes`, as far as registers are readable. Nothing is taken.

    Args:
        assets: all assets after the changes.
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
        fix="`lehr run` will compare them before it publishes",
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
        why=f"`{first.asset}` claims it as well; nothing is published until that is resolved",
        fix="the next pass over the source reports it with its line",
        subject=first.asset,
    )


def register_unusable(error: LehrError) -> Diagnostic:
    """The claims of other partitions of this host are unknown."""
    return Diagnostic(
        code="PUB008",
        what=f"claims cannot be compared with those of other partitions: {error}",
        why="two partitions could undo each other's pushes",
        fix=error.fix,
    )
