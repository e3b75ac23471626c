"""Resources that are dry turns: what commands would change, what would unblock an asset, the next turns.

They compare production, so only a server on its machine answers them. Nothing is written or pushed.

Invariant: a dry turn has a thread and an event loop of its own, and one runs at a time, so that plugins that
    hang delay only other dry turns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, TypeVar

from msgspec import Meta, field

from lehr.base.errors import LehrError, StalledError
from lehr.dry_run.dry_turns import DryTurns
from lehr.dry_run.planned import Planned
from lehr.dry_run.unblock import Unblocking, unblocking
from lehr.dry_run.what_if import Supposed, WhatIf
from lehr.http.dry_run_queue import too_slow
from lehr.http.parameters import incarnation_at, understood
from lehr.http.problems import ProblemError, meaning
from lehr.http.questions import Catalogue, DryRuns, Id, OfPartition, Question, Representation
from lehr.model.selector import parse_selector
from lehr.query.asset_rows import known_asset
from lehr.query.partition_view import Reading

T = TypeVar("T")

MOST_PLANNED = 1000
_MOST_COMMANDS = 20

DRY_RUNS = Catalogue()

Command = Annotated[str, Meta(min_length=1, max_length=400)]


class OfWhatIf(OfPartition, frozen=True):
    """About which asset, and after which commands."""

    asset: Id
    commands: Annotated[
        tuple[Command, ...],
        Meta(
            description="A command, as one would type it: unfreeze all. Can be repeated.",
            min_length=1,
            max_length=_MOST_COMMANDS,
        ),
    ] = field(name="if")


class OfUnblock(OfPartition, frozen=True):
    """Of which asset."""

    asset: Id


class OfPlan(OfPartition, frozen=True):
    """Of which assets."""

    selector: Annotated[
        str,
        Meta(
            description=f"At most {MOST_PLANNED:,} assets: an id, a pattern, type=T, label:K=V.",
            min_length=1,
            max_length=2000,
        ),
    ]


@DRY_RUNS.answered_by(
    "what-if",
    "How the next turn of an asset would end after some commands. Compares production; changes nothing.",
    OfWhatIf,
    Supposed,
    dry=True,
)
def _what_if(question: Question, asked: OfWhatIf) -> Representation:
    reading = _of_asset(question, asked.partition, asked.asset)

    async def supposed(turns: DryTurns) -> Supposed:
        what_if = _about(turns, asked.asset)
        with _wrong("if"):
            commands = what_if.parsed(asked.commands)
        with meaning("BadRequest"):
            return await what_if.turn(commands)

    return Representation(lambda: _run(question, reading, supposed))


@DRY_RUNS.answered_by(
    "unblock",
    "The fewest commands after which an asset would be pushed. Compares production; changes nothing.",
    OfUnblock,
    Unblocking,
    dry=True,
)
def _unblock(question: Question, asked: OfUnblock) -> Representation:
    reading = _of_asset(question, asked.partition, asked.asset)

    async def found(turns: DryTurns) -> Unblocking:
        what_if = _about(turns, asked.asset)
        with meaning("NotFound"):
            return await unblocking(what_if)

    return Representation(lambda: _run(question, reading, found))


@DRY_RUNS.answered_by(
    "plan",
    "The next turn of each selected asset, over published intent. Compares production; changes nothing.",
    OfPlan,
    list[Planned],
    dry=True,
)
def _plan(question: Question, asked: OfPlan) -> Representation:
    reading = _reading(question, asked.partition)
    with _wrong("selector"):
        selector = parse_selector(asked.selector)
    incarnation_at(reading, "latest")

    async def planned(turns: DryTurns) -> list[Planned]:
        with _wrong("selector"):
            return await turns.next_turns(selector, MOST_PLANNED)

    return Representation(lambda: _run(question, reading, planned))


def _of_asset(question: Question, partition: str, id: str) -> Reading:
    """The partition, before anything is opened for a dry turn of one of its assets."""
    reading = _reading(question, partition)
    with meaning("NotFound"):
        known_asset(reading, id)
    return reading


def _reading(question: Question, partition: str) -> Reading:
    """The partition, if its production can be compared here."""
    reading = question.reading(partition)
    with meaning("NotFound"):
        _here(question).require(reading.partition)
    return reading


def _here(question: Question) -> DryRuns:
    found = question.installation.dry_runs
    if found is None:
        raise ProblemError(
            "NotFound",
            "this server makes no dry runs",
            code="HTP143",
            why="it knows the store, but no production",
            fix="ask the server on the machine of `lehr run`",
        )
    return found


def _about(turns: DryTurns, id: str) -> WhatIf:
    with _wrong("asset"):
        return turns.what_if(id)


@contextlib.contextmanager
def _wrong(parameter: str) -> Iterator[None]:
    """Plain errors are about this parameter."""
    try:
        yield
    except LehrError as error:
        raise error if type(error) is not LehrError else understood(error, parameter) from error


# --- in a thread, with an event loop of its own ----------------------------------------


def _run(question: Question, reading: Reading, work: Callable[[DryTurns], Awaitable[T]]) -> T:
    return asyncio.run(_in_time(_here(question), reading, work, question.limits.dry_run_seconds))


async def _in_time(
    here: DryRuns, reading: Reading, work: Callable[[DryTurns], Awaitable[T]], seconds: float
) -> T:
    try:
        async with asyncio.timeout(seconds) as limit, contextlib.AsyncExitStack() as entered:
            with _usable():
                turns = await entered.enter_async_context(here.opened(reading))
            return await work(turns)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise too_slow(seconds) from error


@contextlib.contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except StalledError as error:
        raise ProblemError(
            "Unavailable", error.what, code=error.code, why=error.why, fix=error.fix
        ) from error
