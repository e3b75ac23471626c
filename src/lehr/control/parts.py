"""The parts of the running program, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.log import Log
from lehr.control.mirror_upkeep import Tidying
from lehr.control.retention import Retention
from lehr.control.server import CarryOut
from lehr.enforce.plugin_errors import one_line
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.sdk.asked_validator import AskedValidator
from lehr.sdk.calendars import Calendars, no_calendars
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.generation import Generation
from lehr.sdk.metrics import NO_METRICS, Metrics
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.source import Source
from lehr.sdk.store import Store
from lehr.sdk.target_selection import Selections, no_selections
from lehr.sdk.validator import LookUp, Validator

log = Log()

CLOSE_SECONDS = 5.0
"""How long a part may take to close."""


class Listener(Protocol):
    """Takes people's commands. Implementation: `lehr.control.server.Server`."""

    async def start(self) -> None:
        """Listen."""
        ...

    async def stop(self) -> None:
        """Stop listening."""
        ...


class Parts(msgspec.Struct, frozen=True):
    """The parts of the program, chosen by `lehr.wiring`.

    Attributes:
        blocking: runs writes to the store.
        store_reading: runs reads of the store.
        reading: runs reads of the source and validation of the result: a source that hangs, or a million
            changes, hold up no push (invariant I9).
        claims: the register of claims of this host; None where no other partition can exist.
        owner: names this process to others that would enforce the same partition; the same after a restart.
        joins: True if this state folder uses the store for the first time.
        forget_store: undoes that.
        retention: what a run does not prune; None to prune nothing.
        only: the assets to enforce, as in `lehr.sdk.runtime.Runtime`.
        asked_validators: those of plugins in other processes.
        metrics: answers questions of checks about production.
        close_metrics: ends that.
        selections: target selections that are not Lehr's own.
        calendars: reads when pushes may not start.
    """

    listen: Callable[[CarryOut], Listener]
    store: Store
    source: Source
    generation: Generation
    clean_generation: Callable[[], Generation]
    registry: Registry
    plugins: Sequence[AssetPlugin]
    checks: Sequence[CheckPlugin]
    clock: Clock
    chance: Chance
    blocking: Blocking
    reading: Blocking
    store_reading: Blocking
    owner: str
    look_up: LookUp | None = None
    validators: Sequence[Validator] = ()
    asked_validators: Sequence[AskedValidator] = ()
    joins: bool = False
    forget_store: Callable[[], None] = lambda: None
    retention: Retention | None = None
    claims: Claims | None = None
    tidying: Tidying | None = None
    only: Selector | None = None
    metrics: Metrics = NO_METRICS
    close_metrics: Callable[[], Coroutine[Any, Any, None]] | None = None
    selections: Selections = no_selections
    calendars: Calendars = no_calendars

    async def close(self) -> None:
        """End what the parts do on their own, but for the listener and the store."""
        if self.close_metrics is not None:
            await _closed("metric sources", self.close_metrics())
        await _closed("generation", self.generation.close())
        for plugin in self.plugins:
            await _closed(type(plugin).__name__, plugin.close())
        if self.claims is not None:
            await _closed("claims", self.claims.close())


async def _closed(what: str, closing: Coroutine[None, None, None]) -> None:
    """A part that hangs or breaks while closing does not keep the others from closing."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await closing
    except Exception as error:
        log.warning("could not be closed cleanly", what=what, error=one_line(error))
