"""Stores and threads for reading."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TypeVar

from lehr.base.blocking import Blocking, Threads
from lehr.http.limits import Limits
from lehr.http.problems import ProblemError
from lehr.http.sieves import Sieves
from lehr.sdk.store import Store

T = TypeVar("T")


class _Turns:
    """A few slots that clients take in turn: a client with many requests only delays its own."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def take(self, client: str) -> None:
        """Wait for a slot."""
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # it was granted at the same moment
            raise

    def leave(self) -> None:
        """Give the slot to the client that has waited longest for its turn."""
        while self._waiting:
            client, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[client] = turns  # behind all others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Readers:
    """Answers questions about a store, several at a time, clients by turns; the number that waits is bounded.

    Each thread has a store to itself while it reads.
    """

    def __init__(self, open_store: Callable[[], Store], blocking: Blocking, most: int, places: int) -> None:
        """At most `most` questions wait or are being answered at a time.

        Args:
            places: threads of `blocking`.
        """
        self._turns = _Turns(places)
        self._open = open_store
        self._blocking = blocking
        self._most = most
        self._asked = 0
        self._idle: list[Store] = []
        self._closed = False

    async def ask(self, question: Callable[[Store], T], client: str = "") -> T:
        """The answer of `question` to a store.

        Args:
            client: the asking client; each has its turn after all others.

        Raises:
            ProblemError: too many are waiting.
        """
        return await self.run(lambda: self._answer(question), client)

    async def run(self, work: Callable[[], T], client: str = "") -> T:
        """As `ask`, for what needs no store."""
        if self._asked >= self._most:
            raise ProblemError(
                "Busy",
                "too many requests are waiting",
                code="HTP117",
                why=f"{self._most} requests are waiting",
                fix="try again in a second",
            )
        self._asked += 1
        try:
            await self._turns.take(client)
            try:
                return await self._blocking.run(work)
            finally:
                self._turns.leave()
        finally:
            self._asked -= 1

    def _answer(self, question: Callable[[Store], T]) -> T:
        store = self._idle.pop() if self._idle else self._open()
        try:
            answer = question(store)
        except BaseException:
            store.close()  # whatever happened, the next one starts with a new store
            raise
        if self._closed:
            store.close()
        else:
            self._idle.append(store)
        return answer

    def close(self) -> None:
        """Close the stores; those in use close when they are returned."""
        self._closed = True
        self._blocking.close()
        while self._idle:
            self._idle.pop().close()


class Pools:
    """The readers for each kind of question.

    Attributes:
        plain: cheap ones.
        filtering: pages whose filter is heavy.
        whole: questions about everything.
        selecting: questions to target selection.
        apart: whether the server is healthy.
        dry: dry runs.
        sieves: run heavy filters of pages.
    """

    def __init__(self, open_store: Callable[[], Store], limits: Limits) -> None:
        def readers(name: str, threads: int, most: int = limits.asked) -> Readers:
            return Readers(open_store, Threads(name, threads), most, threads)

        self.plain = readers("http", limits.threads)
        self.filtering = readers("http-filter", limits.filter_processes)
        self.whole = readers("http-whole", 1)
        self.selecting = readers("http-select", 1)
        self.apart = readers("http-apart", 1)
        self.dry = readers("http-dry-run", 1, limits.dry_runs)
        self.sieves = Sieves(limits)

    def close(self) -> None:
        """Close them all."""
        for pool in (self.plain, self.filtering, self.whole, self.selecting, self.apart, self.dry):
            pool.close()
        self.sieves.close()
