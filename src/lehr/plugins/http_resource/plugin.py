"""The asset plugin of `lehr.HttpResource`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write; `finding` finds the resource; `compare` compares it, and knows
the effects; `requests` plans what to send, `client` sends it, `answers` knows what an answer means; `handle`
is what Lehr keeps; `discovery` drafts intent from a collection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.model.asset import AssetKey, Partition
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.plugins.http_resource import discovery, requests
from lehr.plugins.http_resource import handle as handles
from lehr.plugins.http_resource.answers import UnansweredError, UnknownOutcomeError
from lehr.plugins.http_resource.client import Client
from lehr.plugins.http_resource.compare import (
    Intended,
    Observed,
    compared,
    has_failed,
    is_ready,
    is_replaced,
    shown,
    status_of,
    unreadable,
)
from lehr.plugins.http_resource.finding import created_at, find
from lehr.plugins.http_resource.handle import ResourceHandle
from lehr.plugins.http_resource.payload import HTTP_RESOURCE, HttpResource
from lehr.sdk.plugin import AssetPlugin, Found, Push, Reader, Traits
from lehr.sdk.secrets import Hidden, NoSecrets, Secrets

T = TypeVar("T")

_REQUEST_SECONDS = 10.0
_SETTLE_SECONDS = 10.0
_FIRST_POLL, _LONGEST_POLL = 0.05, 2.0


class HttpResourcePlugin(AssetPlugin):
    """Keeps resources of HTTP APIs as intended.

    * Production is what a GET answers. A collection is searched for a resource whose URL is not known.
    * A diff names the declared fields that differ. A change of a field that the API cannot change deletes the
      resource and creates it again, which is destructive.
    * A push sends one write, or two for such a change, and then looks until the resource is as intended.
      Writes depend on the state that was compared, where the API has entity tags.
    * Its outcome is unknown if a write has no answer, or one that leaves it open. `status` is RUNNING while a
      write of a cancelled push waits for its answer.
    * It never creates a resource while it is unknown whether it was created, and sends credentials nowhere
      but to the declared server.

    Args:
        clock: time.
        secrets: provides credentials and secret fields.
        request_seconds: for one request.
        settle_seconds: how long a push looks for what it has written.
    """

    types = (HTTP_RESOURCE,)
    # Not COMPARE_AND_SWAP: whether a server keeps a late writer out depends on the server.
    traits = Traits(goals=frozenset({Goal.ABSENT}), diff_timeout=60.0, push_timeout=600.0)

    def __init__(
        self,
        clock: Clock,
        *,
        secrets: Secrets | None = None,
        request_seconds: float = _REQUEST_SECONDS,
        settle_seconds: float = _SETTLE_SECONDS,
    ) -> None:
        self._clock = clock
        self._secrets = secrets or NoSecrets()
        self._client = Client(clock, request_seconds)
        self._request_seconds = request_seconds
        self._settle_seconds = settle_seconds
        self._writing: Counter[AssetKey] = Counter()
        self._writes: set[asyncio.Task[Any]] = set()
        self._open_until: dict[AssetKey, float] = {}

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare the declared fields; see `compare.compared` for the paths."""
        intended, known = await self._intended(target, read), handles.parse(target.handle)
        observed = await find(self._client, intended, known.url, target.lost)
        found = compared(intended, observed, target.goal, known.sent)
        if found.look_again is not None:
            _require_not_failed(intended, observed)
        return replace(found, handle=_handle(target, intended, observed, known.sent))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Create, change or delete the resource, and look until that is done."""
        intended = await self._intended(target, read)
        known = handles.parse(target.handle)
        observed = await find(self._client, intended, known.url, target.lost)
        diff = compared(intended, observed, target.goal, known.sent)
        if diff.empty:
            return Outcome(Result.DONE, handle=_handle(target, intended, observed, known.sent))
        if push.superseded:
            return Outcome(Result.FAILED, "superseded")
        try:
            return await self._write(target, intended, observed, diff, push)
        except UnknownOutcomeError as error:
            return Outcome(Result.UNKNOWN, str(error))

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while a write of a cancelled push waits for its answer.

        A request without an answer, or of a process that was killed, may still be carried out for as long as
        a request may take.
        """
        if self._writing[operation.key]:
            return Progress.RUNNING
        if self._clock.monotonic() < self._open_until.get(operation.key, 0.0):
            return Progress.RUNNING
        self._open_until.pop(operation.key, None)
        recent = self._clock.now() < operation.started_at + self._request_seconds
        return Progress.RUNNING if recent and operation.result is None else Progress.ENDED

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """A draft of each resource of the collection that `query` begins with; options follow."""
        async for draft in discovery.drafts(self._client, self._revealed, query):
            yield draft

    async def close(self) -> None:
        for task in tuple(self._writes):
            task.cancel()
        if self._writes:
            await asyncio.wait(tuple(self._writes))

    async def _intended(self, target: Target, read: Reader) -> Intended:
        resource = read.payload(target.id, HttpResource)
        if target.goal not in (Goal.PRESENT, Goal.ABSENT):
            raise StalledError(
                f"a {HTTP_RESOURCE} cannot be {target.goal}",
                code="RES122",
                fix="use a turndown, which deletes it",
            )
        return await self._revealed(resource)

    async def _revealed(self, resource: HttpResource) -> Intended:
        secrets = {name: await self._secrets.read(item) for name, item in resource.secrets.items()}
        given = resource.credentials
        credentials = None if given is None else await self._secrets.read(given)
        hidden = Hidden([*secrets.values(), *([] if credentials is None else [credentials])])
        return Intended(resource, secrets, credentials, hidden)

    async def _write(
        self, target: Target, intended: Intended, observed: Observed, diff: Diff, push: Push
    ) -> Outcome:
        key = target.key
        if target.goal is Goal.ABSENT:
            await self._delete(key, intended, observed, push)
            return DONE
        if is_replaced(diff):
            _require_approved(diff, push)
            await self._delete(key, intended, observed, push)
            observed = Observed()
        if observed.document is None:
            url = await self._create(key, intended, push)
            return await self._settled(target, intended, url, push, made=not intended.resource.url)
        if not diff.look_again:
            observed = await self._ready(intended, observed, push)
            push.progress("changing")
            await self._finished(key, self._client.write(requests.change(intended, observed), intended))
        return await self._settled(target, intended, observed.url, push)

    async def _create(self, key: AssetKey, intended: Intended, push: Push) -> str:
        """Create the resource; returns its URL, or an empty one if it has to be looked for by `match`."""
        push.progress("creating")
        request = requests.creation(intended, push.operation.id)
        answer = await self._finished(key, self._client.write(request, intended))
        assert answer is not None  # as only of a deletion
        try:
            url = created_at(intended.resource, answer)
        except LehrError as error:
            raise UnknownOutcomeError(error.what, code="RES125", why=error.why, fix=error.fix) from error
        if intended.hidden.shown(url) != url or not (url or intended.resource.match):
            raise UnknownOutcomeError(
                f"{request.url} does not answer with the URL of what it has created",
                code="RES128",
                fix="correct `id`, or add `match`",
            )
        return url

    async def _delete(self, key: AssetKey, intended: Intended, observed: Observed, push: Push) -> None:
        """Delete the resource, and wait until it is gone."""
        push.progress("deleting")
        await self._finished(key, self._client.write(requests.deletion(observed), intended))
        deadline, pause = self._deadline(intended), _FIRST_POLL
        while await self._client.read(observed.url, intended) is not None:
            if self._clock.monotonic() >= deadline:
                raise TransientError(
                    f"{observed.url} is still there after it was deleted",
                    code="RES123",
                    why="the server accepted the request, and still answers GET with the resource",
                )
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL)

    async def _ready(self, intended: Intended, observed: Observed, push: Push) -> Observed:
        """The resource once the API no longer works on it, which would refuse a change."""
        deadline, pause = self._deadline(intended), _FIRST_POLL
        while not _is_idle(intended, observed) and self._clock.monotonic() < deadline:
            push.progress(f"waiting for status {_status(intended, observed)} to end")
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL)
            found = await find(self._client, intended, observed.url, "")
            if found.document is None:
                raise TransientError(f"{observed.url} has been deleted", code="RES124")
            observed = found
        return observed

    async def _settled(
        self, target: Target, intended: Intended, url: str, push: Push, *, made: bool = False
    ) -> Outcome:
        """Look until the resource is as intended.

        Args:
            made: whether creating it again could make a second one.
        """
        deadline, pause = self._deadline(intended), _FIRST_POLL
        sent = handles.references(intended.resource.secrets)
        kept = _kept(target, url if intended.resource.url is None else "", "")
        while True:
            found: Diff | LehrError
            try:
                observed = await find(self._client, intended, url, "")
                kept = _handle(target, intended, observed, sent) if observed.document is not None else kept
                found = compared(intended, observed, target.goal, sent)
                missing = made and observed.document is None
                if found.empty:
                    return Outcome(Result.DONE, handle=kept)
                if found.look_again is not None:
                    push.progress(f"status {_status(intended, observed)}")
                    _require_not_failed(intended, observed)
            except StalledError as error:
                return Outcome(Result.STALLED, str(error), handle=kept)
            except (TransientError, WaitingError) as error:
                found, missing = error, False
            if self._clock.monotonic() >= deadline:
                return _unsettled(found, url or intended.resource.place, kept, missing=missing)
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL)

    def _deadline(self, intended: Intended) -> float:
        ready = intended.resource.ready
        seconds = self._settle_seconds if ready is None else ready.within_seconds
        return self._clock.monotonic() + seconds

    async def _finished(self, key: AssetKey, call: Coroutine[Any, Any, T]) -> T:
        """The result of a write. If it is cancelled, the write continues, and `status` reports it."""
        task = asyncio.ensure_future(call)
        self._writing[key] += 1
        self._writes.add(task)

        def ended(task: asyncio.Task[T]) -> None:
            self._writing[key] -= 1
            self._writes.discard(task)
            if not task.cancelled() and isinstance(task.exception(), UnansweredError):
                self._open_until[key] = self._clock.monotonic() + self._request_seconds

        task.add_done_callback(ended)
        return await asyncio.shield(task)


def _handle(target: Target, intended: Intended, observed: Observed, sent: str) -> str | UnsetType:
    """The handle to keep; unset for the one that is known."""
    if observed.document is None:
        return UNSET
    url = observed.url if intended.resource.url is None else ""
    return _kept(target, url, sent if unreadable(intended, observed.document) else "")


def _kept(target: Target, url: str, sent: str) -> str | UnsetType:
    text = ResourceHandle(url, sent).text()
    return UNSET if text == target.handle else text


def _require_approved(diff: Diff, push: Push) -> None:
    """Invariant: I4. A resource is deleted only as part of the exact diff that the push was admitted with."""
    if diff.digest() != push.operation.diff_digest:
        raise TransientError(
            "production has changed since this was approved",
            code="RES126",
            why="the push would now delete something other than the approved diff shows",
            fix="review the new diff, and approve it if it is right",
        )


def _require_not_failed(intended: Intended, observed: Observed) -> None:
    if observed.document is not None and has_failed(intended.resource, observed.document):
        raise StalledError(
            f"{observed.url} has the status {_status(intended, observed)}",
            code="RES127",
            why="`ready.failed` has this status",
            fix="fix the cause on the server, or delete the resource there: Lehr creates it again",
        )


def _is_idle(intended: Intended, observed: Observed) -> bool:
    document = observed.document or {}
    return is_ready(intended.resource, document) or has_failed(intended.resource, document)


def _status(intended: Intended, observed: Observed) -> str:
    status = shown(status_of(intended.resource, observed.document or {}), intended.hidden)
    return "unknown" if status is None else ascii(status)


def _unsettled(found: Diff | LehrError, url: str, kept: str | UnsetType, *, missing: bool) -> Outcome:
    if isinstance(found, LehrError):
        return Outcome(Result.UNKNOWN, f"it was written, and cannot be read: {found}", handle=kept)
    if missing:
        message = (
            "the server reported that the resource was created, and it is not there; it is not created again"
        )
        return Outcome(Result.STALLED, f"{url}: {message}", handle=kept)
    return Outcome(Result.FAILED, f"{url} still differs: {found.summary()}", handle=kept)
