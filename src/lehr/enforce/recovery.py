"""The work that a previous process left unfinished. Reads the store, changes nothing.

Invariant: I12. Everything that was started is found again: pushes that never ended are unknown
until they have been looked at, turndowns continue although intent no longer names the asset, and
released assets are still reported.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.enforce.state import State
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.damage import DamagedError
from lehr.model.decision import LEFT, Status
from lehr.model.diff import Goal
from lehr.model.handle import Handle
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.outputs import Outputs
from lehr.model.types import Registry
from lehr.sdk.store import Head, Records, StoredIntent


class Recovered(msgspec.Struct):
    """An asset that has a loop, and what its loop remembers.

    Attributes:
        digest: in the newest incarnation; None when the asset is no longer there.
        successor: the asset that has this id in the newest incarnation, if it is of another type.
        damage: of the record of its newest push, which may be under way; None as a rule.
    """

    id: AssetId
    type: str
    digest: Digest | None
    state: State = State()
    successor: Head | None = None
    damage: DamagedError | None = None


class Recovery(NamedTuple):
    """The work of a previous process, and what it knew.

    Attributes:
        assets: every asset of the newest incarnation, and those departed ones on which work is left.
        unwatched: handles and outputs of all other assets.
        orphans: the other assets that stay in production.
    """

    assets: list[Recovered]
    unwatched: dict[AssetId, State]
    orphans: set[AssetId]


def recover(intent: StoredIntent, records: Records, registry: Registry, partition: Partition) -> Recovery:
    """Find it in the store."""
    found = {
        head.id: Recovered(head.id, sys.intern(head.type), head.digest)
        for head in intent.heads(partition)
        if not registry.inert(head.type)
    }
    orphans = _recover_conditions(found, intent, records, registry, partition)
    for operation in records.open_operations(partition):
        item = found.get(operation.asset) or _departed(intent, registry, operation.key)
        if item is not None and item.type not in ("", operation.type) and item.digest is not None:
            # Its own plugin must find out how the push ended; the new asset with this id waits for
            # that.
            head = Head(item.id, item.type, item.digest)
            item = replace(item, type=operation.type, successor=head)
            found[item.id] = item
        if item is not None:
            item.state = replace(item.state, operation=operation)
            found[item.id] = item
    for entry in records.ledgers(partition):
        if (item := found.get(entry.asset)) is not None:
            item.state = replace(item.state, ledger=_sharing(entry, partition, item))
        elif entry.goal is Goal.ABSENT:
            orphans.discard(entry.asset)  # it was removed before, and never made again
    unwatched = _recover_handles_and_outputs(found, records, partition)
    for damaged in records.damaged_operations(partition):
        for id in damaged.assets:
            item = found.get(id) or _departed(intent, registry, AssetKey(partition, id))
            if item is not None:
                found[id] = replace(item, damage=damaged.error)
    return Recovery(list(found.values()), unwatched, orphans)


def _recover_conditions(
    found: dict[AssetId, Recovered],
    intent: StoredIntent,
    records: Records,
    registry: Registry,
    partition: Partition,
) -> set[AssetId]:
    """Give each asset its condition, and add departed ones on which work is left. Returns the orphans."""
    orphans: set[AssetId] = set()
    for standing in records.standings(partition):
        item, status = found.get(standing.asset), standing.condition.status
        if item is None and status is Status.ORPHANED:
            orphans.add(standing.asset)
        if item is None and status not in LEFT:
            # It has left intent, but not yet production or our care, as far as was found.
            item = _departed(intent, registry, AssetKey(partition, standing.asset))
        if item is not None:
            key = Digest(sys.intern(standing.key))
            item.state = State(condition_key=key, next_at=standing.condition.next_at)
            found[item.id] = item
    return orphans


def _sharing(entry: LedgerEntry, partition: Partition, item: Recovered) -> LedgerEntry:
    """`entry` with the texts of `item` where they are equal: of a million assets, that is 0.2 GB."""
    digest = item.digest if item.digest == entry.content_digest else entry.content_digest
    return replace(entry, partition=partition, asset=item.id, content_digest=digest)


def _recover_handles_and_outputs(
    found: Mapping[AssetId, Recovered], records: Records, partition: Partition
) -> dict[AssetId, State]:
    """Give each asset its handle and outputs. Returns those of other assets."""
    unwatched: dict[AssetId, State] = {}

    def remember(id: AssetId, **remembered: Handle | Outputs) -> None:
        if (item := found.get(id)) is not None:
            item.state = replace(item.state, **remembered)
        else:
            unwatched[id] = replace(unwatched.get(id, State()), **remembered)

    for handle in records.handles(partition):
        remember(handle.asset, handle=handle)
    for outputs in records.outputs(partition):
        remember(outputs.asset, outputs=outputs)
    return unwatched


def _departed(intent: StoredIntent, registry: Registry, key: AssetKey) -> Recovered | None:
    try:
        last = intent.last(key)
    except DamagedError:
        return Recovered(key.id, "", None)  # its turn reports what is damaged
    if last is None or registry.inert(last[0].type):
        return None
    return Recovered(key.id, last[0].type, None)


def unfinished_pushes(recovered: list[Recovered]) -> list[Operation]:
    """Pushes that a former process started and that have not ended."""
    operations = (item.state.operation for item in recovered)
    return [operation for operation in operations if operation is not None and operation.result is None]
