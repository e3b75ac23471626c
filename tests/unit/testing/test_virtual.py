import asyncio
import functools
import gc
from collections.abc import Coroutine
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.blocking import Inline, Threads
from lehr.base.clock import Clock
from lehr.testing.seal import NotVirtualError
from lehr.testing.virtual import (
    EPOCH,
    DeadlockError,
    UnhandledError,
    VirtualClock,
    VirtualLoop,
    run,
)

seeds = st.integers(0, 2**32)
delays = st.lists(st.sampled_from([0.0, 0.5, 1.0, 3600.0, 86400.0]), min_size=1, max_size=4)


def test_time_jumps_to_the_next_timer_and_stands_still_in_between() -> None:
    async def main() -> list[tuple[float, float]]:
        clock: Clock = VirtualClock()
        seen = [(clock.now(), clock.monotonic())]
        for seconds in (0.0, 86_400.0, 0.25):
            await clock.sleep(seconds)
            seen.append((clock.now(), clock.monotonic()))
        return seen

    assert run(main, seed=1) == [
        (EPOCH, 0.0),
        (EPOCH, 0.0),
        (EPOCH + 86_400, 86_400.0),
        (EPOCH + 86_400.25, 86_400.25),
    ]


def test_start_sets_the_wall_clock() -> None:
    async def main() -> float:
        return VirtualClock().now()

    assert run(main, seed=1, start=10.0) == 10.0


def test_a_jump_moves_one_wall_clock_and_no_timer() -> None:
    async def main() -> tuple[float, float, float]:
        ours, theirs = VirtualClock(), VirtualClock()
        sleeper = asyncio.create_task(ours.sleep(60))
        await ours.sleep(1)
        ours.jump(-3600)
        await sleeper
        return ours.now() - EPOCH, theirs.now() - EPOCH, ours.monotonic()

    assert run(main, seed=1) == (60 - 3600, 60, 60)


def trace(seed: int, plans: list[list[float]]) -> list[tuple[int, float]]:
    """Who woke up when, for tasks that sleep as `plans` say."""
    seen: list[tuple[int, float]] = []

    async def sleeper(name: int, plan: list[float]) -> None:
        for seconds in plan:
            await asyncio.sleep(seconds)
            seen.append((name, asyncio.get_running_loop().time()))

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for name, plan in enumerate(plans):
                group.create_task(sleeper(name, plan))

    run(main, seed=seed)
    return seen


@given(seeds, st.lists(delays, min_size=1, max_size=6))
def test_equal_seeds_give_equal_traces(seed: int, plans: list[list[float]]) -> None:
    assert trace(seed, plans) == trace(seed, plans)


@given(seeds, st.lists(delays, min_size=1, max_size=6))
def test_any_seed_keeps_the_order_of_time_and_loses_no_wakeup(seed: int, plans: list[list[float]]) -> None:
    seen = trace(seed, plans)
    assert [when for _, when in seen] == sorted(when for _, when in seen)
    for name, plan in enumerate(plans):
        ends = [sum(plan[: count + 1]) for count in range(len(plan))]
        assert [when for who, when in seen if who == name] == ends


def test_seeds_reach_every_order_of_tasks_that_are_ready_together() -> None:
    orders = {tuple(name for name, _ in trace(seed, [[1.0], [1.0], [1.0]])) for seed in range(100)}
    assert len(orders) == 6


def test_seeds_choose_among_timers_of_one_instant_but_not_against_time() -> None:
    def fired(seed: int) -> str:
        seen: list[str] = []

        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.call_at(2.0, seen.append, "late")
            loop.call_at(1.0, seen.append, "a")
            loop.call_at(1.0, seen.append, "b")
            await asyncio.sleep(3)

        run(main, seed=seed)
        return " ".join(seen)

    assert {fired(seed) for seed in range(20)} == {"a b late", "b a late"}


@given(seeds)
def test_plain_callbacks_run_in_the_order_of_their_scheduling(seed: int) -> None:
    seen: list[Any] = []

    async def task() -> None:
        seen.append("task")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        for number in range(5):
            future.add_done_callback(functools.partial(lambda number, _: seen.append(number), number))
        future.set_result(None)
        loop.create_task(task())  # noqa: RUF006 - outlived by main
        loop.call_soon(seen.append, 5)
        await asyncio.sleep(1)

    run(main, seed=seed)
    assert seen == [0, 1, 2, 3, 4, "task", 5]


def test_a_done_callback_has_run_before_the_task_that_awaits_goes_on() -> None:
    async def quick() -> None:
        pass

    async def main() -> None:
        tasks = {asyncio.create_task(quick()) for _ in range(5)}
        for task in tasks:
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        assert not tasks

    for seed in range(20):
        run(main, seed=seed)


def test_cancelling_tasks_out_of_a_set_wakes_them_in_an_order_of_the_seed_alone() -> None:
    def ended(seed: int) -> list[int]:
        seen: list[int] = []

        async def waiter(name: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                seen.append(name)

        async def main() -> None:
            tasks.extend(asyncio.create_task(waiter(name)) for name in range(20))
            await asyncio.sleep(1)

        tasks: list[asyncio.Task[None]] = []
        run(main, seed=seed)
        return seen

    first = ended(7)
    ballast = [bytearray(100) for _ in range(1000)]  # moves what the next run allocates
    assert ended(7) == first
    assert ended(8) != first
    assert ballast


def test_waiting_for_nothing_is_a_deadlock_that_names_who_waits_where() -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.sleep(5)
        await asyncio.create_task(stuck(), name="the stuck one")

    with pytest.raises(
        DeadlockError, match=r"2 pending.*main.*the stuck one \(.*stuck at .*locks\.py:\d+\)"
    ) as caught:
        run(main, seed=3)
    assert caught.value.__notes__ == ["virtual time: seed 3, 5 s after the start"]


def test_an_endless_sleep_counts_as_no_timer() -> None:
    async def main() -> None:
        await asyncio.sleep(float("inf"))

    with pytest.raises(DeadlockError):
        run(main, seed=1)


def test_a_task_that_waits_for_ever_is_no_deadlock_once_main_has_ended() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def main() -> str:
        task = asyncio.create_task(forever())
        await asyncio.sleep(1)
        return task.get_name() and "done"

    assert run(main, seed=1) == "done"
    assert ended == ["cancelled"]


def test_cancelled_timers_set_no_time_and_do_not_pile_up() -> None:
    async def main() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for _ in range(1000):
            async with asyncio.timeout(3600):
                await asyncio.sleep(0.001)
        return loop.time(), len(loop._scheduled)

    seconds, timers = run(main, seed=1)
    assert seconds == pytest.approx(1.0)
    assert timers < 250


def test_timeouts_are_virtual() -> None:
    async def main() -> float:
        try:
            async with asyncio.timeout(1e6):
                await asyncio.sleep(1e9)
        except TimeoutError:
            return asyncio.get_running_loop().time()
        return 0.0

    assert run(main, seed=1) == 1e6


async def failing() -> None:
    raise ZeroDivisionError("nobody looks")


def test_an_exception_that_no_task_retrieves_fails_the_run_while_its_task_lives() -> None:
    kept: list[asyncio.Task[None]] = []

    async def main() -> None:
        kept.append(asyncio.create_task(failing(), name="careless"))
        await asyncio.sleep(1)

    with pytest.raises(ZeroDivisionError) as caught:
        run(main, seed=1)
    assert "careless" in caught.value.__notes__[0]


def test_an_exception_that_no_task_retrieves_fails_the_run_when_its_task_is_gone() -> None:
    async def main() -> None:
        asyncio.create_task(failing())  # noqa: RUF006 - that is the point
        await asyncio.sleep(1)
        gc.collect()
        await asyncio.sleep(1)
        raise AssertionError("the run goes on after a task has failed")

    with pytest.raises(ZeroDivisionError):
        run(main, seed=1)


def test_a_callback_that_raises_fails_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(5, lambda: 1 / 0)
        await asyncio.sleep(10)

    with pytest.raises(ZeroDivisionError, match="division"):
        run(main, seed=1)


def test_a_problem_without_an_exception_fails_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "something is off"})
        await asyncio.sleep(10)

    with pytest.raises(UnhandledError, match="something is off"):
        run(main, seed=1)


def test_an_exception_that_was_retrieved_fails_nothing() -> None:
    async def main() -> None:
        task = asyncio.create_task(failing())
        await asyncio.wait([task])
        assert isinstance(task.exception(), ZeroDivisionError)

    run(main, seed=1)


def outside() -> dict[str, Any]:
    async def connection() -> None:
        await asyncio.open_connection("localhost", 1)

    async def server() -> None:
        await asyncio.start_server(lambda _, __: None, "localhost", 0)

    async def process() -> None:
        await asyncio.create_subprocess_exec("true")

    async def thread() -> None:
        await asyncio.to_thread(int)

    async def pool() -> None:
        threads = Threads("test", 1)
        try:
            await threads.run(int)
        finally:
            threads.close()

    async def reader() -> None:
        asyncio.get_running_loop().add_reader(0, int)

    return {call.__name__: call for call in (connection, server, process, thread, pool, reader)}


@pytest.mark.parametrize("call", outside())
def test_what_has_no_virtual_time_is_refused(call: str) -> None:
    def main() -> Coroutine[Any, Any, None]:
        return outside()[call]()  # type: ignore[no-any-return]

    with pytest.raises(NotVirtualError, match="under virtual time"):
        run(main, seed=1)


def test_another_thread_cannot_call_in() -> None:
    caught: list[BaseException] = []
    loops: SimpleQueue[asyncio.AbstractEventLoop] = SimpleQueue()

    def elsewhere() -> None:
        try:
            loops.get().call_soon_threadsafe(int)
        except NotVirtualError as error:
            caught.append(error)

    thread = Thread(target=elsewhere)  # begun before the run, in which none can be
    thread.start()

    async def main() -> None:
        loops.put(asyncio.get_running_loop())
        thread.join()

    run(main, seed=1)
    assert "another thread" in str(caught[0])


def test_blocking_calls_run_inline() -> None:
    async def main() -> int:
        return await Inline().run(max, 1, 2)

    assert run(main, seed=1) == 2


def test_asynchronous_generators_are_closed() -> None:
    ended: list[str] = []

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)
            ended.append("closed")

    async def main() -> None:
        async for _ in numbers():
            break
        await asyncio.sleep(2)

    run(main, seed=1)
    assert ended == ["closed"]


def test_a_virtual_clock_needs_a_virtual_loop() -> None:
    async def main() -> None:
        VirtualClock()

    with pytest.raises(NotVirtualError, match="virtual loop"):
        asyncio.run(main())


def test_the_standard_primitives_hold_under_every_order() -> None:
    """Locks, queues, semaphores, conditions, barriers and groups, with many interleavings."""

    async def main() -> None:
        lock, queue, room = asyncio.Lock(), asyncio.Queue[int](2), asyncio.Semaphore(2)
        condition, barrier = asyncio.Condition(), asyncio.Barrier(4)
        inside, got = 0, []

        async def worker(number: int) -> None:
            nonlocal inside
            await barrier.wait()
            async with lock:
                inside += 1
                await asyncio.sleep(0)
                assert inside == 1
                inside -= 1
            async with room:
                await queue.put(number)
            async with condition:
                condition.notify_all()

        async def consumer() -> None:
            for _ in range(4):
                got.append(await queue.get())
                queue.task_done()
            async with condition:
                await asyncio.wait_for(condition.wait_for(lambda: len(got) == 4), 5)

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(worker(number))
            group.create_task(consumer())
        await queue.join()
        assert sorted(got) == [0, 1, 2, 3]
        assert sum(await asyncio.gather(*(asyncio.sleep(1, number) for number in range(4)))) == 6

    for seed in range(50):
        run(main, seed=seed)
