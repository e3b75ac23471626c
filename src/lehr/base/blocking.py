"""The only door to threads: calls that block, kept off the event loop.

A caller that may block (a file system that hangs, an fsync) gets its own pool, so that one plugin's
trouble delays no other (invariant I9).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Protocol):
    """Runs blocking functions. Implementations: `Threads`, `Inline`."""

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns, raise what it raises."""
        ...

    def close(self) -> None:
        """Take no more calls. Does not wait for calls that hang."""
        ...


class _Call(NamedTuple):
    name: str
    loop: asyncio.AbstractEventLoop


_under_way: dict[Future[Any], _Call] = {}


def under_way(wait_seconds: float = 0.0) -> list[str]:
    """Names of the threads in which calls have not come back: the interpreter waits for them at its end.

    Args:
        wait_seconds: how long it waits for them. Blocks.
    """
    wait(tuple(_under_way), wait_seconds)
    return sorted({found.name for call, found in tuple(_under_way.items()) if not call.done()})


def abandoned() -> list[str]:
    """Names of the threads of calls that have not come back, one each, whose event loop has ended."""
    calls = tuple(_under_way.items())
    return sorted(found.name for call, found in calls if found.loop.is_closed() and not call.done())


class Threads:
    """Runs calls in at most `size` threads named `name`."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await _submitted(self._pool, self._name, partial(call, *args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class SharedThread:
    """Runs calls in a thread that all of these share, and reports them as calls of `name`."""

    _pool = ThreadPoolExecutor(1, thread_name_prefix="short calls")

    def __init__(self, name: str) -> None:
        self._name = name

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await _submitted(self._pool, self._name, partial(call, *args, **kwargs))


def _submitted(pool: ThreadPoolExecutor, name: str, call: Callable[[], T]) -> asyncio.Future[T]:
    """The result of a call in a thread of `pool`."""
    future = pool.submit(call)
    _under_way[future] = _Call(name, asyncio.get_running_loop())
    future.add_done_callback(_forget)
    return asyncio.wrap_future(future)


def _forget(call: Future[Any]) -> None:
    _under_way.pop(call, None)


class Background:
    """Does one thing in its own thread, again whenever it is asked to. Callers do not wait.

    Args:
        name: of the thread.
        call: handles its own errors.
    """

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._call = call
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._last: Future[None] | None = None

    def ask(self) -> bool:
        """Have it done once. False if it is still being done from the last time: then ask again later."""
        if self._last is not None and not self._last.done():
            return False
        self._last = self._pool.submit(self._call)
        return True

    def close(self) -> None:
        """Wait until it is done."""
        self._pool.shutdown()


class LastResort:
    """Ends this process after some time, whatever hangs in it: also a blocked event loop, or a thread.

    Args:
        seconds: until then.
        code: exit code.
        report: reports why. It may fail: the receiver may be gone.
    """

    def __init__(self, seconds: float, code: int, report: Callable[[], None]) -> None:
        self._code = code
        self._report = report
        self._disarmed: Future[None] = Future()
        pool = ThreadPoolExecutor(1, thread_name_prefix="last resort")
        pool.submit(self._wait, seconds)
        pool.shutdown(wait=False)

    def disarm(self) -> None:
        """The process has other things to do than to end."""
        if not self._disarmed.done():
            self._disarmed.set_result(None)

    def _wait(self, seconds: float) -> None:
        try:
            self._disarmed.result(seconds)
        except TimeoutError:
            self._end()

    def _end(self) -> None:
        try:
            self._report()
        finally:
            os._exit(self._code)


class Inline:
    """Runs calls where they are made: for virtual time, and for calls that never block."""

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return call(*args, **kwargs)

    def close(self) -> None:
        pass


class Tracked:
    """Blocking calls that change something, identified by what they change it for.

    A thread cannot be cancelled: when the task that awaits a call is, the call continues, and
    `busy` reports it until it has come back. An asset plugin's `status` relies on that.

    Args:
        blocking: runs the calls.
    """

    def __init__(self, blocking: Blocking) -> None:
        self._blocking = blocking
        self._calls: Counter[Hashable] = Counter()

    async def run(self, of: Hashable, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns, raise what it raises; the call is made on behalf of `of`."""
        return await self.follow(of, self._blocking.run(call, *args, **kwargs))

    async def follow(self, of: Hashable, work: Coroutine[Any, Any, T]) -> T:
        """The same for `work`, which waits for such a call."""
        self._calls[of] += 1
        task = asyncio.ensure_future(work)
        task.add_done_callback(partial(self._ended, of))
        await asyncio.wait({task})
        return task.result()

    def busy(self, of: Hashable) -> bool:
        """True while a call on behalf of `of` has not come back."""
        return self._calls[of] > 0

    def _ended(self, of: Hashable, task: asyncio.Future[T]) -> None:
        self._calls[of] -= 1
        if not self._calls[of]:
            del self._calls[of]
        if not task.cancelled():
            task.exception()  # retrieved, in case nothing awaits it any more
