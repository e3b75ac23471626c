"""When a source is looked at again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable

from lehr.base.blocking import Inline
from lehr.sources.hints import Hints
from lehr.testing.virtual import VirtualClock, run


def times(
    act: Callable[[Hints, VirtualClock], Awaitable[None]],
    *,
    count: int,
    glance: Callable[[], Hashable] | None = None,
) -> list[float]:
    """Seconds after which the first `count` hints came, while `act` goes on beside."""

    async def main() -> list[float]:
        clock = VirtualClock()
        hints = Hints(clock, 10.0, glance=glance, blocking=Inline())
        start = clock.monotonic()
        changes = hints.changes()
        acting = asyncio.ensure_future(act(hints, clock))
        came = [round(clock.monotonic() - start, 3) async for _ in limited(changes, count)]
        await acting
        return came

    return run(main, seed=1)


async def limited(changes: AsyncIterator[None], count: int) -> AsyncIterator[None]:
    for _ in range(count):
        await anext(changes)
        yield


async def nothing(hints: Hints, clock: VirtualClock) -> None:
    pass


def test_a_hint_comes_with_each_poll() -> None:
    assert times(nothing, count=3) == [10.0, 20.0, 30.0]


def test_a_notification_is_a_hint_at_once_and_many_make_one() -> None:
    async def act(hints: Hints, clock: VirtualClock) -> None:
        await clock.sleep(3)
        hints.notify()
        hints.notify()

    assert times(act, count=2) == [3.0, 13.0]


def test_a_glance_that_differs_is_a_hint_before_the_next_poll() -> None:
    sight = [1]

    async def act(hints: Hints, clock: VirtualClock) -> None:
        await clock.sleep(4.05)
        sight[0] = 2

    assert times(act, count=2, glance=lambda: sight[0]) == [4.1, 14.1]


def test_what_happens_while_the_listener_is_busy_is_not_lost() -> None:
    async def main() -> float:
        clock = VirtualClock()
        hints = Hints(clock, 10.0, blocking=Inline())
        changes = hints.changes()
        await anext(changes)
        hints.notify()
        await clock.sleep(1)
        before = clock.monotonic()
        await anext(changes)
        return clock.monotonic() - before

    assert run(main, seed=1) == 0.0


def test_every_listener_is_told() -> None:
    async def main() -> list[None]:
        clock = VirtualClock()
        hints = Hints(clock, 10.0, blocking=Inline())
        waiting = [asyncio.ensure_future(anext(hints.changes())) for _ in range(3)]
        await clock.sleep(1)
        hints.notify()
        return list(await asyncio.gather(*waiting))

    assert run(main, seed=1) == [None, None, None]
