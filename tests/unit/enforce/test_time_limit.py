"""A time limit holds for whoever waits, however often, and leaves everything else as it was."""

import asyncio

import pytest

from lehr.enforce.time_limit import call_on_first_wait, within
from lehr.testing.virtual import DeadlockError, run


def test_what_does_not_wait_answers_or_raises_at_once() -> None:
    async def answer() -> int:
        return 7

    async def fail() -> int:
        raise ValueError("no")

    async def main() -> float:
        assert await within(0.0, answer()) == 7
        with pytest.raises(ValueError, match="no"):
            await within(0.0, fail())
        return asyncio.get_running_loop().time()

    assert run(main, seed=1) == 0.0


def test_what_waits_goes_on_with_what_it_waited_for() -> None:
    async def work(answers: list[asyncio.Future[int]]) -> int:
        total = 0
        for answer in answers:
            await asyncio.sleep(0)
            total += await answer
        return total

    async def main() -> int:
        loop = asyncio.get_running_loop()
        answers = [loop.create_future() for _ in range(3)]
        for place, answer in enumerate(answers, 1):
            loop.call_later(place, answer.set_result, place)
        return await within(3.5, work(answers))

    assert run(main, seed=1) == 6


def test_what_is_waited_for_may_fail_and_the_failure_may_be_caught() -> None:
    async def work(answer: asyncio.Future[int]) -> str:
        try:
            await answer
        except OSError as error:
            await asyncio.sleep(1)
            return str(error)
        return "nothing"

    async def main() -> str:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        loop.call_later(1, answer.set_exception, OSError("lost"))
        return await within(10, work(answer))

    assert run(main, seed=1) == "lost"


def test_what_takes_longer_is_cancelled_at_the_limit() -> None:
    ended: list[float] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1)
            await asyncio.sleep(100)
        finally:
            ended.append(asyncio.get_running_loop().time())

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await within(2.5, work())
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    run(main, seed=1)
    assert ended == [2.5]


def test_a_cancellation_from_outside_is_no_timeout() -> None:
    async def main() -> None:
        task = asyncio.create_task(within(10, asyncio.sleep(5)))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main, seed=1)


def test_a_deadlock_names_the_line_at_which_the_work_stands() -> None:
    async def stands() -> None:
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError) as caught:
        run(lambda: call_on_first_wait(lambda: None, stands()), seed=1)
    assert "locks.py" in caught.value.why


def test_who_waits_is_told_of_once_and_who_does_not_wait_never() -> None:
    told: list[str] = []

    async def work(times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(1)

    async def main() -> list[bool]:
        return [await call_on_first_wait(lambda: told.append("waits"), work(times)) for times in (0, 3, 0)]

    assert run(main, seed=1) == [False, True, False]
    assert told == ["waits"]
