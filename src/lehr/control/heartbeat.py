"""The last heartbeat of the `lehr run` of a state folder, which outlives the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from lehr.base.clock import Clock

_NAME = "last-run"
_SECONDS = 5.0


@contextlib.asynccontextmanager
async def beating(state: Path, clock: Clock) -> AsyncIterator[None]:
    """Writes a heartbeat to the state folder every few seconds, and a last one at the end."""
    task = asyncio.create_task(_beat_on(state, clock), name="heartbeat")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        _beat(state, clock)


def last_seen(state: Path) -> float | None:
    """Wall-clock seconds of the last heartbeat; None if no `lehr run` was ever active on this state."""
    try:
        return (state / _NAME).stat().st_mtime
    except OSError:
        return None


async def _beat_on(state: Path, clock: Clock) -> None:
    while True:
        _beat(state, clock)
        await clock.sleep(_SECONDS)


def _beat(state: Path, clock: Clock) -> None:
    now = clock.now()
    # Writes that matter report a disk that is full or read-only.
    with contextlib.suppress(OSError):
        file = state / _NAME
        if not file.exists():
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(file, (now, now))
