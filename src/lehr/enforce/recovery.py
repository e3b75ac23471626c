"""Where a new process takes up what a former one left. Reads the store, changes nothing.

Invariant: I12. Whatever had been started is found again: pushes that never ended are unknown until
they have been looked at, and turndowns go on although intent does not name the asset any more.
"""

from __future__ import annotations

import msgspec

from lehr.base.digest import Digest
from lehr.enforce.reading import RememberedIntent
from lehr.enforce.state import State
from lehr.model.addons import TURNDOWN
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Goal
from lehr.model.operation import Operation
from lehr.model.types import Registry, addon_names
from lehr.store import Records


class Recovered(msgspec.Struct):
    """An asset that has a loop, and what its loop remembers.

    Attributes:
        digest: in the newest incarnation; None when it is not there any more.
    """

    id: AssetId
    type: str
    digest: Digest | None
    state: State = State()


def recover(
    intent: RememberedIntent, records: Records, registry: Registry, partition: Partition
) -> list[Recovered]:
    """Every asset of the newest incarnation, and those departed ones on which work is left."""
    found = {
        head.id: Recovered(head.id, head.type, head.digest)
        for head in intent.heads(partition)
        if not registry.governs(head.type)
    }
    for entry in records.ledgers(partition):
        item = found.get(entry.asset)
        if item is None and entry.goal is not Goal.ABSENT:
            item = _departed(intent, partition, entry.asset, only_if_turned_down=True)
        if item is not None:
            item.state = msgspec.structs.replace(item.state, ledger=entry)
            found[item.id] = item
    for operation in records.open_operations(partition):
        item = found.get(operation.asset) or _departed(intent, partition, operation.asset)
        if item is not None:
            item.state = msgspec.structs.replace(item.state, operation=operation)
            found[item.id] = item
    for standing in records.standings(partition):
        item = found.get(standing.asset)
        if item is not None:
            due = standing.condition.next_at
            item.state = msgspec.structs.replace(item.state, standing=standing.key, next_at=due)
    return list(found.values())


def _departed(
    intent: RememberedIntent, partition: Partition, id: AssetId, *, only_if_turned_down: bool = False
) -> Recovered | None:
    last = intent.last(AssetKey(partition, id))
    if last is None or (only_if_turned_down and TURNDOWN not in addon_names(last[0])):
        return None
    return Recovered(id, last[0].type, None)


def left_under_way(recovered: list[Recovered]) -> list[Operation]:
    """Pushes that a former process had started and that nobody has ended."""
    operations = (item.state.operation for item in recovered)
    return [operation for operation in operations if operation is not None and operation.result is None]
