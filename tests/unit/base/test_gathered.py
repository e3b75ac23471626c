"""Questions that are asked at about the same time are answered by one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from lehr.base.gathered import Gathered, GatheredByGroup


class Calls:
    """Doubles numbers once it may; knows what it was asked for together."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, numbers: Sequence[int]) -> Sequence[int]:
        self.asked.append(list(numbers))
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return [2 * number for number in numbers]


def test_what_is_asked_during_a_call_makes_up_the_next() -> None:
    async def main() -> None:
        calls = Calls()
        gathered = Gathered(calls)
        first = asyncio.create_task(gathered.ask(1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        others = [asyncio.create_task(gathered.ask(number)) for number in (2, 3)]
        await asyncio.sleep(0)
        calls.may_answer.set()
        assert await asyncio.gather(first, *others) == [2, 4, 6]
        assert calls.asked == [[1], [2, 3]]
        assert await gathered.ask(4) == 8

    asyncio.run(main())


def test_an_error_reaches_everybody_who_asked_and_nobody_else() -> None:
    async def main() -> None:
        calls = Calls()
        gathered = Gathered(calls)
        calls.error = OSError("no disk")
        calls.may_answer.set()
        asking = [asyncio.create_task(gathered.ask(number)) for number in (1, 2)]
        await asyncio.wait(asking)
        assert [task.exception() for task in asking] == [calls.error, calls.error]
        calls.error = None
        assert await gathered.ask(3) == 6

    asyncio.run(main())


def test_one_who_no_longer_waits_takes_no_answer_from_the_others() -> None:
    async def main() -> None:
        calls = Calls()
        gathered = Gathered(calls)
        impatient, patient = (asyncio.create_task(gathered.ask(number)) for number in (1, 2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        left = asyncio.create_task(gathered.ask(3))
        await asyncio.sleep(0)
        left.cancel()
        calls.may_answer.set()
        assert await patient == 4
        assert await gathered.ask(4) == 8
        assert calls.asked == [[1, 2], [4]], "nothing is asked for those who have left"

    asyncio.run(main())


def test_questions_are_divided_among_calls_that_may_start() -> None:
    async def main() -> None:
        calls = Calls()
        gathered = Gathered(calls, at_once=3, most=3)
        asking = [asyncio.create_task(gathered.ask(number)) for number in range(12)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert calls.asked == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
        calls.may_answer.set()
        assert await asyncio.gather(*asking) == [2 * number for number in range(12)]
        assert calls.asked[3:] == [[9, 10, 11]]

    asyncio.run(main())


def test_a_group_waits_for_no_other() -> None:
    async def main() -> None:
        slow, asked = asyncio.Event(), list[tuple[str, list[int]]]()

        async def call(group: str, numbers: Sequence[int]) -> Sequence[int]:
            asked.append((group, list(numbers)))
            if group == "slow":
                await slow.wait()
            return [2 * number for number in numbers]

        gathered = GatheredByGroup(call)
        waits = asyncio.create_task(gathered.ask("slow", 1))
        assert list(await asyncio.gather(gathered.ask("a", 2), gathered.ask("a", 3))) == [4, 6]
        assert await gathered.ask("a", 4) == 8
        slow.set()
        assert await waits == 2
        assert asked == [("slow", [1]), ("a", [2, 3]), ("a", [4])]

    asyncio.run(main())


def test_nobody_waits_for_a_call_that_was_cancelled() -> None:
    async def main() -> None:
        async def call(numbers: Sequence[int]) -> Sequence[int]:
            raise asyncio.CancelledError

        asking = asyncio.create_task(Gathered(call).ask(1))
        await asyncio.wait({asking})
        assert asking.cancelled()

    asyncio.run(main())
