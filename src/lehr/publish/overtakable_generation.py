"""Generation that stops when a newer revision overtakes it."""

from __future__ import annotations

import asyncio
import contextlib

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.sdk.generation import Generated, Generation, Overtakable
from lehr.sdk.source import Snapshot, Source, revisions_of

_LOOK_SECONDS = 2.0
"""Interval at which a running generation checks whether it is still worth continuing."""


async def generated_unless_overtaken(
    generation: Generation, snapshot: Snapshot, source: Source, clock: Clock, blocking: Blocking
) -> Generated:
    """Generate what `snapshot` declares, checking `source` for a newer revision now and then.

    Raises:
        OvertakenError: there is a newer revision.
        LehrError: as `Generation.generate`.
    """
    if not isinstance(generation, Overtakable):
        return await generation.generate(snapshot)
    looking = asyncio.create_task(_overtake(generation, snapshot, source, clock, blocking))
    try:
        return await generation.generate(snapshot)
    finally:
        looking.cancel()


async def _overtake(
    generation: Overtakable, snapshot: Snapshot, source: Source, clock: Clock, blocking: Blocking
) -> None:
    while True:
        await clock.sleep(_LOOK_SECONDS)
        with contextlib.suppress(LehrError):
            newest = await blocking.run(source.newest)
            if revisions_of(newest) != revisions_of(snapshot):
                generation.overtake()
