"""A controller: an informer, a work queue and one function."""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Awaitable, Callable

import structlog

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, WaitingError
from lehr.client.deltas import Delta
from lehr.client.informer import SharedInformer
from lehr.client.queue import WorkQueue
from lehr.model.asset import AssetId

log = structlog.get_logger()

_LEAST_SECONDS = 0.1
"""A function that always asks to be called again at once must not starve others, or signals."""

Reconcile = Callable[[AssetId], Awaitable[float | None]]
"""Brings one asset to its intended state. Reads the intended state from the informer (nothing, if the asset
is gone), and returns the seconds until its next call (at least 0.1), or None. It may raise any exception: it
is called again, after growing delays."""


class Controller:
    """Calls `reconcile` for every asset that has changed, several at a time, each asset once at a time.

    Level-triggered: a call stands for any number of changes, and for none (a resync, a retry).
    """

    def __init__(
        self,
        informer: SharedInformer,
        reconcile: Reconcile,
        clock: Clock,
        chance: Chance,
        *,
        workers: int = 4,
        wants: Callable[[Delta], AssetId | None] = lambda delta: delta.id,
    ) -> None:
        """`wants` returns the asset to reconcile after a change; None for none."""
        self._informer = informer
        self._reconcile = reconcile
        self._clock = clock
        self._workers = workers
        self._wants = wants
        self.queue: WorkQueue[AssetId] = WorkQueue(clock, chance)
        informer.add_handler(self._heard)

    def _heard(self, delta: Delta) -> None:
        id = self._wants(delta)
        if id is not None:
            self.queue.add(id, urgent=delta.before is not delta.after)  # the same in a resync

    async def run(self) -> None:
        """Run until cancelled. Nothing is reconciled before the informer has listed everything."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informer.run())
            await self._informer.listed()
            for _number in range(self._workers):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            id = await self.queue.take()
            try:
                await self._one(id)
            finally:
                self.queue.done(id)

    async def _one(self, id: AssetId) -> None:
        try:
            again = _seconds(await self._reconcile(id))
        except WaitingError as error:
            self.queue.add_after(id, max(_LEAST_SECONDS, error.until - self._clock.now()))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._failed(id, error)  # cancelled by what it waited for: this worker would vanish silently
        except Exception as error:
            self._failed(id, error)
        else:
            self.queue.forget(id)
            if again is not None:
                self.queue.add_after(id, again)

    def _failed(self, id: AssetId, error: BaseException) -> None:
        seconds = self.queue.retry(id)
        fields = {"asset": id, "again_in": round(seconds, 1)}
        if isinstance(error, LehrError):  # expected errors explain themselves
            log.warning("could not reconcile", error=str(error), **fields)
            return
        # Authors want the traceback, but not the values of variables that structlog adds by default.
        where = "".join(traceback.format_exception(error))
        log.warning(
            "could not reconcile", error=f"{type(error).__name__}: {error}", exception=where, **fields
        )


def _seconds(again: object) -> float | None:
    """Validate what a function returned: many are written without types.

    Raises:
        LehrError: it is neither seconds nor None.
    """
    if again is None:
        return None
    if isinstance(again, bool) or not isinstance(again, int | float) or math.isnan(again):
        raise LehrError(
            f"it has returned {repr(again)[:80]}",
            code="CLI161",
            why="that is neither seconds nor None",
            fix="return the seconds until it is to be asked again, or None",
        )
    return max(float(again), _LEAST_SECONDS)
