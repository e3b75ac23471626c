"""The only door to threads: calls that block, kept off the event loop.

Whoever may block (a file system that hangs, an fsync) gets a pool of its own, so
that one plugin's trouble delays no other (invariant I9).
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

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


class Threads:
    """Runs calls in at most `size` threads named `name`."""

    def __init__(self, name: str, size: int) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: call(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Background:
    """Does one thing in a thread of its own, again whenever it is asked to. Whoever asks goes on.

    Args:
        name: of the thread.
        call: takes care of its own errors.
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


class Inline:
    """Runs calls where they stand: for virtual time, and for calls that never block."""

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return call(*args, **kwargs)

    def close(self) -> None:
        pass


class Tracked:
    """Blocking calls that change something, known by what they change it for.

    A thread cannot be cancelled: when whoever awaits a call is, the call goes on, and `busy` says so
    until it has come back. An asset plugin's `status` is made of that.

    Args:
        blocking: runs the calls.
    """

    def __init__(self, blocking: Blocking) -> None:
        self._blocking = blocking
        self._calls: Counter[Hashable] = Counter()

    async def run(self, of: Hashable, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns, raise what it raises; it is made on behalf of `of`."""
        self._calls[of] += 1
        task = asyncio.ensure_future(self._blocking.run(call, *args, **kwargs))
        task.add_done_callback(functools.partial(self._ended, of))
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
            task.exception()  # retrieved, in case that nobody awaits it any more
