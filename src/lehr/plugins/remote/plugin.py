"""The asset plugin that calls a plugin in another process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.log import Log
from lehr.base.text import one_line
from lehr.model.asset import AssetKey, Partition
from lehr.model.diff import Diff, Target
from lehr.model.evolution import FIRST
from lehr.model.operation import Operation, Outcome, Progress, Result
from lehr.model.outputs import OutputNames
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.asking import AskedDiff, asked, asked_together, blaming
from lehr.plugins.remote.channel import CANCEL, DISCOVER, PUSH, STATUS, WATCH
from lehr.plugins.remote.connection import Connection, Opened
from lehr.plugins.remote.intent import CarriedIntent
from lehr.plugins.remote.limits import Gate, ProviderLimits
from lehr.plugins.remote.provided import ProviderReader, require_usable, usable_provider
from lehr.plugins.remote.selection import RemoteSelection
from lehr.plugins.remote.wire import (
    GarbageError,
    Shown,
    error_of,
    found_of,
    key_of,
    operation_message,
    outcome_of,
    progress_of,
    target_message,
    traits_of,
)
from lehr.sdk.asked_validator import AskedValidator
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin, Found, IndexedDiff, Push, Reader, Traits
from lehr.sdk.plugin_meter import PluginMeter
from lehr.sdk.provider import ConfiguredProvider
from lehr.sdk.secrets import NoSecrets, Secrets

log = Log()

_CANCEL_SECONDS = 5.0
_STATUS_SECONDS = 10.0
_SUPERSEDED_SECONDS = 0.25
_SILENCE_SECONDS = 90.0
_NEXT_VERSION_SECONDS = 60.0
_QUEUE_SECONDS = 3600.0
_GRACE_SECONDS = 10.0  # in which a plugin that has not answered is asked for its health


class _Declarations(NamedTuple):
    """The declarations in a description; `by` is None before the first.

    Attributes:
        offered: the traits for Lehr: as declared, with room for comparisons that wait for their providers.
    """

    by: m.DescribeResponse | None
    traits: Traits
    offered: Traits
    versions: Mapping[str, int]
    outputs: Mapping[str, OutputNames]


class RemotePlugin(AssetPlugin):
    """Calls a plugin over its connection.

    * A call without an answer is transient; a push without an outcome is unknown, and its asset is looked at
      before anything else is done.
    * An answer that makes no sense counts as none, and the problem is named.
    * Secrets that the plugin was given are hidden in whatever it answers.

    Args:
        types: those that the deployment assigns to it; it may have no others.
        selections: target selections that it answers, likewise.
        checks: those that it answers, by name; likewise.
        validators: those that it answers; likewise.
        room: how many comparisons may wait here, beyond those that the plugin gets at once: a provider
            whose limits are reached then delays no other. The time of calls is then limited here.
    """

    def __init__(
        self,
        connection: Connection,
        types: Sequence[str],
        clock: Clock,
        secrets: Secrets | None = None,
        selections: Sequence[str] = (),
        checks: Mapping[str, CheckPlugin] = MappingProxyType({}),
        validators: Sequence[AskedValidator] = (),
        room: int = 0,
    ) -> None:
        self.types = tuple(types)  # type: ignore[misc]
        self.connection = connection
        self.selections = {name: RemoteSelection(name, connection) for name in selections}
        self.checks = dict(checks)
        self.validators = tuple(validators)
        self._clock = clock
        self._secrets = secrets or NoSecrets()
        self._seen: dict[AssetKey, None] = {}  # in order, so that a simulation can be repeated
        self._watched = False
        self._room = room
        self._limits = ProviderLimits(clock)
        self._declared = _Declarations(None, Traits(), self._offered(Traits()), {}, {})
        self._turns = asyncio.Semaphore(self._declarations().traits.turns)

    @property
    def name(self) -> str:
        """As the deployment calls it."""
        return self.connection.name

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """As the plugin has described them last; the usual ones before it has."""
        return self._declarations().offered

    @property
    def versions(self) -> Mapping[str, int]:  # type: ignore[override]
        """As the plugin has described them last."""
        return self._declarations().versions

    @property
    def outputs(self) -> Mapping[str, OutputNames]:  # type: ignore[override]
        """As the plugin has described them last."""
        return self._declarations().outputs

    def _declarations(self) -> _Declarations:
        """Those of the last description, read once: each turn asks for them several times."""
        description = self.connection.description
        if description is not None and description is not self._declared.by:
            self._declared = self._declarations_in(description)
        return self._declared

    def _declarations_in(self, description: m.DescribeResponse) -> _Declarations:
        outputs = {
            item.name: OutputNames(
                stable=frozenset(item.stable_outputs), changing=frozenset(item.changing_outputs)
            )
            for item in description.types
        }
        versions = {item.name: item.version or FIRST for item in description.types}
        traits = traits_of(description.traits)
        return _Declarations(description, traits, self._offered(traits), versions, outputs)

    def _offered(self, traits: Traits) -> Traits:
        if not self._room:
            return traits
        return replace(
            traits, turns=traits.turns + self._room, diff_timeout=traits.diff_timeout + _QUEUE_SECONDS
        )

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Ask until the plugin needs nothing more, when the limits of the asset's provider allow it."""
        await self.connection.describe()
        seconds = self._declarations().traits.diff_timeout
        diff, gate = self._asked(target, read)
        async with self._passed(gate), self._turns:
            try:
                async with self._within(seconds + _GRACE_SECONDS):
                    return await asked(self.connection, diff, seconds)
            except TimeoutError:
                raise TransientError(
                    f"the plugin {self.name} took longer than {seconds:g} s to look at production",
                    code="PLG185",
                    fix="find out what it waits for; Lehr retries automatically",
                ) from None

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        """In as few calls as possible if the plugin has `DiffMany`; else in several calls at once.

        Those whose provider has limits are left out, and wait for them one by one.
        """
        description = await self.connection.describe()
        diffs: dict[int, AskedDiff] = {}
        for index, (target, read) in enumerate(requests):
            with contextlib.suppress(LehrError):  # asked alone, it has an error of its own
                diff, gate = self._asked(target, read)
                if gate is None:
                    diffs[index] = diff
        together = description.traits.batches
        many = asked_together(self.connection, diffs) if together else self._at_once(diffs)
        async with self._turns, contextlib.aclosing(self._prompt(many)) as answers:
            async for index, found in answers:
                yield index, found

    async def _prompt(self, answers: AsyncGenerator[IndexedDiff, None]) -> AsyncGenerator[IndexedDiff, None]:
        """`answers`, up to the first one that takes too long; the rest is then asked for one by one."""
        seconds = self._declarations().traits.diff_timeout
        async with contextlib.aclosing(answers):
            while True:
                try:
                    async with self._within(seconds):
                        answer = await anext(answers, None)
                except TimeoutError:
                    log.warning("a batch of diffs was silent for too long", plugin=self.name, seconds=seconds)
                    return
                if answer is None:
                    return
                yield answer

    def _passed(self, gate: Gate | None) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext() if gate is None else gate.passed(self._limits.share)

    def _within(self, seconds: float) -> contextlib.AbstractAsyncContextManager[object]:
        """Without room for comparisons that wait, Lehr's own time limit is that of the call."""
        return asyncio.timeout(seconds) if self._room else contextlib.nullcontext()

    async def _at_once(self, diffs: Mapping[int, AskedDiff]) -> AsyncGenerator[IndexedDiff, None]:
        traits = self._declarations().traits
        places, seconds = asyncio.Semaphore(traits.turns), traits.diff_timeout

        async def ask(index: int, diff: AskedDiff) -> IndexedDiff:
            async with places:
                try:
                    return index, await asked(self.connection, diff, seconds)
                except LehrError as error:
                    return index, error

        tasks = [asyncio.ensure_future(ask(index, diff)) for index, diff in diffs.items()]
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
        finally:
            for unfinished in tasks:
                unfinished.cancel()

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Start it, report its progress, and cancel it if this call is cancelled."""
        opened = await self.connection.ready()
        (carried, gate), operation = self._carried(target, read), operation_message(push.operation)
        if gate is not None:
            gate.charge()
        watching = asyncio.ensure_future(self._cancel_when_superseded(push, operation, opened))
        try:
            with blaming(self.connection.name):
                while True:
                    request = m.PushRequest(
                        target=target_message(target), intent=carried.message, operation=operation
                    )
                    ended = await self._pushed(request, push, carried, opened)
                    if isinstance(ended, Outcome):
                        return ended
                    await carried.add(ended)
                    self.connection.hide(carried.secrets)
        except asyncio.CancelledError:
            opened.unsettled.add(operation.id)
            await self._cancel(operation, m.CancelRequest.REASON_TIMEOUT, opened)
            raise
        finally:
            watching.cancel()

    async def status(self, operation: Operation) -> Progress:
        """As the plugin reports it, and those of former versions that still have calls under way."""
        request = m.StatusRequest(operation=operation_message(operation))
        states = [
            await self._state_in(opened, operation.id, request)
            for opened in await self.connection.all_ready()
        ]
        return Progress.ENDED if set(states) == {Progress.ENDED} else Progress.RUNNING

    async def _state_in(self, opened: Opened, id: str, request: m.StatusRequest) -> Progress:
        state = progress_of(await self.connection.call(STATUS, request, _STATUS_SECONDS, opened))
        if state is Progress.ENDED:
            opened.settle(id)
        return state

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of the assets that the plugin names; of every asset that it has compared if it names none."""
        while not (await self.connection.describe()).traits.watches:
            await self._clock.sleep(_NEXT_VERSION_SECONDS)
        for key in self._out_of_sight():
            yield key
        async with contextlib.aclosing(
            self.connection.stream(WATCH, m.WatchRequest(), lasting=True)
        ) as events:
            while True:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    event = await anext(events, None)
                if event is None:
                    raise TransientError("the plugin has ended its watch", code="PLG130")
                match event.WhichOneof("event"):
                    case "changed":
                        yield key_of(event.changed)
                    case "look_at_all":
                        for key in tuple(self._seen):
                            yield key

    def _out_of_sight(self) -> tuple[AssetKey, ...]:
        """Whatever may have changed since an earlier watch ended: its last hints may be lost."""
        first, self._watched = not self._watched, True
        return () if first else tuple(self._seen)

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """The plugin's drafts, of the types that are assigned to it."""
        async for found in self._discovered(None, m.DiscoverRequest(query=query, partition=partition)):
            yield found

    async def discover_in(
        self, provider: ConfiguredProvider, query: Sequence[str], partition: Partition
    ) -> AsyncIterator[Found]:
        """As `discover`, with the configuration of a provider."""
        await self.connection.describe()
        require_usable(self.name, self._declarations().traits, provider)
        carried = CarriedIntent(ProviderReader(provider), self._secrets, self.versions)
        carried.provide(provider)
        async for found in self._discovered(carried, m.DiscoverRequest(query=query, partition=partition)):
            yield found

    async def _discovered(
        self, carried: CarriedIntent | None, request: m.DiscoverRequest
    ) -> AsyncIterator[Found]:
        description = await self.connection.describe()
        if not description.traits.discovers:
            raise StalledError(
                f"assets of type {', '.join(self.types)} cannot be discovered",
                code="PLG131",
                why=f"the plugin {self.connection.name} cannot list what exists",
                fix="write them by hand; see `lehr explain TYPE`",
            )
        with blaming(self.connection.name):
            need: m.Need | None = m.Need()
            while need is not None:
                if carried is not None:
                    request.intent.CopyFrom(carried.message)
                need = None
                async with contextlib.aclosing(self.connection.stream(DISCOVER, request)) as answers:
                    async for answer in answers:
                        if answer.WhichOneof("answer") == "need" and carried is not None:
                            need = answer.need
                            break
                        yield self._found(answer, str if carried is None else carried.hidden.shown)
                if need is not None and carried is not None:
                    await carried.add(need)
                    self.connection.hide(carried.secrets)

    def _found(self, answer: m.DiscoverResponse, shown: Shown) -> Found:
        if answer.WhichOneof("answer") != "found":
            raise error_of(answer.trouble, shown)
        found = found_of(answer.found, shown)
        if found.type not in self.types:
            raise GarbageError(f"a draft of type {found.type!r}, which it does not serve")
        return found

    def meters(self) -> Sequence[PluginMeter]:
        """Its own figures."""
        return (self.connection.meter,)

    async def close(self) -> None:
        """End the connection, and a managed plugin."""
        await self.connection.close()

    def _asked(self, target: Target, read: Reader) -> tuple[AskedDiff, Gate | None]:
        self._seen[target.key] = None
        carried, gate = self._carried(target, read)
        return AskedDiff(target, carried), gate

    def _carried(self, target: Target, read: Reader) -> tuple[CarriedIntent, Gate | None]:
        """The intent of a call, and the gate of the asset's provider, if that has limits."""
        carried = CarriedIntent(read, self._secrets, self.versions)
        carried.begin(target.id)
        provider = usable_provider(self.name, self._declarations().traits, read, target.id)
        if provider is None:
            return carried, None
        carried.provide(provider)
        return carried, self._limits.gate(provider, target.incarnation)

    async def _pushed(
        self, request: m.PushRequest, push: Push, carried: CarriedIntent, opened: Opened
    ) -> Outcome | m.Need:
        shown, trouble = carried.hidden.shown, None
        try:
            async with contextlib.aclosing(self.connection.stream(PUSH, request, of=opened)) as events:
                async for event in events:
                    match event.WhichOneof("event"):
                        case "progress":
                            push.progress(shown(one_line(event.progress.message)))
                        case "outcome":
                            return outcome_of(event.outcome, shown)
                        case "need":
                            return _need(event)
                        case "trouble":
                            trouble = error_of(event.trouble, shown)
                            break
        except TransientError as error:
            opened.unsettled.add(request.operation.id)
            return Outcome(Result.UNKNOWN, str(error))
        if trouble is not None:
            raise trouble
        opened.unsettled.add(request.operation.id)
        return Outcome(
            Result.UNKNOWN, f"the plugin {self.connection.name} has ended a push without an outcome"
        )

    async def _cancel_when_superseded(self, push: Push, operation: m.Operation, opened: Opened) -> None:
        while not push.superseded:
            await self._clock.sleep(_SUPERSEDED_SECONDS)
        await self._cancel(operation, m.CancelRequest.REASON_SUPERSEDED, opened)

    async def _cancel(self, operation: m.Operation, reason: m.CancelRequest.Reason, opened: Opened) -> None:
        request = m.CancelRequest(operation=operation, reason=reason)
        with contextlib.suppress(LehrError):  # its outcome is unknown in any case
            await self.connection.call(CANCEL, request, _CANCEL_SECONDS, opened)


def _need(event: m.PushResponse) -> m.Need:
    return event.need
