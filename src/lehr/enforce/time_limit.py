"""Calls that cost next to nothing when they do not wait.

Most turns look at production that answers immediately, from memory, and wait for nothing. Under
virtual time all do.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Result of `work`, which is cancelled if it takes longer than `seconds`.

    The limit is set up when `work` waits for the first time: `asyncio.timeout` costs 4 us, a fifth
    of a turn whose plugin answers immediately.

    Raises:
        TimeoutError: it took longer.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    async with asyncio.timeout(seconds):
        return await _rest(work, waits_for)


async def call_on_first_wait(on_first_wait: Callable[[], None], work: Coroutine[Any, Any, None]) -> bool:
    """Do `work`; calls `on_first_wait` when it waits for the first time. Returns whether it waited."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        return False
    on_first_wait()
    await _rest(work, waits_for)
    return True


@types.coroutine
def _rest(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """Continue `work`, which waits for `waits_for`: what `yield from` does after its first step."""
    while True:
        try:
            try:
                answer = yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:
                waits_for = work.throw(error)
            else:
                waits_for = work.send(answer)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
