"""Failed pushes, as the process that serves a partition remembers them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lehr.enforce.memory import NO_MEMORY, Memory, memory_after
from lehr.model.asset import AssetId
from lehr.sdk.runtime import Runtime

Memories = Callable[[AssetId], Memory]
"""The memory of an asset in a running process."""


def no_memories(_id: AssetId) -> Memory:
    """Nothing, as after a start."""
    return NO_MEMORY


def remembered(runtime: Runtime) -> Memories:
    """The memories of the process that recorded the newest decision on an asset. They read the store."""
    records, partition, clock = runtime.store.records, runtime.partition, runtime.clock

    def memory(id: AssetId) -> Memory:
        numbers = [number for number, _decision in records.decisions(partition, id, 1)]
        recorded = records.decision(partition, numbers[0]) if numbers else None
        if recorded is None or not recorded[1]:
            return NO_MEMORY
        try:
            return memory_after(*recorded, clock.now(), clock.monotonic())
        except msgspec.DecodeError:
            return NO_MEMORY

    return memory
