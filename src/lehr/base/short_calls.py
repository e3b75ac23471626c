"""Threads for calls that are short as a rule: one thread makes them one after another.

Several would hand the interpreter lock to each other at each system call, which costs more than the call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from lehr.base.blocking import Threads

P = ParamSpec("P")
T = TypeVar("T")

_BRIEF_SECONDS = 0.1
"""How long calls wait for one thread. After that others join it, since what they ask is slow, or hangs."""

_PART = 16
"""Waiting calls for each thread that joins."""

_GATHER_SECONDS = 0.002
"""How long a thread keeps results in order to hand over several at once, while further calls wait."""


class _Call:
    __slots__ = ("answer", "asked_at", "error", "make", "result")

    def __init__(self, make: Callable[[], Any], answer: asyncio.Future[Any], asked_at: float) -> None:
        self.make = make
        self.answer = answer
        self.asked_at = asked_at
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.make()
        except BaseException as error:
            self.error = error

    def deliver(self) -> None:
        if self.answer.done():
            return  # it was cancelled
        if self.error is None:
            self.answer.set_result(self.result)
        elif isinstance(self.error, asyncio.CancelledError):
            self.answer.cancel()
        else:
            self.answer.set_exception(self.error)


class ShortCalls:
    """`lehr.base.blocking.Blocking`, for calls that seldom take longer than a millisecond.

    A call that hangs delays others by a tenth of a second. Belongs to one event loop.

    Args:
        name: of the threads.
        size: maximum number of threads.
    """

    def __init__(self, name: str, size: int) -> None:
        self._threads = Threads(name, size)
        self._size = size
        self._waiting: deque[_Call] = deque()
        self._made: deque[_Call] = deque()
        self._joined: set[asyncio.Task[None]] = set()
        self._newest: asyncio.Task[None] | None = None
        self._delivering = False
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Call(partial(call, *args, **kwargs), answer, loop.time()))
        if self._newest is None:
            self._join()
        return await answer

    def close(self) -> None:
        self._threads.close()
        self._give_up(asyncio.CancelledError())

    def _join(self) -> None:
        """Have one more thread make calls that wait."""
        loop = asyncio.get_running_loop()
        self._newest = thread = loop.create_task(self._threads.run(self._make_all, loop))
        self._joined.add(thread)
        thread.add_done_callback(self._left)
        if self._timer is None:
            self._timer = loop.call_later(_BRIEF_SECONDS, self._look)

    def _left(self, thread: asyncio.Task[None]) -> None:
        """A thread has found no call that waits; one may have come since."""
        self._joined.discard(thread)
        if thread is self._newest:
            self._newest = None
        self._deliver()
        if thread.cancelled():
            self._give_up(asyncio.CancelledError())
        elif error := thread.exception():
            self._give_up(error)
        elif self._waiting and self._newest is None:
            self._join()

    def _look(self) -> None:
        """Have more threads join if a call waits for too long: those that have joined are slow, or hang."""
        self._timer = None
        self._deliver()  # such a thread may have kept some results
        loop = asyncio.get_running_loop()
        waiting = tuple(self._waiting)
        if waiting and loop.time() - waiting[0].asked_at >= _BRIEF_SECONDS:
            for _ in range(min(-(-len(waiting) // _PART), self._size - len(self._joined))):
                self._join()
        if self._joined and self._timer is None:
            self._timer = loop.call_later(_BRIEF_SECONDS, self._look)

    def _give_up(self, error: BaseException) -> None:
        while self._waiting:
            call = self._waiting.popleft()
            call.error = error
            call.deliver()

    def _deliver(self) -> None:
        self._delivering = False  # first: what a thread adds from now on may need another delivery
        while self._made:
            self._made.popleft().deliver()

    # --- in a thread -------------------------------------------------------------

    def _make_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make calls until none waits. Several threads may do so."""
        since = loop.time()
        while True:
            try:
                call = self._waiting.popleft()
            except IndexError:
                return
            if call.answer.done():
                continue
            call.run()
            self._made.append(call)
            if loop.time() - since >= _GATHER_SECONDS and not self._delivering:
                self._delivering = True
                loop.call_soon_threadsafe(self._deliver)
                since = loop.time()
