"""When a source is looked at again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable

from lehr.base.blocking import Inline
from lehr.sources.hints import Hints, Sight
from lehr.testing.virtual import VirtualClock, run


def times(
    act: Callable[[Hints, VirtualClock], Awaitable[None]],
    *,
    count: int,
    sight: Callable[[Callable[[], None]], Sight] | None = None,
) -> list[float]:
    """Seconds after which the first `count` hints came, while `act` goes on beside."""

    async def main() -> list[float]:
        clock = VirtualClock()
        hints = Hints(clock, 10.0, sight=sight, blocking=Inline())
        start = clock.monotonic()
        changes = hints.changes()
        acting = asyncio.ensure_future(act(hints, clock))
        came = [round(clock.monotonic() - start, 3) async for _ in limited(changes, count)]
        await acting
        assert isinstance(changes, AsyncGenerator)
        await changes.aclose()
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


class Scene:
    """Something to look at. Whether its changes are reported is its own choice."""

    def __init__(self, *, reported: bool) -> None:
        self.value = 1
        self.reported = reported
        self.looks = 0
        self.closed = False
        self.wake: Callable[[], None] = lambda: None

    def open(self, wake: Callable[[], None]) -> Sight:
        self.wake = wake
        return self

    def look(self) -> Hashable:
        self.looks += 1
        return self.value

    def change(self) -> None:
        self.value += 1
        if self.reported:
            self.wake()

    def close(self) -> None:
        self.closed = True


def test_a_sight_that_differs_is_a_hint_before_the_next_poll() -> None:
    scene = Scene(reported=False)

    async def act(hints: Hints, clock: VirtualClock) -> None:
        await clock.sleep(4.05)
        scene.change()

    assert times(act, count=2, sight=scene.open) == [4.1, 14.1]


def test_a_reported_change_is_a_hint_at_once_and_nobody_looks_before() -> None:
    scene = Scene(reported=True)

    async def act(hints: Hints, clock: VirtualClock) -> None:
        await clock.sleep(4.05)
        scene.change()

    assert times(act, count=2, sight=scene.open) == [4.05, 14.05]
    assert scene.looks == 4  # before and at the change, after 5 s, and when due
    assert scene.closed


def test_reported_changes_are_not_more_than_ten_hints_each_second() -> None:
    scene = Scene(reported=True)

    async def act(hints: Hints, clock: VirtualClock) -> None:
        for _ in range(4):
            await clock.sleep(0.04)
            scene.change()

    assert times(act, count=3, sight=scene.open) == [0.04, 0.14, 0.24]


def test_a_notification_does_not_wait_for_the_pause_between_reported_changes() -> None:
    scene = Scene(reported=True)

    async def act(hints: Hints, clock: VirtualClock) -> None:
        scene.change()
        await clock.sleep(0.01)
        scene.change()
        await clock.sleep(0.01)
        hints.notify()

    assert times(act, count=2, sight=scene.open) == [0.0, 0.02]


def test_a_report_without_a_change_is_not_a_hint() -> None:
    scene = Scene(reported=True)

    async def act(hints: Hints, clock: VirtualClock) -> None:
        await clock.sleep(1)
        scene.wake()

    assert times(act, count=1, sight=scene.open) == [10.0]


def test_a_change_whose_report_is_lost_is_found_within_five_seconds() -> None:
    scene = Scene(reported=True)

    async def act(hints: Hints, clock: VirtualClock) -> None:
        await clock.sleep(1)
        scene.value = 2

    assert times(act, count=1, sight=scene.open) == [5.0]


def test_a_sight_that_no_longer_reports_is_looked_at_ten_times_a_second() -> None:
    scene = Scene(reported=True)

    async def act(hints: Hints, clock: VirtualClock) -> None:
        await clock.sleep(1)
        scene.reported = False
        scene.wake()
        await clock.sleep(0.25)
        scene.change()

    assert times(act, count=1, sight=scene.open) == [1.3]


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
