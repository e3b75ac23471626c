"""Long loops on the event loop that let others run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from lehr.base.clock import Clock

T = TypeVar("T")

_LONGEST_SECONDS = 0.005
_LOOK_EVERY = 64


async def in_parts(items: Iterable[T], clock: Clock) -> AsyncIterator[T]:
    """Yield `items`; about every 5 ms, other tasks get a turn."""
    since = clock.monotonic()
    for number, item in enumerate(items, 1):
        yield item
        if number % _LOOK_EVERY == 0 and clock.monotonic() - since > _LONGEST_SECONDS:
            await clock.sleep(0)
            since = clock.monotonic()
