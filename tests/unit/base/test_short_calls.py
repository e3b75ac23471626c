"""One thread makes short calls of all kinds one after another; others join it when a call is slow."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from lehr.base import short_calls
from lehr.base.short_calls import ShortCalls

SHARED = "short calls_0"


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 20))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread joins where the shared one gets no processor for a while."""
    monkeypatch.setattr(short_calls, "_BRIEF_SECONDS", 60.0)


@pytest.mark.usefixtures("patient")
def test_calls_at_the_same_time_are_made_in_order_by_one_thread() -> None:
    async def main() -> None:
        calls = ShortCalls("short", 4)
        made: list[int] = []

        def make(number: int, *, times: int) -> tuple[int, str]:
            made.append(number)
            return number * times, threading.current_thread().name

        found = await asyncio.gather(*(calls.run(make, number, times=2) for number in range(200)))
        assert [number for number, _thread in found] == [2 * number for number in range(200)]
        assert made == list(range(200))
        assert {thread for _number, thread in found} == {SHARED}
        calls.close()

    run(main())


def test_an_error_reaches_only_its_caller() -> None:
    async def main() -> None:
        calls = ShortCalls("short", 2)
        failed, fine = await asyncio.gather(calls.run(int, "x"), calls.run(int, "7"), return_exceptions=True)
        assert isinstance(failed, ValueError)
        assert fine == 7
        calls.close()

    run(main())


def test_calls_that_hang_hold_up_no_others() -> None:
    async def main() -> None:
        calls = ShortCalls("short", 3)
        answers = threading.Event()
        hanging = [asyncio.create_task(calls.run(answers.wait)) for _ in range(2)]
        try:
            assert await calls.run(int, "1") == 1
            assert await calls.run(int, "2") == 2, "a thread that has left is replaced"
        finally:
            answers.set()
        assert await asyncio.gather(*hanging) == [True, True]
        assert await calls.run(int, "3") == 3
        calls.close()

    run(main())


@pytest.mark.usefixtures("patient")
def test_all_kinds_of_calls_share_a_thread() -> None:
    async def main() -> None:
        kinds = [ShortCalls(f"kind {number}", 4) for number in range(3)]
        found = await asyncio.gather(
            *(calls.run(lambda: threading.current_thread().name) for calls in kinds for _ in range(10))
        )
        assert set(found) == {SHARED}
        for calls in kinds:
            calls.close()

    run(main())


@pytest.mark.parametrize("size", [1, 2])
def test_a_kind_whose_call_hangs_leaves_the_others_threads_of_their_own(size: int) -> None:
    async def main() -> None:
        hangs, other = ShortCalls("hangs", 2), ShortCalls("other", size)
        own = {f"other_{number}" for number in range(size)}
        began, answers = threading.Event(), threading.Event()

        def hang() -> bool:
            began.set()
            return answers.wait()

        hanging = asyncio.create_task(hangs.run(hang))
        await asyncio.to_thread(began.wait)
        try:
            found = [await other.run(lambda: threading.current_thread().name) for _ in range(3)]
            assert set(found) <= own
        finally:
            answers.set()
        assert await hanging
        while (name := await other.run(lambda: threading.current_thread().name)) != SHARED:
            assert name in own
        for calls in (hangs, other):
            calls.close()

    run(main())


def test_calls_of_which_one_may_be_made_at_a_time_do_not_meet_where_the_shared_thread_comes_back() -> None:
    async def main() -> None:
        hangs, single = ShortCalls("hangs", 1), ShortCalls("single", 1)
        began, answers = threading.Event(), threading.Event()
        at_once: list[int] = []
        names: set[str] = set()

        def hang() -> bool:
            began.set()
            return answers.wait()

        def make() -> None:
            at_once.append(len(making))
            making.add(threading.current_thread().name)
            names.update(making)
            answers.set()
            time.sleep(0.05)
            making.clear()

        making: set[str] = set()
        hanging = asyncio.create_task(hangs.run(hang))
        await asyncio.to_thread(began.wait)
        try:
            await asyncio.gather(*(single.run(make) for _ in range(5)))
        finally:
            answers.set()
        assert await hanging
        assert at_once == [0] * 5
        assert "single_0" in names
        for calls in (hangs, single):
            calls.close()

    run(main())


def test_calls_that_follow_each_other_for_long_let_those_of_other_kinds_in() -> None:
    async def main() -> None:
        endless, other = ShortCalls("endless", 1), ShortCalls("other", 1)
        done = False

        async def go_on() -> None:
            while not done:
                await endless.run(time.sleep, 0.001)

        calls = [asyncio.create_task(go_on()) for _ in range(40)]  # some always wait
        await asyncio.sleep(0)
        try:
            while await other.run(lambda: threading.current_thread().name) != SHARED:
                pass
        finally:
            done = True
        await asyncio.gather(*calls)
        for short in (endless, other):
            short.close()

    run(main())


@pytest.mark.parametrize(
    ("made", "computed", "slow"),
    [(50, 0.1, False), (50, 0.01, True), (0, 0.1, True)],
    ids=["computes", "waits", "hangs"],
)
def test_others_join_only_where_that_makes_calls_faster(made: int, computed: float, slow: bool) -> None:
    progress = short_calls._Progress()
    progress.begin(5.0, 1.0)
    progress.made = made
    assert progress.is_slow(5.1, 1.0 + computed) is slow


def test_results_from_before_a_call_that_hangs_are_not_kept() -> None:
    async def main() -> None:
        calls = ShortCalls("short", 1)
        answers = threading.Event()
        quick = asyncio.create_task(calls.run(int, "1"))
        hanging = asyncio.create_task(calls.run(answers.wait))
        try:
            assert await quick == 1
        finally:
            answers.set()
        assert await hanging
        calls.close()

    run(main())


def test_a_call_that_was_cancelled_is_not_made() -> None:
    async def main() -> None:
        calls = ShortCalls("short", 1)
        began, answers, made = threading.Event(), threading.Event(), threading.Event()

        def hang() -> None:
            began.set()
            answers.wait()

        hanging = asyncio.create_task(calls.run(hang))
        cancelled = asyncio.create_task(calls.run(made.set))
        await asyncio.to_thread(began.wait)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        answers.set()
        await hanging
        await calls.run(int, "1")
        assert cancelled.cancelled()
        assert not made.is_set()
        calls.close()

    run(main())


def test_once_closed_it_makes_no_calls_and_leaves_nobody_waiting() -> None:
    async def main() -> None:
        calls = ShortCalls("short", 1)
        began, answers, made = threading.Event(), threading.Event(), threading.Event()

        def hang() -> None:
            began.set()
            answers.wait()

        hanging = asyncio.create_task(calls.run(hang))
        waiting = asyncio.create_task(calls.run(made.set))
        await asyncio.to_thread(began.wait)
        calls.close()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        answers.set()
        await hanging
        with pytest.raises(RuntimeError):
            await calls.run(made.set)
        assert not made.is_set()

    run(main())
