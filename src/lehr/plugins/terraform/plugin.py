"""The asset plugin of `lehr.TerraformResource` and `lehr.TerraformData`: read it from top to bottom.

Its neighbours: `payload` is what people write, `reading` reads it with its secrets and with outputs of other
assets; `providers` runs the providers; `looks` finds a resource and has the provider plan; `changes` carries
the plan out; `handle` is what Lehr keeps, and `memory` what only this process knows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, NeedError, TransientError
from lehr.model.asset import AssetKey, Partition
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.outputs import OutputNames
from lehr.plugins.terraform import born, discovery, reading
from lehr.plugins.terraform import handle as handles
from lehr.plugins.terraform.changes import FIRST_POLL, LONGEST_POLL, Carrier, Compared
from lehr.plugins.terraform.compare import SecretsIn
from lehr.plugins.terraform.finding import Observed
from lehr.plugins.terraform.handle import TerraformHandle
from lehr.plugins.terraform.intent import Intended
from lehr.plugins.terraform.looks import Looks
from lehr.plugins.terraform.memory import Memory
from lehr.plugins.terraform.payload import TERRAFORM_DATA, TERRAFORM_RESOURCE, TerraformData
from lehr.plugins.terraform.provider import ProviderGoneError, Value
from lehr.plugins.terraform.providers import LimitedProvider, Providers, Start
from lehr.plugins.terraform.recent_looks import RecentLooks
from lehr.sdk.plugin import AssetPlugin, Found, IndexedDiff, Push, Reader, Traits
from lehr.sdk.plugin_meter import PluginMeter
from lehr.sdk.protected import Protected
from lehr.sdk.secrets import NoSecrets, Secrets

_CLOSE_SECONDS = 20.0
_OUTPUTS = OutputNames(stable=frozenset({"id", "attributes"}))


class TerraformPlugin(AssetPlugin):
    """Keeps resources of Terraform providers as intended.

    * Production is what the provider reads. A resource is found by its handle, or by the import id of intent.
    * A diff is the provider's plan. A change that makes the provider replace the resource is destructive.
    * A push carries out that plan. Replacing is destroying, planning again for nothing, and creating.
    * Nothing that a provider carries out is cancelled, and a resource is never created while it is not known
      whether it was created.

    Args:
        clock: time.
        start: starts providers.
        blocking: writes files with secrets that providers make, and reads those that drafts are made of.
        base: the folder that relative paths of such files start from.
        secrets: provides secrets of configurations.
        protected: folders into which no secret may be written.
        secrets_in: finds what looks like a secret, and must not become an output.
        settle_seconds: how long a push looks for what it has done.
        visible_seconds: how long APIs may hide a resource that was just created.
        linger_seconds: how long an API may carry out a request of a process that was killed.
        call_seconds: for a call of a provider that only looks.
    """

    types = (TERRAFORM_RESOURCE, TERRAFORM_DATA)
    traits = Traits(
        goals=frozenset({Goal.ABSENT}),
        turns=32,
        pushes=16,
        diff_timeout=300.0,
        push_timeout=7200.0,
        resync=600.0,
    )
    outputs = dict.fromkeys(types, _OUTPUTS)

    def __init__(
        self,
        clock: Clock,
        start: Start,
        blocking: Blocking,
        *,
        base: Path = Path("/"),
        secrets: Secrets | None = None,
        protected: Protected | None = None,
        secrets_in: SecretsIn = lambda _data: (),
        settle_seconds: float = 60.0,
        visible_seconds: float = 60.0,
        linger_seconds: float = 30.0,
        call_seconds: float = 120.0,
    ) -> None:
        self._clock = clock
        self._blocking = blocking
        self._base = base
        self._secrets = secrets or NoSecrets()
        self._protected = protected or Protected({})
        self._settle_seconds = settle_seconds
        self._linger_seconds = linger_seconds
        self._providers = Providers(clock, start, call_seconds=call_seconds)
        self._memory = Memory(clock)
        self._recent = RecentLooks(clock)
        self._looks = Looks(self._memory, visible_seconds, secrets_in)
        self._running: Counter[AssetKey] = Counter()
        self._tasks: set[asyncio.Task[Outcome]] = set()
        self._cancelled: set[str] = set()

    async def diff(self, target: Target, read: Reader) -> Diff:
        """The provider's plan; see `compare.compared` for the paths."""
        intended = await reading.intended(target, read, self._secrets)
        async with self._use(intended) as provider:
            if isinstance(intended.payload, TerraformData):
                return await self._looks.data_source(provider, intended, target.goal)
            handle, lost = self._known(target)
            found = await self._looks.resource(provider, intended, target, handle, lost)
            pause = FIRST_POLL
            while not found.diff.empty and self._memory.changed_seconds(target) < self._settle_seconds:
                await self._clock.sleep(pause)  # the API may not show yet what was changed
                pause = min(2 * pause, LONGEST_POLL)
                found = await self._looks.resource(provider, intended, target, handle, lost)
        self._memory.note_compared(target)
        self._recent.note(target, intended, found)
        learned = lost != target.lost  # this process knows what the lost push has left
        if found.observed.state.value is None and learned:
            return replace(found.diff, handle="")
        text = found.observed.handle.text()
        is_new = (found.observed.is_new or learned) and text != target.handle
        return replace(found.diff, handle=text if is_new else UNSET)

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        """As many at once as a provider takes: most of the time is the API's."""

        async def compare(index: int) -> IndexedDiff:
            async with at_once:
                try:
                    return index, await self.diff(*requests[index])
                except NeedError:
                    raise
                except LehrError as error:
                    return index, error

        at_once = asyncio.Semaphore(self.traits.turns)
        tasks = [asyncio.ensure_future(compare(index)) for index in range(len(requests))]
        try:
            for done in asyncio.as_completed(tasks):
                with contextlib.suppress(NeedError):  # compared alone, once it can be read
                    yield await done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Carry out the provider's plan, and look until that is done."""
        intended = await reading.intended(target, read, self._secrets)
        if isinstance(intended.payload, TerraformData):
            return DONE  # nothing can differ
        return await self._finished(target, push, self._pushed(target, intended, push))

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while a provider carries out a push, also a cancelled one.

        Requests of a process that was killed may still be carried out by the API for some time.
        """
        if self._running[operation.key]:
            return Progress.RUNNING
        recent = self._clock.now() < operation.started_at + self._linger_seconds
        is_open = operation.result is None and self._memory.left(operation.id) is None
        return Progress.RUNNING if recent and is_open else Progress.ENDED

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """Drafts of resources by type and import id, or of those in a state file; see `discovery.drafts`."""
        async for draft in discovery.drafts(
            self._providers, self._secrets, query, self._blocking, self._base
        ):
            yield draft

    def meters(self) -> Sequence[PluginMeter]:
        """Figures of the providers, by program."""
        return self._providers.meters()

    async def close(self) -> None:
        if self._tasks:  # the next process looks what others have done
            await asyncio.wait(tuple(self._tasks), timeout=_CLOSE_SECONDS)
        await self._providers.close()

    def _use(self, intended: Intended) -> AbstractAsyncContextManager[LimitedProvider]:
        return self._providers.use(intended.provider, intended.provider_secrets, intended.hidden)

    def _known(self, target: Target) -> tuple[TerraformHandle, str]:
        """The handle, and the push that may have created something: as far as this process does not know."""
        left = self._memory.left(target.lost)
        return (handles.parse(target.handle), target.lost) if left is None else (handles.parse(left), "")

    async def _pushed(self, target: Target, intended: Intended, push: Push) -> Outcome:
        async with self._use(intended) as provider:
            handle, lost = self._known(target)
            now = self._recent.take(target, intended, push.operation.diff_digest)
            if now is None:
                now = await self._looks.resource(provider, intended, target, handle, lost)
            if now.diff.empty:
                text = now.observed.handle.text()
                return Outcome(Result.DONE, handle=text if text != target.handle else UNSET)
            if push.superseded:
                return Outcome(Result.FAILED, "superseded")
            if self._is_cancelled(push):
                return Outcome(Result.FAILED, "cancelled")

            async def compare(handle: TerraformHandle) -> Compared:
                return await self._looks.resource(provider, intended, target, handle, "")

            async def keep(value: Value) -> str:
                places = now.sought.resource.born_secrets
                return await born.keep(places, value, self._blocking, self._protected)

            carrier = Carrier(provider, self._clock, push, compare, keep, self._settle_seconds)
            return await self._carried_out(carrier, now, target, push)

    async def _carried_out(self, carrier: Carrier, now: Compared, target: Target, push: Push) -> Outcome:
        replaced = now.diff.effects.destructive
        if replaced:
            _require_approved(now.diff, push)
        if target.goal is Goal.ABSENT or replaced:
            try:
                await carrier.destroy(now)
            except ProviderGoneError:
                return Outcome(Result.UNKNOWN, "the provider has ended while it was destroying the resource")
            self._memory.note_made(target.key, exists=False)
            if target.goal is Goal.ABSENT:
                return Outcome(Result.DONE, handle="")
            if self._is_cancelled(push):
                return Outcome(Result.FAILED, "cancelled after the resource was destroyed", handle="")
            now = now._replace(observed=Observed())
        if now.observed.state.value is not None:
            outcome = await carrier.change(now)
            if outcome.result is Result.DONE and isinstance(outcome.handle, str):
                self._memory.note_changed(target, outcome.handle)
            return outcome
        outcome = await carrier.create(now)
        self._memory.note_made(target.key, exists=bool(outcome.handle))
        return outcome

    def _is_cancelled(self, push: Push) -> bool:
        return push.operation.id in self._cancelled

    async def _finished(self, target: Target, push: Push, call: Coroutine[Any, Any, Outcome]) -> Outcome:
        """The outcome of a push. If it is cancelled, what the provider has begun continues."""
        task = asyncio.ensure_future(call)
        id = push.operation.id
        self._running[target.key] += 1
        self._tasks.add(task)

        def ended(task: asyncio.Task[Outcome]) -> None:
            self._running[target.key] -= 1
            self._tasks.discard(task)
            if id in self._cancelled:
                self._cancelled.discard(id)
                self._remember(id, target, task)

        task.add_done_callback(ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._cancelled.add(id)
            raise

    def _remember(self, id: str, target: Target, task: asyncio.Task[Outcome]) -> None:
        """Keep what a cancelled push has left, unless it is not known."""
        error = None if task.cancelled() else task.exception()
        if task.cancelled() or (error is not None and not isinstance(error, LehrError)):
            return
        outcome = None if error is not None else task.result()
        if outcome is not None and outcome.result is Result.UNKNOWN:
            return
        new = UNSET if outcome is None else outcome.handle
        self._memory.note_left(id, new if isinstance(new, str) else target.handle)


def _require_approved(diff: Diff, push: Push) -> None:
    """Invariant: I4. A resource is destroyed only by the exact diff that the push was admitted with."""
    if diff.digest() != push.operation.diff_digest:
        raise TransientError(
            "production has changed since this was approved",
            code="TER125",
            why="the push would now destroy something other than the approved diff shows",
            fix="review the new diff, and approve it if it is right",
        )
