"""Hints of several sources as one, while sources come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from lehr.base.clock import SystemClock
from lehr.sdk.source import Source
from lehr.sources.combined_hints import CombinedHints
from lehr.testing.sim.source import Repository, SimulatedSource
from lehr.testing.sim.trace import Trace

PATIENCE = 5.0


class Sources:
    """Sources of which nobody gives a hint by itself, and those among them that are there."""

    def __init__(self) -> None:
        self.repositories = [Repository(Trace()) for _ in range(3)]
        self.all = [SimulatedSource(item, SystemClock(), 3600.0) for item in self.repositories]
        self.there: frozenset[Source] = frozenset(self.all[:1])
        self.following = CombinedHints(lambda: self.there)

    def have(self, *numbers: int) -> None:
        self.there = frozenset(self.all[number] for number in numbers)
        self.following.changed()

    def numbers(self) -> list[int] | None:
        taken = self.following.take()
        return None if taken is None else [number for number, item in enumerate(self.all) if item in taken]


def play(script: Callable[[Sources, AsyncIterator[None]], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        sources = Sources()
        hints = sources.following.hints()
        await asyncio.wait_for(script(sources, hints), PATIENCE)
        await hints.aclose()  # type: ignore[attr-defined]
        assert not any(item.followed for item in sources.repositories)

    asyncio.run(run())


async def waiting(hints: AsyncIterator[None]) -> asyncio.Future[None]:
    """The next hint, which somebody waits for already."""
    hint = asyncio.ensure_future(_next(hints))
    for _ in range(10):
        await asyncio.sleep(0)
    return hint


async def _next(hints: AsyncIterator[None]) -> None:
    await anext(hints)


def test_a_hint_says_whose_it_was_once() -> None:
    async def script(sources: Sources, hints: AsyncIterator[None]) -> None:
        sources.have(0, 1)
        hint = await waiting(hints)
        assert not hint.done()
        assert sources.numbers() is None
        sources.repositories[1].announce()
        await hint
        assert sources.numbers() == [1]
        assert sources.numbers() is None

    play(script)


def test_hints_that_nobody_has_taken_add_up() -> None:
    async def script(sources: Sources, hints: AsyncIterator[None]) -> None:
        sources.have(0, 1, 2)
        for number in (0, 2):
            hint = await waiting(hints)
            sources.repositories[number].announce()
            await hint
        assert sources.numbers() == [0, 2]

    play(script)


def test_a_source_that_comes_while_somebody_waits_is_listened_to_at_once_and_counts_as_hinted() -> None:
    async def script(sources: Sources, hints: AsyncIterator[None]) -> None:
        hint = await waiting(hints)
        sources.have(0, 1)
        await hint
        assert sources.repositories[1].followed
        assert sources.numbers() == [1]
        hint = await waiting(hints)
        assert not hint.done()
        sources.repositories[1].announce()
        await hint
        assert sources.numbers() == [1]

    play(script)


def test_a_source_that_goes_is_listened_to_no_more() -> None:
    async def script(sources: Sources, hints: AsyncIterator[None]) -> None:
        sources.have(0, 1, 2)
        hint = await waiting(hints)
        sources.have(0, 2)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not sources.repositories[1].followed
        sources.repositories[1].announce()
        assert not hint.done()
        sources.repositories[2].announce()
        await hint
        assert sources.numbers() == [2]

    play(script)


def test_whoever_stops_listening_leaves_no_hint_behind() -> None:
    async def script(sources: Sources, hints: AsyncIterator[None]) -> None:
        hint = await waiting(hints)
        sources.repositories[0].announce()
        await hint
        await hints.aclose()  # type: ignore[attr-defined]
        assert sources.numbers() is None
        sources.following.changed()

    play(script)
