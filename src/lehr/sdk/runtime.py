"""Values that every part of a running program needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.model.asset import Partition
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.sdk.calendars import Calendars, no_calendars
from lehr.sdk.metrics import NO_METRICS, Metrics
from lehr.sdk.store import Store
from lehr.sdk.target_selection import Selections, no_selections

if TYPE_CHECKING:
    from lehr.base.blocking import Blocking


class Runtime(msgspec.Struct, frozen=True):
    """One partition's store and types, with the clock and randomness of the process that serves it.

    Attributes:
        reading: runs reads of the store, off the event loop.
        only: the assets that get turns; None for all. Others are not pushed, and are only compared where a
            selected one depends on them.
        metrics: answers questions of checks about production.
        selections: target selections that are not Lehr's own.
        calendars: reads when pushes may not start.
    """

    partition: Partition
    store: Store
    registry: Registry
    clock: Clock
    chance: Chance
    reading: Blocking
    only: Selector | None = None
    metrics: Metrics = NO_METRICS
    selections: Selections = no_selections
    calendars: Calendars = no_calendars
