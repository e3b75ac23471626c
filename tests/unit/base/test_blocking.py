"""Calls that go on although nobody awaits them any more are known until they come back."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lehr.base.blocking import Background, Inline, Threads, Tracked
from lehr.base.clock import SystemClock


def test_a_call_whose_caller_was_cancelled_is_busy_until_it_comes_back() -> None:
    begun, let_go = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        assert let_go.wait(20)
        raise OSError("nobody hears of it")

    async def main() -> None:
        threads = Threads("test", 2)
        tracked = Tracked(threads)
        caller = asyncio.create_task(tracked.run("one", call))
        await threads.run(begun.wait, 20)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert (tracked.busy("one"), tracked.busy("other")) == (True, False)
        let_go.set()
        while tracked.busy("one"):
            await SystemClock().sleep(0.001)
        threads.close()

    asyncio.run(main())


def test_what_a_call_returns_and_raises_is_passed_on() -> None:
    def divide(number: int, *, by: int) -> int:
        return number // by

    async def main() -> None:
        tracked = Tracked(Inline())
        assert await tracked.run("one", divide, 6, by=2) == 3
        with pytest.raises(ZeroDivisionError):
            await tracked.run("one", divide, 6, by=0)
        assert not tracked.busy("one")

    asyncio.run(main())


def test_the_background_does_what_it_is_asked_once_at_a_time_and_before_it_is_closed() -> None:
    begun, go_on = threading.Event(), threading.Event()
    done = []

    def call() -> None:
        begun.set()
        assert go_on.wait(20)
        done.append(1)

    background = Background("test", call)
    assert background.ask()
    assert begun.wait(20)
    assert not background.ask()
    go_on.set()
    background.close()
    assert done == [1]
