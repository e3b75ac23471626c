"""The connection to a plugin: opened when it is needed, and again after it was lost.

A plugin that Lehr starts is *managed*; one with a life cycle of its own is *attached*. Only opening differs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Any, Protocol

from lehr.base.backoff import delay
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.base.log import Log
from lehr.plugins.early_ends import EarlyEnds
from lehr.plugins.plugin_process import PluginProcess
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.call_outcomes import OK, outcome_of_answer, outcome_of_error
from lehr.plugins.remote.channel import DESCRIBE, Channel, LostError, Method, SilentError
from lehr.plugins.remote.wire import error_of
from lehr.sdk.plugin_meter import PluginMeter
from lehr.sdk.secrets import Hidden, SecretValue

_DESCRIBE_SECONDS = 10.0
_HEALTH_SECONDS = 5.0
_DRAIN_SECONDS = 30.0
_DEATH_SECONDS = 0.5
_LONGEST_PAUSE = 60.0
_LOOK_SECONDS = 10.0
_LONGEST_RETIREMENT = 3600.0

log = Log()


class Opened:
    """A plugin that can be called.

    Args:
        process: that of a managed one.

    Attributes:
        calls: how many are under way.
        unsettled: ids of operations that it may still carry out, although their calls have ended.
    """

    def __init__(self, channel: Channel, process: PluginProcess | None = None) -> None:
        self.channel = channel
        self.process = process
        self.calls = 0
        self.unsettled: set[str] = set()
        self._closed = False
        self._idle = asyncio.Event()

    @property
    def alive(self) -> bool:
        """False once it is closed, or its process is known to have ended."""
        return not self._closed and (self.process is None or self.process.running)

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """A call is under way."""
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1
            self._idle.set()

    def settle(self, operation: str) -> None:
        """An operation has ended."""
        self.unsettled.discard(operation)
        self._idle.set()

    async def idle(self) -> None:
        """Wait until no call is under way, and no operation unsettled."""
        while self.calls or self.unsettled:
            self._idle.clear()
            await self._idle.wait()

    async def close(self, grace: float) -> None:
        """End the connection, and its process."""
        self._closed = True
        await self.channel.close()
        if self.process is not None:
            await self.process.stop(grace)


class Opener(Protocol):
    """Opens connections."""

    async def open(self) -> Opened:
        """A plugin that can be called.

        Raises:
            LehrError: it cannot be started or reached.
        """
        ...

    async def changed(self) -> bool:
        """Whether another plugin would be opened now than the last one: its program was replaced."""
        ...


class Observer(Protocol):
    """Is notified of what becomes of a plugin."""

    def opened(self, description: m.DescribeResponse, process: PluginProcess | None) -> None:
        """It is available."""
        ...

    def failed(self, error: LehrError) -> None:
        """It is not available."""
        ...

    def closed(self) -> None:
        """It is not used any more."""
        ...


class Unobserved:
    """An `Observer` that ignores everything."""

    def opened(self, description: m.DescribeResponse, process: PluginProcess | None) -> None:
        pass

    def failed(self, error: LehrError) -> None:
        pass

    def closed(self) -> None:
        pass


class Connection:
    """Calls a plugin, which it opens when necessary: at most one attempt at a time, with pauses in between.

    When the plugin's program was replaced, the new one is opened next to the old one, which ends once its
    calls have ended.

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
        accept: Callable[[m.DescribeResponse], None] = lambda description: None,
        jitter: Callable[[], float] = lambda: 0.0,
        description: m.DescribeResponse | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self._opener = opener
        self._clock = clock
        self._accept = accept
        self._jitter = jitter
        self._observer = observer or Unobserved()
        self._current: Opened | None = None
        self._retiring: dict[asyncio.Task[None], Opened] = {}
        self._opening: asyncio.Task[Opened] | None = None
        self._upgrading: asyncio.Task[None] | None = None
        self._look_at = clock.monotonic() + _LOOK_SECONDS
        self._failures = 0
        self._early_ends = EarlyEnds()
        self._pause_until = 0.0
        self._last_error: LehrError | None = None
        self._secrets: dict[bytes, SecretValue] = {}
        self._closed = False
        self._meter = PluginMeter(name)

    @property
    def meter(self) -> PluginMeter:
        """Figures of the plugin."""
        if self._meter.up is not None:
            self._meter.up = self._current is not None and self._current.alive
        return self._meter

    @property
    def process(self) -> PluginProcess | None:
        """That of a managed plugin which runs."""
        return self._current.process if self._current is not None and self._current.alive else None

    async def describe(self) -> m.DescribeResponse:
        """The plugin's description, which opens it if necessary.

        Raises:
            LehrError: it cannot be opened.
        """
        await self.ready()
        assert self.description is not None
        return self.description

    def hide(self, secrets: Iterable[SecretValue]) -> None:
        """Hide these secrets from now on in what the plugin prints."""
        known = len(self._secrets)
        self._secrets |= {value.content(): value for value in secrets}
        if len(self._secrets) > known and (process := self.process) is not None:
            process.hidden = process.hidden.and_of(self._secrets.values())

    async def call(self, method: Method, request: Any, seconds: float, of: Opened | None = None) -> Any:
        """As `Channel.call`, of the current plugin or of one that was opened before."""
        opened = of or await self.ready()
        try:
            with opened.busy(), self._metered(method) as answered:
                answer = await opened.channel.call(method, request, seconds)
                answered(answer)
                return answer
        except TransientError as error:
            raise await self._explained(opened, error) from None

    def hidden_in(self, opened: Opened) -> Hidden:
        """Hides the secrets that a plugin has been given."""
        return Hidden(self._secrets.values()) if opened.process is None else opened.process.hidden

    async def all_ready(self) -> list[Opened]:
        """The current plugin, and those before it that may still change production.

        Raises:
            LehrError: it cannot be opened.
        """
        current = await self.ready()
        return [current, *(item for item in self._retiring.values() if item.alive)]

    async def stream(
        self, method: Method, request: Any, of: Opened | None = None, *, lasting: bool = False
    ) -> AsyncGenerator[Any, None]:
        """As `Channel.stream`.

        Args:
            lasting: it never ends, so a plugin that was replaced does not wait for its end.
        """
        opened = of or await self.ready()
        try:
            with contextlib.nullcontext() if lasting else opened.busy():
                async with contextlib.aclosing(opened.channel.stream(method, request)) as answers:
                    with self._unmetered() if lasting else self._metered(method) as answered:
                        async for answer in answers:
                            answered(answer)
                            yield answer
        except TransientError as error:
            raise await self._explained(opened, error) from None

    @contextlib.contextmanager
    def _metered(self, method: Method) -> Iterator[Callable[[Any], None]]:
        """Counts a call, and gets its answers. Its last answer is its outcome, even if it is closed then."""
        began, outcome = self._clock.monotonic(), ""

        def answered(answer: Any) -> None:
            nonlocal outcome
            outcome = outcome_of_answer(answer)

        try:
            yield answered
        except BaseException as error:
            if not (outcome and isinstance(error, GeneratorExit)):
                outcome = outcome_of_error(error)
            raise
        finally:
            self._meter.called(method.name, outcome or OK, self._clock.monotonic() - began)

    @contextlib.contextmanager
    def _unmetered(self) -> Iterator[Callable[[Any], None]]:
        yield lambda answer: None

    async def close(self) -> None:
        """End the connection; a managed plugin gets time to end what is under way."""
        self._closed = True
        for task in (self._opening, self._upgrading):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        for retiring in tuple(self._retiring):
            retiring.cancel()
        await asyncio.gather(
            self._drop(_DRAIN_SECONDS), *(item.close(_DRAIN_SECONDS) for item in self._retiring.values())
        )
        self._observer.closed()

    async def ready(self) -> Opened:
        """The current plugin.

        Raises:
            LehrError: it cannot be opened.
        """
        if self._current is not None and self._current.alive:
            self._look_for_upgrade()
            return self._current
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
        if self._closed:
            raise TransientError(f"the plugin {self.name} is closed", code="PLG125")
        if self._pause_until > self._clock.monotonic() and self._last_error is not None:
            raise self._last_error.with_traceback(None)

    async def _reopened(self) -> Opened:
        if self._current is not None:
            self._meter.ended()
        await self._drop(0.0)
        self._current = await self._new()
        return self._current

    async def _new(self) -> Opened:
        """A plugin that was described and accepted."""
        try:
            opened = await self._opener.open()
            try:
                found = await opened.channel.call(DESCRIBE, m.DescribeRequest(), _DESCRIBE_SECONDS)
                if found.HasField("trouble"):
                    raise error_of(found.trouble, str)
                self._accept(found)
            except BaseException:
                await opened.close(0.0)
                raise
        except (TransientError, StalledError, WaitingError) as error:
            self._failed(error)
            raise
        self._failures, self.description = 0, found
        self._early_ends.started(self._clock.monotonic())
        if opened.process is not None and self._secrets:
            opened.process.hidden = opened.process.hidden.and_of(self._secrets.values())
        self._meter.started()
        log.info("plugin ready", plugin=self.name, version=found.version)
        self._observer.opened(found, opened.process)
        return opened

    def _failed(self, error: LehrError, least_pause: float = 0.0) -> None:
        self._failures += 1
        pause = max(delay(self._failures, self._jitter(), longest=_LONGEST_PAUSE), least_pause)
        self._pause_until, self._last_error = self._clock.monotonic() + pause, error
        self._meter.up = False
        log.info("plugin not available", plugin=self.name, error=str(error), retry_in=f"{pause:.0f} s")
        self._observer.failed(error)

    def _look_for_upgrade(self) -> None:
        if self._upgrading is None and self._clock.monotonic() >= self._look_at:
            self._upgrading = asyncio.ensure_future(self._upgraded())
            self._upgrading.add_done_callback(self._upgrading_ended)

    def _upgrading_ended(self, task: asyncio.Task[None]) -> None:
        self._upgrading = None
        self._look_at = self._clock.monotonic() + _LOOK_SECONDS
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("plugin not upgraded; the old one continues", plugin=self.name, error=str(error))

    async def _upgraded(self) -> None:
        """If its program was replaced, open the new one; the old one continues if that fails."""
        if not await self._opener.changed():
            return
        new = await self._new()
        old, self._current = self._current, new
        if old is not None:
            retiring = asyncio.ensure_future(self._retired(old))
            self._retiring[retiring] = old
            retiring.add_done_callback(lambda task: self._retiring.pop(task, None))

    async def _retired(self, old: Opened) -> None:
        """End it after its calls and operations; one that is never asked about does not hold it for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_RETIREMENT):
                await old.idle()
        await old.close(_DRAIN_SECONDS)

    async def _drop(self, grace: float) -> None:
        opened, self._current = self._current, None
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
                what = f"the plugin {self.name} has ended"
                return TransientError(what, code="PLG126", why=how, fix="see its log")
        return error

    async def _forget(self, opened: Opened, error: TransientError) -> None:
        """Open a new one for the next call."""
        if self._current is opened:
            self._current = None
            self._meter.ended()
            self._failed(error, self._early_ends.ended(self._clock.monotonic()))
            await opened.channel.close()
            if opened.process is not None and isinstance(error, SilentError):
                await opened.process.stop()


async def _end_of(process: PluginProcess) -> str:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DEATH_SECONDS):
            how = await process.ended()
            await process.stop()
            return how
    await process.stop()
    return "it no longer served its socket, and was killed"
