"""Dry turns: the plugins, checks, metrics and rollouts that they need, opened for a moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lehr.wiring.deployment import Deployment, plugins_file
from lehr.wiring.installed import calendars, checks, plugins
from lehr.wiring.metrics import looks
from lehr.wiring.remote_plugins import described, remote_plugins, remote_validators
from lehr.wiring.stores import registry_of

if TYPE_CHECKING:
    from lehr.dry_run.dry_turns import DryTurns
    from lehr.model.asset import Partition
    from lehr.query.partition_view import Reading
    from lehr.sdk.asked_validator import AskedValidator

_CLOSE_SECONDS = 5.0
_MOST_ABANDONED = 16
"""Calls of plugins that earlier dry runs of a server no longer wait for."""


@contextlib.asynccontextmanager
async def dry_turns(reading: Reading, deployment: Deployment) -> AsyncIterator[DryTurns]:
    """Dry turns of a partition while in this context. Reads the store on the event loop.

    Raises:
        StalledError: the types or the sources of metrics of this installation cannot be used.
    """
    from lehr.base.blocking import Inline
    from lehr.base.chance import Chance
    from lehr.base.clock import SystemClock
    from lehr.dry_run.dry_turns import DryTurns
    from lehr.sdk.runtime import Runtime
    from lehr.strategist.what_if import SupposedRollouts

    store, partition, clock = reading.store, reading.partition, SystemClock()
    registry = registry_of(store, partition)

    def rollouts() -> SupposedRollouts:
        return SupposedRollouts(store, registry, partition, calendars, clock.now())

    async with contextlib.AsyncExitStack() as opened:
        metrics = looks(deployment, patience=None)
        opened.push_async_callback(_close, metrics.close)
        found = plugins(deployment)
        for plugin in found:
            opened.push_async_callback(_close, plugin.close)
        await described(found)
        runtime = Runtime(partition, store, registry, clock, Chance(), Inline(), None, metrics)
        yield DryTurns(reading, runtime, found, checks(found), rollouts)


@contextlib.asynccontextmanager
async def opened_validators(deployment: Deployment) -> AsyncIterator[list[AskedValidator]]:
    """The validators of plugins in other processes while in this context. Their plugins start when asked.

    Raises:
        StalledError: the file of plugins cannot be used.
    """
    async with contextlib.AsyncExitStack() as opened:
        found = remote_plugins(deployment, ())
        for plugin in found:
            opened.push_async_callback(_close, plugin.close)
        yield remote_validators(found)


async def _close(close: Callable[[], Awaitable[object]]) -> None:
    """Close a plugin or the metrics. One that hangs or fails keeps no other open, and hides no answer."""
    from lehr.base.log import Log

    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await close()
    except Exception as error:
        Log().warning("a plugin could not be closed", error=f"{type(error).__name__}: {error}")


def recorded_deployment(state: Path, metrics: Path | None = None) -> Deployment | None:
    """The deployment of the workspace that a state folder was made for; None if that is not on this machine.

    Raises:
        LehrError: the record of the state folder cannot be read.
    """
    from lehr.control.state_folder import record_of

    record = record_of(state)
    if record is None or not record.path.is_dir():
        return None
    base = record.path
    return Deployment(location=str(base), state=state, base=base, metrics=metrics, plugins=plugins_file())


def _require_few_abandoned() -> None:
    """Calls that hang keep their threads, so a server must not make more and more of them."""
    from lehr.base.blocking import abandoned
    from lehr.base.errors import StalledError

    found = abandoned()
    if len(found) >= _MOST_ABANDONED:
        raise StalledError(
            "earlier dry runs still wait for production",
            code="WIR111",
            why=f"{len(found)} calls have not returned: {', '.join(sorted(set(found)))}",
            fix="find out what hangs, then restart the server",
        )


class DryRunsHere:
    """`lehr.http.dry_runs.DryRuns`: compares production from this machine."""

    def __init__(self, state: Path, metrics: Path | None, running: Deployment | None) -> None:
        """Dry runs of the partition that a state folder on this machine was made for.

        Args:
            metrics: configures sources of metrics, unless there is a run.
            running: that of the `lehr run` in this process, if any.
        """
        self._state = state
        self._metrics = metrics
        self._running = running

    def require(self, partition: Partition) -> None:
        """Check that production of a partition can be compared here.

        Invariant: relative paths of intent mean what they mean to the `lehr run` of the partition.

        Raises:
            LehrError: it cannot.
        """
        self._deployment(partition)

    def opened(self, reading: Reading) -> contextlib.AbstractAsyncContextManager[DryTurns]:
        """Dry turns of a partition.

        Raises:
            LehrError: as `require`.
            StalledError: as `dry_turns`; or calls of earlier ones hang.
        """
        deployment = self._deployment(reading.partition)
        _require_few_abandoned()
        return dry_turns(reading, deployment)

    def _deployment(self, partition: Partition) -> Deployment:
        from lehr.base.errors import LehrError
        from lehr.control.state_folder import record_of

        found = self._running or recorded_deployment(self._state, self._metrics)
        record = record_of(self._state)
        if found is not None and record is not None and record.partition == partition:
            return found
        raise LehrError(
            f"this server cannot compare production of {partition}",
            code="WIR110",
            why=f"its state folder is not that of a `lehr run` of {partition} on this machine",
            fix=f"ask the server on the machine of the `lehr run` of {partition}, or run `lehr why` there",
        )
