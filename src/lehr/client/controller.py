"""A controller: an informer, a work queue and one function."""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, WaitingError, raised_as
from lehr.base.log import Log
from lehr.client.deltas import Delta
from lehr.client.informer import SharedInformer
from lehr.client.queue import WorkQueue
from lehr.model.asset import Asset, AssetId
from lehr.sdk.watch import Watchable

log = Log()

_LEAST_SECONDS = 0.1
"""A function that always requests an immediate call must not starve others, or signals."""

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
    ) -> None:
        self._informer = informer
        self._reconcile = reconcile
        self._clock = clock
        self._workers = workers
        self.queue: WorkQueue[AssetId] = WorkQueue(clock, chance)
        informer.add_handler(self._enqueue)

    def _enqueue(self, delta: Delta) -> None:
        self.queue.add(delta.id, urgent=delta.before is not delta.after)  # both are the same in a resync

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
            self._failed(id, error)  # cancelled by the awaited function: this worker would vanish silently
        except Exception as error:
            self._failed(id, error)
        else:
            self.queue.forget(id)
            if again is not None:
                self.queue.add_after(id, again)

    def _failed(self, id: AssetId, error: BaseException) -> None:
        seconds = self.queue.retry(id)
        fields = {"asset": id, "again_in": round(seconds, 1)}
        if isinstance(error, LehrError):  # expected errors are self-explanatory
            log.warning("reconciliation failed", error=str(error), **fields)
            return
        # Authors want the traceback, but not the values of variables that structlog adds by default.
        where = "".join(traceback.format_exception(error))
        log.warning(
            "reconciliation failed", error=f"{type(error).__name__}: {error}", exception=where, **fields
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
            f"the function returned {repr(again)[:80]}",
            code="CLI161",
            why="this is neither a number of seconds nor None",
            fix="return the seconds until the next call, or None",
        )
    return max(float(again), _LEAST_SECONDS)


T = TypeVar("T")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One asset to reconcile. The request does not contain what changed, or whether anything did.

    Attributes:
        id: of the asset.
        asset: as it is intended now; None if intent does not have it (any more). That alone does not ask for
            removal: the addon `lehr.Turndown` does, as can a field of the payload.
        intent: all assets that the controller watches.
        clock: to read the time and to sleep, so that a test can simulate hours.
    """

    id: AssetId
    asset: Asset | None
    intent: SharedInformer
    clock: Clock

    def payload(self, kind: type[T]) -> T:
        """The payload as `kind`: a `msgspec.Struct` with the fields of the type, or `dict`.

        Raises:
            LehrError: intent does not have the asset, or its payload is not a `kind`.
        """
        if self.asset is None:
            raise LehrError(f"{self.id} has no payload", code="CLI166", why="intent does not contain it")
        payload = self.asset.document()["payload"]
        what = f"the payload of {self.id} is not a {kind.__name__}"
        fix = f"give {kind.__name__} the fields listed by `lehr explain {self.asset.type}`"
        with raised_as(LehrError, what, code="CLI167", fix=fix, on=msgspec.ValidationError):
            return msgspec.convert(payload, kind)


Reconciler = Callable[[Request], Awaitable[float | None]]
"""Brings production to the requested state. Returns the seconds until its next call, even if nothing changes,
or None. When it raises, it is called again, after growing delays: it must continue from a half-done state. It
is called for several assets concurrently, but for each asset once at a time."""


def controller_of(
    reconciler: Reconciler, watchable: Watchable, clock: Clock, chance: Chance, *, workers: int = 4
) -> Controller:
    """A controller that calls `reconciler` for every asset of `watchable`; `run` it."""
    intent = SharedInformer(watchable, clock, chance)

    async def reconcile(id: AssetId) -> float | None:
        return await reconciler(Request(id=id, asset=intent.get(id), intent=intent, clock=clock))

    return Controller(intent, reconcile, clock, chance, workers=workers)
