"""A provider that is started again after it has died."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lehr.base.backoff import delay
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.plugins.terraform.provider import (
    Applied,
    Diagnostic,
    Planned,
    ProviderError,
    ProviderGoneError,
    ProviderSchema,
    State,
    Value,
)
from lehr.plugins.terraform.wire.client import WireProvider

T = TypeVar("T")

_LONGEST_PAUSE = 60.0

_STEADY = 300.0
"""Seconds after which an end of the process is not one more in a row."""

_UNANSWERED = 3
"""Calls in a row without an answer, after which a process that still runs is ended."""


class RestartingProvider:
    """One provider with one configuration, over any number of processes. Implements `Provider`.

    A call never waits for a restart after a failure: until then it raises `ProviderGoneError`. A process that
    does not answer any more is ended, but not before its applies have ended.
    """

    def __init__(self, start: Callable[[], Awaitable[WireProvider]], clock: Clock, chance: Chance) -> None:
        """Make one that starts at its first call.

        Args:
            start: starts and configures a process.
        """
        self._start = start
        self._clock = clock
        self._chance = chance
        self._running: WireProvider | None = None
        self._schema: ProviderSchema | None = None
        self._starting = asyncio.Lock()
        self._failures = 0
        self._unanswered = 0
        self._not_before = 0.0
        self._started_at = clock.monotonic()
        self._last_error = ""
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def schema(self) -> ProviderSchema:
        """The schemas of the last process; `ready` once before you ask."""
        assert self._schema is not None, "it has not been started"
        return self._schema

    async def ready(self) -> ProviderSchema:
        """Start it, unless it runs.

        Raises:
            LehrError: the start failed now.
            ProviderError: it does not accept its configuration.
            ProviderGoneError: it failed a moment ago, and is not started again yet.
        """
        return (await self._process()).schema

    async def validate_resource(self, type: str, config: Value) -> tuple[Diagnostic, ...]:
        return await self._asked(lambda provider: provider.validate_resource(type, config))

    async def import_resource(self, type: str, id: str) -> State:
        return await self._asked(lambda provider: provider.import_resource(type, id))

    async def upgrade_state(self, type: str, version: int, json: bytes) -> Value:
        return await self._asked(lambda provider: provider.upgrade_state(type, version, json))

    async def read_resource(self, type: str, state: State) -> State:
        return await self._asked(lambda provider: provider.read_resource(type, state))

    async def plan(self, type: str, prior: State, proposed: Value, config: Value) -> Planned:
        return await self._asked(lambda provider: provider.plan(type, prior, proposed, config))

    async def apply(self, type: str, prior: State, planned: Planned, config: Value) -> Applied:
        return await self._asked(lambda provider: provider.apply(type, prior, planned, config))

    async def read_data_source(self, type: str, config: Value) -> Value:
        return await self._asked(lambda provider: provider.read_data_source(type, config))

    async def close(self) -> None:
        self._closed = True
        async with self._starting:
            self._let_go()
        while self._ending:
            await asyncio.wait(set(self._ending))

    async def _asked(self, call: Callable[[WireProvider], Awaitable[T]]) -> T:
        provider = await self._process()
        try:
            answer = await call(provider)
        except ProviderError:
            self._answered(provider)
            raise
        except ProviderGoneError as error:
            self._not_answered(provider, str(error))
            raise
        self._answered(provider)
        return answer

    async def _process(self) -> WireProvider:
        """The running process, or a new one."""
        async with self._starting:
            if self._closed:
                raise ProviderGoneError("the provider was closed")
            if self._running is not None and self._running.gone:
                self._failed(self._running.gone)
            if self._running is None:
                await self._started()
            assert self._running is not None
            return self._running

    async def _started(self) -> None:
        pause = self._not_before - self._clock.monotonic()
        if pause > 0:
            what = f"{self._last_error}; it is started again in {pause:.0f} seconds"
            raise ProviderGoneError(what)
        try:
            self._running = await self._start()
        except (LehrError, ProviderError, ProviderGoneError) as error:
            self._failed(str(error))
            raise
        self._schema = self._running.schema
        self._unanswered = 0
        self._started_at = self._clock.monotonic()

    def _answered(self, provider: WireProvider) -> None:
        if provider is self._running:
            self._unanswered = 0

    def _not_answered(self, provider: WireProvider, why: str) -> None:
        if provider is not self._running:  # it was let go of already
            return
        self._unanswered += 1
        if provider.gone or self._unanswered >= _UNANSWERED:
            self._failed(provider.gone or why)

    def _failed(self, why: str) -> None:
        if self._clock.monotonic() - self._started_at > _STEADY:
            self._failures = 0
        self._failures += 1
        pause = delay(self._failures, self._chance.uniform(0.0, 1.0), longest=_LONGEST_PAUSE)
        self._not_before = self._clock.monotonic() + pause
        self._last_error = why if why.startswith("the provider") else f"the provider {why}"
        self._let_go()

    def _let_go(self) -> None:
        """End the process when its applies have ended."""
        if self._running is not None:
            task = asyncio.ensure_future(self._running.close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self._running = None
