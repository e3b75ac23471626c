"""Generating what may be overtaken by something newer before it is done."""

from __future__ import annotations

import asyncio
import contextlib

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.sdk.generation import Generated, Generation, Overtakable
from lehr.sdk.source import Snapshot, Source, revisions_of

_LOOK_SECONDS = 2.0
"""After which a generation that is under way is asked whether it is worth going on with."""


async def generated_unless_overtaken(
    generation: Generation, snapshot: Snapshot, source: Source, clock: Clock, blocking: Blocking
) -> Generated:
    """What `snapshot` declares. Every now and then `source` is asked whether there is something newer.

    Raises:
        OvertakenError: there is.
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
