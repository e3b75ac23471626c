"""One call for what many ask for at about the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
A = TypeVar("A")


class Gathered(Generic[K, A]):
    """Answers single questions by calls that answer many: one is under way, and the next one gathers.

    Args:
        call: returns the answers in the order of the questions. Its error is raised to all who asked.
    """

    def __init__(self, call: Callable[[Sequence[K]], Awaitable[Sequence[A]]]) -> None:
        self._call = call
        self._waiting: list[tuple[K, asyncio.Future[A]]] = []
        self._work: asyncio.Task[None] | None = None

    async def ask(self, question: K) -> A:
        """The answer to one question."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._work is None:
            self._work = asyncio.create_task(self._answer_all())
        return await answer

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, []
                if still := [item for item in asked if not item[1].done()]:
                    await self._answer(still)
        finally:
            self._work = None

    async def _answer(self, asked: Sequence[tuple[K, asyncio.Future[A]]]) -> None:
        """Answer everybody who still waits: those who were cancelled do not."""
        try:
            answers = await self._call([question for question, _answer in asked])
        except Exception as error:
            for _question, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_question, answer), found in zip(asked, answers, strict=True):
            if not answer.done():
                answer.set_result(found)
