"""The activity of a control plane, as lines of the log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from lehr.base.clock import SystemClock
from lehr.cli.run_log import emit, verbose
from lehr.control.activity_log import MINUTE, ActivityLog, Level, LogLine
from lehr.control.plane import ControlPlane
from lehr.model.asset import AssetKey
from lehr.model.writes import Write


@contextlib.asynccontextmanager
async def logged_activity(plane: ControlPlane) -> AsyncIterator[None]:
    """Logs what the control plane does while in this context."""
    clock = SystemClock()
    activity = ActivityLog(clock, lambda id: plane.enforcer.type_of(id))

    def committed(writes: Sequence[Write], answers: Sequence[object]) -> None:
        for line in activity.committed(writes, answers):
            emit(line)

    def turned(asset: AssetKey, cause: str, seconds: float) -> None:
        text = f"turn of {asset.id} in {seconds * 1000:.1f}ms: {cause}"
        emit(LogLine(clock.now(), Level.DEBUG, "turn", text, {"asset": asset.id, "cause": cause}))

    async def count() -> None:
        while True:
            await clock.sleep(MINUTE)
            for line in activity.due():
                emit(line)

    plane.commit_listeners.append(committed)
    if verbose():
        plane.turn_listeners.append(turned)
    counting = asyncio.create_task(count(), name="log")
    try:
        yield
    finally:
        counting.cancel()
        for line in activity.rest():
            emit(line)
