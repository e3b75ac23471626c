"""Threads for calls that are short as a rule: one thread makes them one after another.

Several would hand the interpreter lock to each other at each system call, which costs more than the call.
That is true of calls of different kinds as well, so all of them share this thread. It stays one as long as
the process computes; others join it when calls are slow, or hang.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from lehr.base.blocking import SharedThread, Threads
from lehr.base.clock import processor_seconds

P = ParamSpec("P")
T = TypeVar("T")

_BRIEF_SECONDS = 0.1
"""How long calls wait for one thread. After that others may join it."""

_COMPUTING = 0.7
"""Seconds of processor time in a second, of the whole process. More threads then make nothing faster."""

_PART = 16
"""Waiting calls for each thread that joins."""

_GATHER_SECONDS = 0.01
"""How long a thread keeps results in order to hand over several at once, while further calls wait."""

_TURN_SECONDS = _BRIEF_SECONDS
"""How long the shared thread makes the calls of one `ShortCalls` before it makes those of others. Long, since
calls that are answered together also continue together."""


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


class _Progress:
    """Finds out whether threads compute, or wait.

    Attributes:
        made: calls made since `begin`.
    """

    def __init__(self) -> None:
        self.made = 0
        self._began = 0.0
        self._computed = 0.0

    def begin(self, now: float, computed: float) -> None:
        """Begin at a moment, in monotonic seconds and in seconds of processor time."""
        self.made, self._began, self._computed = 0, now, computed

    def is_slow(self, now: float, computed: float) -> bool:
        """Whether no call was made since `begin`, or the process has been waiting. Also begins again."""
        slow = not self.made or computed - self._computed < _COMPUTING * (now - self._began)
        self.begin(now, computed)
        return slow


class ShortCalls:
    """`lehr.base.blocking.Blocking`, for calls that seldom take longer than a millisecond.

    A call that hangs delays others, of any kind, by a tenth of a second. After that, the shared thread is not
    used until it has come back. Belongs to one event loop.

    Args:
        name: of the threads.
        size: maximum number of threads, and of calls at the same time.
    """

    def __init__(self, name: str, size: int) -> None:
        self._threads = Threads(name, size)
        self._shared = SharedThread(name)
        self._in_shared: asyncio.Task[None] | None = None
        self._to_begin: deque[None] = deque()
        self._size = size
        self._closed = False
        self._waiting: deque[_Call] = deque()
        self._made: deque[_Call] = deque()
        self._joined: set[asyncio.Task[None]] = set()
        self._newest: asyncio.Task[None] | None = None
        self._delivering = False
        self._timer: asyncio.TimerHandle | None = None
        self._progress = _Progress()

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise RuntimeError("no calls are made any more")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Call(partial(call, *args, **kwargs), answer, loop.time()))
        if self._newest is None:
            self._join()
        return await answer

    def close(self) -> None:
        self._closed = True
        self._threads.close()
        self._give_up(asyncio.CancelledError())

    def _join(self) -> None:
        """Have one more thread make calls that wait: the shared one, unless it has not come back."""
        loop = asyncio.get_running_loop()
        if self._in_shared is None:
            self._to_begin = deque([None])
            thread = loop.create_task(self._shared.run(self._make_in_turn, loop, self._to_begin))
            self._in_shared = thread
        else:
            thread = loop.create_task(self._threads.run(self._make, loop, math.inf))
        self._newest = thread
        self._joined.add(thread)
        thread.add_done_callback(self._left)
        if self._timer is None:
            self._progress.begin(loop.time(), processor_seconds())
            self._timer = loop.call_later(_BRIEF_SECONDS, self._look)

    def _left(self, thread: asyncio.Task[None]) -> None:
        """A thread has found no call that waits, or has made enough of them; one may have come since."""
        self._joined.discard(thread)
        if thread is self._in_shared:
            self._in_shared = None
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
        """Have more threads join if a call waits for too long, and they would make it faster."""
        self._timer = None
        self._deliver()  # such a thread may have kept some results
        loop = asyncio.get_running_loop()
        waiting = tuple(self._waiting)
        now = loop.time()
        slow = self._progress.is_slow(now, processor_seconds())
        if slow and waiting and now - waiting[0].asked_at >= _BRIEF_SECONDS:
            self._rely_on_shared_no_more()
            for _ in range(min(-(-len(waiting) // _PART), self._size - len(self._joined))):
                self._join()
        if self._joined and self._timer is None:
            self._timer = loop.call_later(_BRIEF_SECONDS, self._look)

    def _rely_on_shared_no_more(self) -> None:
        """If the shared thread has not begun, others hold it up: have it make no call when it does."""
        try:
            self._to_begin.pop()
        except IndexError:
            return
        assert self._in_shared is not None
        self._joined.discard(self._in_shared)
        if self._newest is self._in_shared:
            self._newest = None

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

    def _make_in_turn(self, loop: asyncio.AbstractEventLoop, to_begin: deque[None]) -> None:
        """Make calls in the shared thread, which is not relied on if `to_begin` is empty."""
        try:
            to_begin.pop()
        except IndexError:
            return
        self._make(loop, _TURN_SECONDS)

    def _make(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Make calls until none waits, or for some seconds. Several threads may do so."""
        since = loop.time()
        until = since + seconds
        while loop.time() < until:
            try:
                call = self._waiting.popleft()
            except IndexError:
                return
            if call.answer.done():
                continue
            call.run()
            self._progress.made += 1  # a lost one does no harm: it only shows that there were some
            self._made.append(call)
            if loop.time() - since >= _GATHER_SECONDS and not self._delivering:
                self._delivering = True
                loop.call_soon_threadsafe(self._deliver)
                since = loop.time()
