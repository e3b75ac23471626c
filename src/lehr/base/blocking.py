"""The only door to threads: calls that block, kept off the event loop.

Whoever may block (a file system that hangs, an fsync) gets a pool of its own, so
that one plugin's trouble delays no other (invariant I9).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


class Inline:
    """Runs calls where they stand: for virtual time, and for calls that never block."""

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return call(*args, **kwargs)

    def close(self) -> None:
        pass
