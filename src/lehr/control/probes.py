"""What programs that watch a running control plane ask for: its health and its metrics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.control.health import Health, alive, ready
from lehr.control.metrics import Gauges, Metrics
from lehr.control.plane import ControlPlane
from lehr.model.operation import Operation
from lehr.model.outputs import Outputs
from lehr.sdk.store import Standing

log = Log()

_LOOK_SECONDS = 1.0


class Probes:
    """Answers from memory, on the event loop: a store that hangs delays no answer.

    Use as a context, in which things are counted.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._runtime = plane.runtime
        self._metrics = Metrics(plane.runtime.clock)

    def alive(self) -> Health:
        """Whether the loops make progress; if not, a restart helps."""
        return alive(self._plane.vitals())

    def ready(self) -> Health:
        """Whether it does its work, and otherwise what hinders it."""
        return ready(self._plane.vitals())

    def metrics(self) -> str:
        """Figures in the text format of Prometheus."""
        plane, enforcer = self._plane, self._plane.enforcer
        return self._metrics.text(
            Gauges(
                partition=plane.partition,
                assets=enforcer.assets,
                unsettled=enforcer.unsettled_count,
                queued=enforcer.queued,
                epoch=enforcer.epoch,
                enforcing=not plane.standby,
                ready=self.ready().ok,
                source_looked_at=plane.source_looked_at,
                rollouts=plane.rollouts,
                plugins=plane.meters,
            )
        )

    @contextlib.asynccontextmanager
    async def counting(self) -> AsyncIterator[None]:
        """Counts while in this context."""
        plane, metrics = self._plane, self._metrics
        plane.commit_listeners.append(metrics.committed)
        plane.turn_listeners.append(metrics.turned)
        plane.listeners.append(metrics.attempted)
        recovering = asyncio.create_task(self._recover(), name="metrics")
        try:
            yield
        finally:
            recovering.cancel()
            plane.commit_listeners.remove(metrics.committed)
            plane.turn_listeners.remove(metrics.turned)
            plane.listeners.remove(metrics.attempted)

    async def _recover(self) -> None:
        """Begin with the conditions in the store, each time that this process has taken the lease."""
        epoch = 0
        while True:
            if not self._plane.standby and self._plane.enforcer.epoch != epoch:
                taken = self._plane.enforcer.epoch
                self._metrics.begin()
                try:
                    self._metrics.recovered(*await self._runtime.reading.run(self._recorded))
                    epoch = taken
                except LehrError as error:
                    log.warning("metrics wait for the store", error=str(error))
            await self._runtime.clock.sleep(_LOOK_SECONDS)

    def _recorded(self) -> tuple[list[Standing], list[Operation], list[Outputs]]:
        records, partition = self._runtime.store.records, self._runtime.partition
        unsettled = [item for item in records.standings(partition) if not item.condition.status.settled]
        return unsettled, records.open_operations(partition), list(records.outputs(partition))
