"""Work queues: each item once, in nobody's hands twice, again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lehr.base.chance import Chance
from lehr.client import WorkQueue
from lehr.testing.virtual import VirtualClock, run


def queue(**options: float) -> WorkQueue[str]:
    return WorkQueue(VirtualClock(), Chance(1), **options)


def play(main: Coroutine[Any, Any, None]) -> None:
    async def started() -> None:
        await main

    run(started, seed=1)


def test_an_item_that_is_added_twice_is_taken_once() -> None:
    async def main() -> None:
        work = queue()
        for item in ("a", "b", "a"):
            work.add(item)
        assert [await work.take(), await work.take()] == ["a", "b"]
        assert len(work) == 0

    play(main())


def test_an_item_in_somebodys_hands_is_handed_out_again_only_after_he_is_done() -> None:
    async def main() -> None:
        work = queue()
        work.add("a")
        await work.take()
        work.add("a")
        work.add("b")
        assert await work.take() == "b"
        assert len(work) == 0
        work.done("a")
        assert await work.take() == "a"
        work.done("a")
        work.done("b")
        assert work.idle

    play(main())


def test_urgent_items_go_first_even_if_they_became_so_later() -> None:
    async def main() -> None:
        work = queue()
        work.add("resync", urgent=False)
        work.add("changed soon", urgent=False)
        work.add("changed")
        work.add("changed soon")
        assert [await work.take() for _ in range(3)] == ["changed", "changed soon", "resync"]

    play(main())


def test_an_item_that_became_urgent_in_somebodys_hands_comes_back_as_urgent() -> None:
    async def main() -> None:
        work = queue()
        work.add("a")
        await work.take()
        work.add("a", urgent=False)
        work.add("b", urgent=False)
        work.add("a")
        work.done("a")
        assert [await work.take() for _ in range(2)] == ["a", "b"]

    play(main())


def test_who_waits_gets_what_comes() -> None:
    async def main() -> None:
        work = queue()
        waiting = asyncio.create_task(work.take())
        await asyncio.sleep(1)
        work.add("a")
        assert await waiting == "a"

    play(main())


def test_a_retry_comes_later_and_later_until_it_is_forgotten() -> None:
    async def main() -> None:
        work, clock = queue(first=1.0, longest=8.0), VirtualClock()
        pauses = []
        for _ in range(6):
            began = clock.monotonic()
            work.retry("a")
            work.done(await work.take())
            pauses.append(clock.monotonic() - began)
        bounds = [1, 2, 4, 8, 8, 8]
        assert all(bound / 2 <= pause <= bound for pause, bound in zip(pauses, bounds, strict=True))
        assert work.failures("a") == 6
        work.forget("a")
        assert work.retry("a") <= 1.0

    play(main())


def test_of_two_times_the_sooner_one_counts() -> None:
    async def main() -> None:
        work, clock = queue(), VirtualClock()
        began = clock.monotonic()
        work.add_after("a", 60.0)
        work.add_after("a", 5.0)
        work.add_after("a", 30.0)
        work.done(await work.take())
        assert clock.monotonic() - began == 5.0
        await clock.sleep(100.0)
        assert work.idle

    play(main())


def test_a_closed_queue_takes_nothing_in_and_forgets_what_is_due_later() -> None:
    async def main() -> None:
        work = queue()
        work.add_after("a", 5.0)
        work.close()
        work.add("b")
        work.add_after("c", 1.0)
        await VirtualClock().sleep(10.0)
        assert len(work) == 0
        assert work.idle

    play(main())


@given(st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.sampled_from("abc")), max_size=60))
def test_nothing_that_was_added_is_lost_and_nothing_is_in_two_hands(steps: list[tuple[str, str]]) -> None:
    async def main() -> None:
        work = queue()
        owed: set[str] = set()
        taken: set[str] = set()
        for what, item in steps:
            if what == "add":
                work.add(item)
                owed.add(item)
            elif what == "take" and len(work):
                found = await work.take()
                assert found in owed
                assert found not in taken
                owed.discard(found)
                taken.add(found)
            elif what == "done" and item in taken:
                taken.discard(item)
                work.done(item)
        for item in sorted(taken):
            work.done(item)
        assert {await work.take() for _ in range(len(work))} == owed

    play(main())
