"""Combines the hints of several sources and records which sources gave them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from lehr.sdk.source import Source


class CombinedHints:
    """Listens to sources that come and go.

    Args:
        sources: the current sources, the same object for the same source.
    """

    def __init__(self, sources: Callable[[], frozenset[Source]]) -> None:
        self._sources = sources
        self._hinted: frozenset[Source] | None = None
        self._wake: Callable[[], object] = lambda: None

    def take(self) -> frozenset[Source] | None:
        """Sources that gave a hint since the last call; None if none did, so that any may have changed."""
        hinted, self._hinted = self._hinted, None
        return hinted

    def changed(self) -> None:
        """Notify that the sources may differ from before. May be called from any thread."""
        self._wake()

    async def hints(self) -> AsyncIterator[None]:
        """A hint whenever one of the sources gives one. One listener at a time.

        A new source counts as one that gave a hint: it may have changed between its first read and the start
        of listening.
        """
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(woken.set)
        hints: dict[Source, AsyncIterator[None]] = {}
        waiting: dict[Source, asyncio.Task[None]] = {}
        first = True
        try:
            while True:
                woken.clear()
                sources = self._sources()
                for source in hints.keys() - sources:
                    await _end(hints.pop(source), waiting.pop(source, None))
                new = frozenset() if first else sources - hints.keys()
                for source in sources - waiting.keys():
                    iterator = hints.setdefault(source, source.changes())
                    waiting[source] = asyncio.ensure_future(_next(iterator))
                first = False
                done = await _first_of(waiting, woken, at_once=bool(new))
                for source in done:
                    waiting.pop(source).result()
                if done or new:
                    self._hinted = done | new | (self._hinted or frozenset())
                    yield
        finally:
            self._wake = lambda: None
            self._hinted = None
            for source, iterator in hints.items():
                await _end(iterator, waiting.get(source))


async def _first_of(
    waiting: dict[Source, asyncio.Task[None]], woken: asyncio.Event, *, at_once: bool
) -> frozenset[Source]:
    """Sources with a hint, once the first has arrived or `woken` is set; or those with one `at_once`."""
    waker = asyncio.ensure_future(woken.wait())
    try:
        tasks = {waker, *waiting.values()}
        await asyncio.wait(tasks, timeout=0 if at_once else None, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waker.cancel()
    return frozenset(source for source, task in waiting.items() if task.done())


async def _next(hints: AsyncIterator[None]) -> None:
    await anext(hints)


async def _end(hints: AsyncIterator[None], waiting: asyncio.Task[None] | None) -> None:
    """Stop listening."""
    if waiting is not None:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    if isinstance(hints, AsyncGenerator):
        await hints.aclose()
