"""The queue of dry turns: one runs at a time, and no request waits for longer than a limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from lehr.http.limits import Limits
from lehr.http.problems import ProblemError
from lehr.http.readers import Readers
from lehr.sdk.store import Store

T = TypeVar("T")

_GRACE_SECONDS = 5.0
"""For a dry turn that has reached its limit to close its plugins."""


def too_slow(seconds: float) -> ProblemError:
    """The problem of a dry turn that reaches its limit."""
    return ProblemError(
        "TooSlow",
        "the dry run takes too long",
        code="HTP144",
        why=f"it has not ended after {seconds:g} seconds; a plugin may hang",
        fix="run `lehr why` on the machine of `lehr run`, where it has no limit",
    )


async def ask_dry(readers: Readers, limits: Limits, question: Callable[[Store], T], client: str) -> T:
    """The answer of `question`, a dry turn, to a store of `readers`.

    Invariant: a dry turn that hangs keeps its place until it ends, and its thread with it. So at most one
        thread of `readers` hangs, and only other dry turns are refused in the meantime.

    Raises:
        ProblemError: others take too long, or it does; or too many are waiting.
    """
    started, loop = asyncio.Event(), asyncio.get_running_loop()

    def run(store: Store) -> T:
        with contextlib.suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(started.set)
        return question(store)

    answer = asyncio.ensure_future(readers.ask(run, client))
    answer.add_done_callback(_retrieve)
    await _first(answer, started, limits.dry_run_wait_seconds)
    if not answer.done() and not started.is_set():
        answer.cancel()
        raise _busy(limits.dry_run_wait_seconds)
    await asyncio.wait({answer}, timeout=limits.dry_run_seconds + _GRACE_SECONDS)
    if not answer.done():
        raise too_slow(limits.dry_run_seconds)
    return answer.result()


def _busy(seconds: float) -> ProblemError:
    return ProblemError(
        "Busy",
        "another dry run has not ended",
        code="HTP145",
        why=f"one runs at a time; this one has waited for {seconds:g} seconds",
        fix="try again in a minute; if a plugin hangs for good, restart the server",
    )


async def _first(answer: asyncio.Future[Any], started: asyncio.Event, seconds: float) -> None:
    """Wait until a dry turn has started or ended."""
    starting = asyncio.ensure_future(started.wait())
    await asyncio.wait({answer, starting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    starting.cancel()


def _retrieve(answer: asyncio.Future[Any]) -> None:
    """An error of a dry turn whose request was answered already is not logged."""
    if not answer.cancelled():
        answer.exception()
