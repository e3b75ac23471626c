"""What every part of a running program needs."""

from __future__ import annotations

import msgspec

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.model.asset import Partition
from lehr.model.types import Registry
from lehr.sdk.store import Store


class Runtime(msgspec.Struct, frozen=True):
    """One partition's store and types, with the clock and randomness of the process that serves it."""

    partition: Partition
    store: Store
    registry: Registry
    clock: Clock
    chance: Chance
