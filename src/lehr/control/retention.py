"""Pruning during a run: in small shares, so that no push waits for it for long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.control.commands import pruned_summary
from lehr.model.asset import Partition
from lehr.model.writes import Prune, Pruned

log = Log()

_FIRST_SECONDS = 600.0
_EVERY_SECONDS = 6 * 3600.0
_PAUSE_SECONDS = 1.0
_ROWS = 2_000


class Retention(msgspec.Struct, frozen=True):
    """What stays although nothing needs it: anything younger than `seconds`, and the newest incarnations."""

    seconds: float = 90 * 86_400.0
    incarnations: int = 1000


async def pruned(
    ask: Callable[[Prune], Awaitable[Any]], wanted: Prune, pause: Callable[[], Awaitable[None]]
) -> Pruned:
    """Prune to the end, share by share, with a pause after each.

    Raises:
        LehrError: the store cannot be read or written, or the rows that show what is needed are damaged.
    """
    total = Pruned(rest=wanted)
    while total.rest is not None:
        total = total.plus(await ask(total.rest))
        await pause()
    return total


async def keep_pruned(
    partition: Partition,
    retention: Retention,
    ask: Callable[[Prune], Awaitable[Any]],
    clock: Clock,
    removed: Callable[[float], None] = lambda at: None,
) -> None:
    """Prune periodically until cancelled. Failures are logged and tried again the next time.

    Args:
        removed: called with the time (wall-clock seconds) when something was removed.
    """
    await clock.sleep(_FIRST_SECONDS)
    while True:
        wanted = Prune(partition, retention.incarnations, clock.now() - retention.seconds, _ROWS)
        try:
            total = await pruned(ask, wanted, lambda: clock.sleep(_PAUSE_SECONDS))
        except LehrError as error:
            log.warning("history could not be pruned; retrying later", error=str(error))
        else:
            if total != Pruned():
                removed(clock.now())
                log.warning("history was pruned", removed=pruned_summary(total))
        await clock.sleep(_EVERY_SECONDS)
