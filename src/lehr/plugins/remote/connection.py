"""The connection to a plugin: opened when it is needed, and again after it was lost.

A plugin that Lehr starts is *managed*; one with a life cycle of its own is *attached*. Only opening differs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple, Protocol

from lehr.base.backoff import delay
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.base.log import Log
from lehr.plugins.plugin_process import PluginProcess
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.channel import DESCRIBE, Channel, LostError, Method, SilentError
from lehr.plugins.remote.wire import error_of

_DESCRIBE_SECONDS = 10.0
_HEALTH_SECONDS = 5.0
_DRAIN_SECONDS = 30.0
_DEATH_SECONDS = 0.5
_LONGEST_PAUSE = 60.0

log = Log()


class Opened(NamedTuple):
    """A plugin that can be called.

    Attributes:
        process: that of a managed one.
    """

    channel: Channel
    process: PluginProcess | None = None

    @property
    def alive(self) -> bool:
        """False once its process is known to have ended."""
        return self.process is None or self.process.running

    async def close(self, grace: float) -> None:
        """End the connection, and its process."""
        await self.channel.close()
        if self.process is not None:
            await self.process.stop(grace)


class Opener(Protocol):
    """Opens connections."""

    async def __call__(self) -> Opened:
        """A plugin that can be called.

        Raises:
            LehrError: it cannot be started or reached.
        """
        ...


class Connection:
    """Calls a plugin, which it opens when necessary: at most one attempt at a time, with pauses in between.

    Args:
        name: of the plugin, in messages.
        accept: looks at the plugin's description before anything else is called. Raises `StalledError`
            if this plugin cannot do what it is meant to do.
        jitter: from 0 to 1, for pauses.
        description: the plugin's answer to an earlier process, if any.

    Attributes:
        description: the last one; None before the first.
    """

    def __init__(
        self,
        name: str,
        opener: Opener,
        clock: Clock,
        accept: Callable[[m.DescribeResponse], None],
        jitter: Callable[[], float],
        description: m.DescribeResponse | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self._open = opener
        self._clock = clock
        self._accept = accept
        self._jitter = jitter
        self._opened: Opened | None = None
        self._opening: asyncio.Task[Opened] | None = None
        self._failures = 0
        self._pause_until = 0.0
        self._last_error: LehrError | None = None
        self._closed = False

    @property
    def process(self) -> PluginProcess | None:
        """That of a managed plugin which runs."""
        return self._opened.process if self._opened is not None and self._opened.alive else None

    async def describe(self) -> m.DescribeResponse:
        """The plugin's description, which opens it if necessary.

        Raises:
            LehrError: it cannot be opened.
        """
        await self._ready()
        assert self.description is not None
        return self.description

    async def call(self, method: Method, request: Any, seconds: float) -> Any:
        """As `Channel.call`."""
        opened = await self._ready()
        try:
            return await opened.channel.call(method, request, seconds)
        except TransientError as error:
            raise await self._explained(opened, error) from None

    async def stream(
        self, method: Method, request: Any, seconds: float | None = None
    ) -> AsyncGenerator[Any, None]:
        """As `Channel.stream`."""
        opened = await self._ready()
        try:
            async with contextlib.aclosing(opened.channel.stream(method, request, seconds)) as answers:
                async for answer in answers:
                    yield answer
        except TransientError as error:
            raise await self._explained(opened, error) from None

    async def close(self) -> None:
        """End the connection; a managed plugin gets time to end what is under way."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._drop(_DRAIN_SECONDS)

    async def _ready(self) -> Opened:
        if self._opened is not None and self._opened.alive:
            return self._opened
        if self._opening is None:
            self._require_pause_over()
            self._opening = asyncio.ensure_future(self._reopened())
            self._opening.add_done_callback(self._opening_ended)
        # Shared: a caller that is cancelled does not cancel it for the others.
        return await asyncio.shield(self._opening)

    def _opening_ended(self, task: asyncio.Task[Opened]) -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # each caller has it, if there is one left

    def _require_pause_over(self) -> None:
        left = self._pause_until - self._clock.monotonic()
        if self._closed:
            raise TransientError(f"the plugin {self.name} is closed", code="PLG125")
        if left > 0 and self._last_error is not None:
            raise self._last_error.with_traceback(None)

    async def _reopened(self) -> Opened:
        await self._drop(0.0)
        try:
            opened = await self._open()
            try:
                self.description = await opened.channel.call(DESCRIBE, m.DescribeRequest(), _DESCRIBE_SECONDS)
                if self.description.HasField("trouble"):
                    raise error_of(self.description.trouble, str)
                self._accept(self.description)
            except BaseException:
                await opened.close(0.0)
                raise
        except (TransientError, StalledError, WaitingError) as error:
            self._failed(error)
            raise
        self._failures, self._opened = 0, opened
        log.info("plugin ready", plugin=self.name, version=self.description.version)
        return opened

    def _failed(self, error: LehrError) -> None:
        self._failures += 1
        pause = delay(self._failures, self._jitter(), longest=_LONGEST_PAUSE)
        self._pause_until, self._last_error = self._clock.monotonic() + pause, error
        log.info("plugin not available", plugin=self.name, error=str(error), retry_in=f"{pause:.0f} s")

    async def _drop(self, grace: float) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close(grace)

    async def _explained(self, opened: Opened, error: TransientError) -> TransientError:
        """`error`, or how the plugin's process has ended if that is why. A lost plugin is forgotten."""
        if isinstance(error, SilentError) and not await opened.channel.is_healthy(_HEALTH_SECONDS):
            await self._forget(opened, error)
        elif isinstance(error, LostError):
            await self._forget(opened, error)
            if opened.process is not None:
                how = await _end_of(opened.process)
                return TransientError(
                    f"the plugin {self.name} has ended", code="PLG126", why=how, fix="see its log"
                )
        return error

    async def _forget(self, opened: Opened, error: TransientError) -> None:
        """Open a new one for the next call."""
        if self._opened is opened:
            self._opened = None
            self._failed(error)
            await opened.channel.close()
            if opened.process is not None and isinstance(error, SilentError):
                await opened.process.stop()


async def _end_of(process: PluginProcess) -> str:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DEATH_SECONDS):
            return await process.ended()
    await process.stop()
    return "it no longer served its socket, and was killed"
