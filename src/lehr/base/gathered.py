"""One call for what many ask for at about the same time."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

G = TypeVar("G", bound=Hashable)
K = TypeVar("K")
A = TypeVar("A")


class Gathered(Generic[K, A]):
    """Answers single questions by calls that answer many: some are under way, and the next one gathers.

    Questions that wait are divided among the calls that may start.

    Args:
        call: returns the answers in the order of the questions. Its error is raised to all who asked.
        at_once: maximum number of calls under way.
        most: maximum number of questions of one call.
        ended: called when no call is under way and no question waits.
    """

    def __init__(
        self,
        call: Callable[[Sequence[K]], Awaitable[Sequence[A]]],
        *,
        at_once: int = 1,
        most: int = sys.maxsize,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        self._call = call
        self._at_once = at_once
        self._most = most
        self._ended = ended
        self._waiting: deque[tuple[K, asyncio.Future[A]]] = deque()
        self._callers: set[asyncio.Task[None]] = set()
        self._starting = False

    async def ask(self, question: K) -> A:
        """The answer to one question."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        self._start_caller()
        return await answer

    def _start_caller(self) -> None:
        """Start one more, unless one is starting: that one starts the next if it leaves questions."""
        if not self._starting and len(self._callers) < self._at_once:
            self._starting = True
            self._callers.add(asyncio.create_task(self._answer_all()))

    async def _answer_all(self) -> None:
        self._starting = False
        caller = asyncio.current_task()
        assert caller is not None
        try:
            while self._waiting:
                asked = list(self._take())
                if self._waiting:
                    self._start_caller()
                if still := [item for item in asked if not item[1].done()]:
                    await self._answer(still)
        finally:
            self._callers.discard(caller)
            if not self._callers:
                self._ended()

    def _take(self) -> Iterator[tuple[K, asyncio.Future[A]]]:
        """This caller's share: the others that may still start take as many."""
        callers = 1 + self._at_once - len(self._callers)
        for _ in range(min(self._most, -(-len(self._waiting) // callers))):
            yield self._waiting.popleft()

    async def _answer(self, asked: Sequence[tuple[K, asyncio.Future[A]]]) -> None:
        """Answer everybody who still waits: those who were cancelled do not."""
        try:
            answers = await self._call([question for question, _answer in asked])
        except Exception as error:
            for _question, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        except asyncio.CancelledError:
            for _question, answer in asked:
                answer.cancel()
            raise
        for (_question, answer), found in zip(asked, answers, strict=True):
            if not answer.done():
                answer.set_result(found)


class GatheredByGroup(Generic[G, K, A]):
    """The same for each group of questions on its own: one group never waits for another.

    Args:
        call: as for `Gathered`, with the group that all its questions belong to.
    """

    def __init__(
        self,
        call: Callable[[G, Sequence[K]], Awaitable[Sequence[A]]],
        *,
        at_once: int = 1,
        most: int = sys.maxsize,
    ) -> None:
        self._call = call
        self._at_once = at_once
        self._most = most
        self._groups: dict[G, Gathered[K, A]] = {}

    async def ask(self, group: G, question: K) -> A:
        """The answer to one question."""
        gathered = self._groups.get(group)
        if gathered is None:
            gathered = self._groups[group] = Gathered(
                lambda asked: self._call(group, asked),
                at_once=self._at_once,
                most=self._most,
                ended=lambda: self._groups.pop(group, None),
            )
        return await gathered.ask(question)
