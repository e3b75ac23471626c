"""Provider processes: one for each configuration, started when it is needed, limited, and started again."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lehr.base.backoff import delay
from lehr.base.clock import Clock
from lehr.base.digest import digest
from lehr.base.errors import LehrError, TransientError
from lehr.base.text import one_line
from lehr.plugins.early_ends import EarlyEnds
from lehr.plugins.terraform.payload import TerraformProvider
from lehr.plugins.terraform.provider import (
    Applied,
    Diagnostic,
    Planned,
    Provider,
    ProviderError,
    ProviderGoneError,
    ProviderSchema,
    State,
    Value,
)
from lehr.sdk.plugin_meter import PluginMeter
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden, SecretValue

T = TypeVar("T")

Start = Callable[[TerraformProvider, Mapping[str, SecretValue]], Awaitable[Provider]]
"""Starts a provider and configures it. Raises `LehrError`, without secrets."""

_IDLE_SECONDS = 900.0
_LONGEST_PAUSE = 30.0
_CLOSE_SECONDS = 5.0
_MOST_WORDS = 300

_PROGRAM = re.compile(r"terraform-provider-[A-Za-z0-9-]+")
_MOST_METERS = 50
_OTHER = "Other"
_OUTCOMES: Mapping[type[BaseException], str] = {
    ProviderError: "refused",
    ProviderGoneError: "lost",
    TimeoutError: "timeout",
    asyncio.CancelledError: "cancelled",
}


class Providers:
    """The running providers.

    Args:
        start: starts one.
        call_seconds: for a call that only looks. A provider that does not answer in time is started again,
            unless it carries out something: that may take an hour.
    """

    def __init__(self, clock: Clock, start: Start, *, call_seconds: float = 60.0) -> None:
        self._clock = clock
        self._start = start
        self._call_seconds = call_seconds
        self._known: dict[str, _Process] = {}
        self._meters: dict[str, PluginMeter] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def use(
        self,
        payload: TerraformProvider,
        secrets: Mapping[str, SecretValue],
        hidden: Hidden = NOTHING_HIDDEN,
        purpose: str = "",
    ) -> AsyncIterator[LimitedProvider]:
        """The provider of a configuration, running.

        Args:
            secrets: of the configuration, by name.
            hidden: hides these, and those that calls will pass, in the last words of a process.
            purpose: calls for another purpose have a process of their own, since a crash ends all calls.

        Raises:
            LehrError: it cannot be started.
        """
        self._close_idle()
        process = self._process(payload, secrets, purpose)
        process.users += 1
        try:
            yield LimitedProvider(process, await process.started(), hidden)
        finally:
            process.users -= 1
            process.used_at = self._clock.monotonic()
            if process.retired:
                self._close_idle()

    async def close(self) -> None:
        """End all of them, those that carry out something after a pause in which they may finish."""
        deadline = self._clock.monotonic() + _CLOSE_SECONDS
        while self._clock.monotonic() < deadline and any(item.applying for item in self._known.values()):
            await self._clock.sleep(0.05)
        processes, self._known = [*self._known.values()], {}
        await asyncio.gather(*(process.close() for process in processes), *self._closing)

    def _process(
        self, payload: TerraformProvider, secrets: Mapping[str, SecretValue], purpose: str
    ) -> _Process:
        key = digest([payload, purpose])
        process = self._known.get(key)
        if process is None or dict(process.secrets) != dict(secrets):
            if process is not None:  # a secret has changed: calls under way end with the old one
                process.retired = True
                self._known[digest([key, id(process)])] = process
            process = self._known[key] = _Process(
                self._clock, self._start, payload, secrets, self._call_seconds, self._meter(payload)
            )
        return process

    def meters(self) -> Sequence[PluginMeter]:
        """Figures by program, of all configurations that use it together."""
        for name, meter in self._meters.items():
            found = [item.runs for item in self._known.values() if item.meter.name == name]
            known = [runs for runs in found if runs is not None]
            meter.up = any(known) if known else None
        return tuple(self._meters.values())

    def _meter(self, payload: TerraformProvider) -> PluginMeter:
        found = _PROGRAM.match(payload.path.rpartition("/")[2])
        name = found[0] if found is not None else "terraform-provider"
        if name not in self._meters:
            if len(self._meters) >= _MOST_METERS:
                name = _OTHER
            self._meters.setdefault(name, PluginMeter(name))
        return self._meters[name]

    def _close_idle(self) -> None:
        now = self._clock.monotonic()
        for key, process in [*self._known.items()]:
            if not process.users and (process.retired or now - process.used_at > _IDLE_SECONDS):
                del self._known[key]
                task = asyncio.ensure_future(process.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)


class _Process:
    """One provider process and its limits.

    Attributes:
        users: calls of the plugin that use it now.
        applying: changes that it carries out now.
        used_at: monotonic seconds of the last use.
        retired: whether it will be closed once nothing uses it.
        runs: whether it could be called the last time; None before that.
    """

    def __init__(
        self,
        clock: Clock,
        start: Start,
        payload: TerraformProvider,
        secrets: Mapping[str, SecretValue],
        call_seconds: float,
        meter: PluginMeter,
    ) -> None:
        self.clock = clock
        self.payload = payload
        self.secrets = secrets
        self.call_seconds = call_seconds
        self.meter = meter
        self.users = 0
        self.applying = 0
        self.used_at = clock.monotonic()
        self.retired = False
        self.runs: bool | None = None
        self.looks = asyncio.Semaphore(payload.concurrency)
        self.applies = asyncio.Semaphore(payload.concurrency)
        self._start = start
        self._starting: asyncio.Task[Provider] | None = None
        self._failures = 0
        self._failed: LehrError | None = None
        self._again_at = 0.0
        self._early_ends = EarlyEnds()
        self._next_call_at = 0.0
        self._ending: set[asyncio.Task[None]] = set()

    async def started(self) -> Provider:
        """The provider, started if it does not run. Callers share one start, and its failure for a while."""
        if self._failed is not None and self.clock.monotonic() < self._again_at:
            raise self._failed
        if self._starting is None:
            self._early_ends.started(self.clock.monotonic())
            self._starting = asyncio.ensure_future(self._start(self.payload, self.secrets))
        starting = self._starting
        try:
            provider = await asyncio.shield(starting)
        except LehrError as error:
            self._note_failure(starting, error)
            raise
        except ProviderGoneError as error:
            gone = TransientError(
                f"the provider {self.payload.path} ends or hangs while it starts",
                code="TER104",
                why=last_words(error, Hidden(self.secrets.values())),
                fix="start it in a shell to see what it prints",
            )
            self._note_failure(starting, gone)
            raise gone from None
        self._failures, self._failed = 0, None
        if not self.runs:
            self.runs = True
            self.meter.started()
        return provider

    def _note_failure(self, starting: asyncio.Task[Provider], error: LehrError) -> None:
        if self._starting is not starting:  # another caller has noted it
            return
        self._starting, self._failed, self.runs = None, error, False
        self._failures += 1
        self._again_at = self.clock.monotonic() + delay(self._failures, 0.0, longest=_LONGEST_PAUSE) / 5

    async def turn(self) -> None:
        """Wait for the next call that the rate limit allows."""
        now = self.clock.monotonic()
        at = max(now, self._next_call_at)
        self._next_call_at = at + 1.0 / self.payload.calls_per_second
        if at > now:
            await self.clock.sleep(at - now)

    def abandon(self, provider: Provider, why: str) -> None:
        """Use another process from now on. One that carries out something keeps running.

        Args:
            why: the process has ended, or is ended now; without secrets.
        """
        starting = self._starting
        if starting is None or not starting.done() or starting.cancelled() or starting.exception():
            return
        if starting.result() is not provider or self.applying:
            return
        self._starting, self.runs = None, False
        self.meter.ended()
        if pause := self._early_ends.ended(self.clock.monotonic()):
            self._pause(pause, why)
        task = asyncio.ensure_future(provider.close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _pause(self, seconds: float, why: str) -> None:
        self._again_at = self.clock.monotonic() + seconds
        self._failed = TransientError(
            f"the provider {self.payload.path} keeps ending soon after it was started",
            code="TER139",
            why=f"{self._early_ends.count} times in a row, the last time because of: {why}",
            fix=f"Lehr starts it again in {seconds:.0f} s; if it still ends then, use another version of it",
        )

    async def close(self) -> None:
        """End the process."""
        starting, self._starting = self._starting, None
        if starting is not None:
            if not starting.done():
                starting.cancel()
            # One that still carries out something ends with this process.
            with contextlib.suppress(Exception, asyncio.CancelledError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await (await starting).close()
        await asyncio.gather(*self._ending, return_exceptions=True)


class LimitedProvider:
    """A `Provider` within the limits of its configuration.

    A call that only looks raises `TransientError` if there is no answer; `apply` raises `ProviderGoneError`.
    """

    def __init__(self, process: _Process, provider: Provider, hidden: Hidden) -> None:
        self._process = process
        self._provider = provider
        self._hidden = hidden

    @property
    def schema(self) -> ProviderSchema:
        return self._provider.schema

    async def validate_resource(self, type: str, config: Value) -> tuple[Diagnostic, ...]:
        return await self._look(self._provider.validate_resource, type, config)

    async def import_resource(self, type: str, id: str) -> State:
        return await self._look(self._provider.import_resource, type, id)

    async def upgrade_state(self, type: str, version: int, json: bytes) -> Value:
        return await self._look(self._provider.upgrade_state, type, version, json)

    async def read_resource(self, type: str, state: State) -> State:
        return await self._look(self._provider.read_resource, type, state, counts=True)

    async def plan(self, type: str, prior: State, proposed: Value, config: Value) -> Planned:
        return await self._look(self._provider.plan, type, prior, proposed, config)

    async def read_data_source(self, type: str, config: Value) -> Value:
        return await self._look(self._provider.read_data_source, type, config, counts=True)

    async def apply(self, type: str, prior: State, planned: Planned, config: Value) -> Applied:
        process = self._process
        process.applying += 1
        try:
            async with process.applies:
                await process.turn()
                with self._metered("apply"):
                    return await self._provider.apply(type, prior, planned, config)
        except ProviderGoneError as error:
            process.applying -= 1  # so that it does not keep what has died
            process.abandon(self._provider, last_words(error, self._hidden))
            process.applying += 1
            raise
        finally:
            process.applying -= 1

    async def close(self) -> None:
        """Does nothing: others may use the process."""

    async def _look(self, call: Callable[..., Awaitable[T]], *args: Any, counts: bool = False) -> T:
        process = self._process
        async with process.looks:
            if counts:  # all others hardly ever ask the API
                await process.turn()
            try:
                with self._metered(call.__name__):
                    async with asyncio.timeout(process.call_seconds):
                        return await call(*args)
            except (ProviderGoneError, TimeoutError) as error:
                hangs = isinstance(error, TimeoutError)
                why = self._no_answer() if hangs else last_words(error, self._hidden)
                process.abandon(self._provider, why)
                raise TransientError(
                    f"the provider {process.payload.path} {'does not answer' if hangs else 'has ended'}",
                    code="TER105",
                    why=why,
                    fix="Lehr starts it again automatically",
                ) from None  # the error may quote a secret

    @contextlib.contextmanager
    def _metered(self, method: str) -> Iterator[None]:
        """Counts a call that is made within, without the time that it has waited for its turn."""
        clock, outcome = self._process.clock, "ok"
        began = clock.monotonic()
        try:
            yield
        except BaseException as error:
            outcome = _OUTCOMES.get(type(error), "error")
            raise
        finally:
            self._process.meter.called(method, outcome, clock.monotonic() - began)

    def _no_answer(self) -> str:
        return f"no answer within {self._process.call_seconds:g} s"


def last_words(error: Exception, hidden: Hidden) -> str:
    """Why a process has ended, in one line, shortened and without known secrets."""
    return hidden.shown(one_line(hidden.shown(str(error))))[:_MOST_WORDS]
