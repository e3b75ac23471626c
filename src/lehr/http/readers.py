"""Stores to read from, and threads to do it in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lehr.base.blocking import Blocking
from lehr.http.problems import ProblemError
from lehr.store import Store

T = TypeVar("T")


class Readers:
    """Answers what is asked of a store, several at a time, and no more than that wait.

    Each thread that reads has a store for itself while it does.
    """

    def __init__(self, open_store: Callable[[], Store], blocking: Blocking, most: int) -> None:
        """At most `most` questions wait or are answered at a time."""
        self._open = open_store
        self._blocking = blocking
        self._most = most
        self._asked = 0
        self._idle: list[Store] = []
        self._closed = False

    async def ask(self, question: Callable[[Store], T]) -> T:
        """What `question` makes of a store.

        Raises:
            ProblemError: too many are waiting.
        """
        if self._asked >= self._most:
            raise ProblemError(
                "Busy", "too many requests are waiting", why=f"{self._most} are", fix="try again in a second"
            )
        self._asked += 1
        try:
            return await self._blocking.run(self._answer, question)
        finally:
            self._asked -= 1

    def _answer(self, question: Callable[[Store], T]) -> T:
        store = self._idle.pop() if self._idle else self._open()
        try:
            answer = question(store)
        except BaseException:
            store.close()  # whatever it was, the next one begins anew
            raise
        if self._closed:
            store.close()
        else:
            self._idle.append(store)
        return answer

    def close(self) -> None:
        """Close the stores; those that are read from close when they are handed back."""
        self._closed = True
        self._blocking.close()
        while self._idle:
            self._idle.pop().close()
