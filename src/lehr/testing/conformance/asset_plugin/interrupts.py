"""Interrupting a coroutine in one of its waits, whichever that is."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_MOST_WAITS = 10_000

_Interrupt = Callable[[], Coroutine[Any, Any, object]]


@dataclass
class _Waits:
    interrupt_at: int
    seen: int = 0


async def waits_of(coroutine: Coroutine[Any, Any, object]) -> int:
    """Run `coroutine` to its end, and return how often it waited."""
    waits = _Waits(sys.maxsize)
    await asyncio.ensure_future(_interrupted(waits, coroutine, _cancelled))
    return waits.seen


async def cancelled_at(step: int, coroutine: Coroutine[Any, Any, object]) -> bool:
    """Run `coroutine`, cancelled while it waits for the `step`th time. False if it waits less often."""
    waits = _Waits(step)
    task = asyncio.ensure_future(_interrupted(waits, coroutine, _cancelled))
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
    return waits.seen >= step


async def overtaken_at(step: int, coroutine: Coroutine[Any, Any, object], other: _Interrupt) -> bool:
    """Run `coroutine`, and all of `other` while it waits for the `step`th time.

    False if it waits less often; then `other` does not run.
    """
    waits = _Waits(step)
    await asyncio.ensure_future(_interrupted(waits, coroutine, other))
    return waits.seen >= step


def spread(waits: int, most: int | None) -> Iterator[int]:
    """At which of `waits` waits to interrupt: every one, or `most` that are evenly spread.

    Continues after the last wait if every one is wanted: the next run may wait more often than the
    last. The caller stops iterating after a run that waited less often than that.
    """
    if most is None or waits <= most:
        yield from range(1, _MOST_WAITS)
    else:
        yield from sorted({1 + (waits - 1) * number // max(1, most - 1) for number in range(most)})


async def _cancelled() -> None:
    """Have the current task cancelled from outside as soon as it waits."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().call_soon(task.cancel)


@types.coroutine
def _interrupted(
    waits: _Waits, coroutine: Coroutine[Any, Any, T], interrupt: _Interrupt
) -> Generator[Any, Any, T]:
    """Awaits what `coroutine` awaits, and `interrupt` before one of the waits."""
    thrown: BaseException | None = None
    while True:
        try:
            waiting = coroutine.send(None) if thrown is None else coroutine.throw(thrown)
        except StopIteration as stop:
            result: T = stop.value
            return result
        waits.seen += 1
        if waits.seen == waits.interrupt_at:
            yield from interrupt().__await__()
        thrown = None
        try:
            yield waiting
        except BaseException as error:
            thrown = error
