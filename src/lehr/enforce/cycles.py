"""Assets that wait for each other, so that none of them can go first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lehr.enforce.slot import Slot
from lehr.model.asset import AssetId


def cycle(slots: Mapping[AssetId, Slot], slot: Slot, waits_for: Iterable[AssetId]) -> tuple[AssetId, ...]:
    """Assets of which each waits for the next and the last for `slot`, which is the first.

    Empty without such a cycle. Only assets at rest that have seen the same checks count: their
    answers are final.

    Args:
        slots: of the partition, by id.
        waits_for: the assets that `slot` would wait for.
    """
    came_from = dict.fromkeys(waits_for, slot.key.id)
    ahead = list(came_from)
    for id in ahead:
        waits = _waits(slots.get(id), slot)
        if slot.key.id in waits:
            return _way(slot.key.id, id, came_from)
        for further in waits:
            if further not in came_from:
                came_from[further] = id
                ahead.append(further)
    return ()


def _waits(slot: Slot | None, asking: Slot) -> tuple[AssetId, ...]:
    if slot is None or slot.in_turn or slot.governance is None or asking.governance is None:
        return ()
    if slot.state.trouble.failed_diffs or slot.state.operation is not None:
        return ()  # It listens to its references, and no check made it wait for them.
    return slot.waits if slot.governance.sequence == asking.governance.sequence else ()


def _way(start: AssetId, end: AssetId, came_from: Mapping[AssetId, AssetId]) -> tuple[AssetId, ...]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))
