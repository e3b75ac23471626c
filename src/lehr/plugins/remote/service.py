"""Answers the calls of the protocol by a plugin in Python."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from lehr.base.blocking import Blocking, Inline
from lehr.base.errors import LehrError, TransientError
from lehr.base.text import one_line
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Diff, Target
from lehr.model.operation import Operation, Outcome, Progress
from lehr.model.types import Registry
from lehr.plugins.grpc_library import grpc
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.check_wire import push_of, verdict_message
from lehr.plugins.remote.given import GivenReader, reading
from lehr.plugins.remote.given_check import GivenCheckReader
from lehr.plugins.remote.given_proposal import GivenProposal
from lehr.plugins.remote.validator_wire import problem_message
from lehr.plugins.remote.wire import (
    STATES,
    difference_message,
    found_message,
    operation_of,
    outcome_message,
    target_of,
    traits_message,
    trouble_message,
)
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin, Found, Push, Reader
from lehr.sdk.provider import configured
from lehr.sdk.secrets import Secrets
from lehr.sdk.target_selection import SelectionQuestion, TargetSelector
from lehr.sdk.validator import Validator

_ALIVE_SECONDS = 20.0
_MOST_ENDED = 10_000
_TOO_LATE = m.Trouble(
    kind=m.Trouble.KIND_FENCED,
    what="the operation has ended before it arrived",
    why="`status` was asked about it first",
)

_log = logging.getLogger("lehr.plugin")


class NoAssets(AssetPlugin):
    """The plugin of a program that serves no type."""

    types = ()

    def __init__(self, secrets: Secrets) -> None:
        pass

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Is never called."""
        raise NotImplementedError

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Is never called."""
        raise NotImplementedError


class Served(NamedTuple):
    """A plugin in Python, and what it is called.

    Attributes:
        registry: the types whose payloads it reads as classes.
        selections: target selections, by name.
        checks: checks, by name.
        validators: validators, by name.
        threads: runs selections and validators.
    """

    name: str
    version: str
    plugin: AssetPlugin
    registry: Registry
    selections: Mapping[str, TargetSelector] = {}
    threads: Blocking = Inline()
    checks: Mapping[str, CheckPlugin] = {}
    validators: Mapping[str, Validator] = {}


class Service:
    """The methods of `lehr.plugin.v1`."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._plugin = served.plugin
        self._pushes: dict[str, _RunningPush] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    def handlers(self) -> grpc.GenericRpcHandler:
        """For a server of gRPC."""
        unary: dict[str, tuple[Callable[..., Any], Any]] = {
            "Describe": (self.describe, m.DescribeRequest),
            "Diff": (self.diff, m.DiffRequest),
            "Cancel": (self.cancel, m.CancelRequest),
            "Status": (self.status, m.StatusRequest),
            "Check": (self.check, m.CheckRequest),
            "Select": (self.select, m.SelectRequest),
            "Validate": (self.validate, m.ValidateRequest),
        }
        streams: dict[str, tuple[Callable[..., Any], Any]] = {
            "DiffMany": (self.diff_many, m.DiffManyRequest),
            "Push": (self.push, m.PushRequest),
            "Watch": (self.watch, m.WatchRequest),
            "Discover": (self.discover, m.DiscoverRequest),
        }
        methods = {
            name: grpc.unary_unary_rpc_method_handler(call, kind.FromString, _serialized)
            for name, (call, kind) in unary.items()
        } | {
            name: grpc.unary_stream_rpc_method_handler(call, kind.FromString, _serialized)
            for name, (call, kind) in streams.items()
        }
        return grpc.method_handlers_generic_handler("lehr.plugin.v1.Plugin", methods)

    async def describe(self, request: m.DescribeRequest, _context: object) -> m.DescribeResponse:
        """As `description`."""
        return self.description()

    def description(self) -> m.DescribeResponse:
        """The declarations of the plugin's class."""
        plugin, kind = self._plugin, type(self._plugin)
        traits = traits_message(plugin.traits)
        traits.batches = kind.diff_many is not AssetPlugin.diff_many
        traits.watches = kind.watch is not AssetPlugin.watch
        traits.discovers = kind.discover is not AssetPlugin.discover
        return m.DescribeResponse(
            name=self._served.name,
            version=self._served.version,
            types=[self._type(name) for name in plugin.types],
            traits=traits,
            checks=sorted(self._served.checks),
            selections=sorted(self._served.selections),
            validators=sorted(self._served.validators),
        )

    def _type(self, name: str) -> m.AssetType:
        outputs = self._plugin.outputs.get(name)
        return m.AssetType(
            name=name,
            version=self._plugin.versions.get(name, 1),
            stable_outputs=sorted(outputs.stable) if outputs else (),
            changing_outputs=sorted(outputs.changing) if outputs else (),
        )

    async def diff(self, request: m.DiffRequest, _context: object) -> m.DiffResponse:
        """One diff."""
        reader = self._reader(request.intent, request.target)
        with reading(reader):
            try:
                found: Diff | LehrError = await self._plugin.diff(target_of(request.target), reader)
            except Exception as error:  # what counts is what it needed, also if it made another error of that
                found = _trouble(error, "diff")
        return _diff_response(request.mark, found, reader)

    async def diff_many(
        self, request: m.DiffManyRequest, _context: object
    ) -> AsyncGenerator[m.DiffManyResponse, None]:
        """Many diffs, in the order in which they are found."""
        requests = [
            (target_of(item.target), self._reader(item.intent, item.target)) for item in request.requests
        ]
        with contextlib.suppress(LehrError):  # the rest is asked for one by one
            async with contextlib.aclosing(self._plugin.diff_many(requests)) as answers:  # type: ignore[type-var]
                async for index, found in answers:
                    response = _diff_response(request.requests[index].mark, found, requests[index][1])
                    yield m.DiffManyResponse(index=index, response=response)

    async def push(
        self, request: m.PushRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncGenerator[m.PushResponse, None]:
        """A push, which continues if the caller leaves."""
        if request.operation.id in self._ended:
            yield m.PushResponse(trouble=_TOO_LATE)
            return
        reader = self._reader(request.intent, request.target)
        running = _RunningPush(operation_of(request.operation))
        self._pushes[running.operation.id] = running
        running.task = asyncio.ensure_future(self._pushed(request, reader, running))
        running.task.add_done_callback(lambda task: self._pushed_ended(running, task))
        while (event := await running.events.get()) is not None:
            yield m.PushResponse(progress=m.Progress(message=event))
        if running.task.cancelled():
            await context.abort(grpc.StatusCode.CANCELLED, "the push was cancelled")
        if not reader.complete:
            yield m.PushResponse(need=reader.need)
            return
        try:
            yield m.PushResponse(outcome=outcome_message(running.task.result()))
        except LehrError as error:
            yield m.PushResponse(trouble=trouble_message(error))
        except Exception:
            _log.exception("push failed")
            await context.abort(grpc.StatusCode.UNKNOWN, "the push failed")

    async def _pushed(self, request: m.PushRequest, reader: GivenReader, push: _RunningPush) -> Outcome:
        with reading(reader):
            return await self._plugin.push(target_of(request.target), reader, push)

    def _pushed_ended(self, push: _RunningPush, task: asyncio.Task[Outcome]) -> None:
        self._pushes.pop(push.operation.id, None)
        push.events.put_nowait(None)
        if not task.cancelled():
            task.exception()  # its caller may have left

    async def cancel(self, request: m.CancelRequest, _context: object) -> m.CancelResponse:
        """Notify a push, or cancel it."""
        running = self._pushes.get(request.operation.id)
        if running is not None:
            running.superseded = True
            if request.reason != m.CancelRequest.REASON_SUPERSEDED and running.task is not None:
                running.task.cancel()
        return m.CancelResponse()

    async def status(self, request: m.StatusRequest, _context: object) -> m.StatusResponse:
        """Whether a push runs here, or, according to the plugin, elsewhere."""
        if request.operation.id in self._pushes:
            return m.StatusResponse(state=STATES[Progress.RUNNING])
        state = await self._plugin.status(operation_of(request.operation))
        if state is Progress.ENDED:
            self._ended[request.operation.id] = None
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        return m.StatusResponse(state=STATES[state])

    async def watch(self, request: m.WatchRequest, _context: object) -> AsyncGenerator[m.WatchResponse, None]:
        """The keys that the plugin watches, and signs of life."""
        keys = self._plugin.watch()
        coming = asyncio.ensure_future(anext(keys, None))
        try:
            while True:
                await asyncio.wait({coming}, timeout=_ALIVE_SECONDS)
                if not coming.done():
                    yield m.WatchResponse(alive=m.Alive())
                    continue
                if (key := coming.result()) is None:
                    return
                yield m.WatchResponse(changed=m.AssetKey(partition=key.partition, id=key.id))
                coming = asyncio.ensure_future(anext(keys, None))
        finally:
            coming.cancel()

    async def discover(
        self, request: m.DiscoverRequest, _context: object
    ) -> AsyncGenerator[m.DiscoverResponse, None]:
        """The plugin's drafts, or what it needs for them."""
        reader = GivenReader(request.intent, 0, self._served.registry)
        with reading(reader):
            try:
                async for found in self._drafts(request, reader):
                    yield m.DiscoverResponse(found=found_message(found))
            except Exception as error:  # what counts is what it needed
                if reader.complete:
                    yield m.DiscoverResponse(trouble=trouble_message(_trouble(error, "discover")))
        if not reader.complete:
            yield m.DiscoverResponse(need=reader.need)

    def _drafts(self, request: m.DiscoverRequest, reader: GivenReader) -> AsyncIterator[Found]:
        query, partition = list(request.query), Partition(request.partition)
        if not request.intent.provider:
            return self._plugin.discover(query, partition)
        asset = reader.asset(AssetId(request.intent.provider))
        assert asset is not None, "a call carries its provider"
        return self._plugin.discover_in(configured(asset), query, partition)

    async def check(self, request: m.CheckRequest, _context: object) -> m.CheckResponse:
        """The verdicts of a check, or what it needs to know."""
        reader = GivenCheckReader(request.facts, self._served.registry)
        try:
            check = self._served.checks[request.check]
            verdicts = await check.check(push_of(request), reader)
            found = m.CheckResponse(verdicts=m.Verdicts(verdicts=map(verdict_message, verdicts)))
        except Exception as error:  # what counts is what it needed, also if it made another error of that
            found = m.CheckResponse(trouble=_check_trouble(error, reader))
        if reader.need.questions:
            found = m.CheckResponse(need=reader.need)
        found.mark = request.mark
        return found

    async def select(self, request: m.SelectRequest, _context: object) -> m.SelectResponse:
        """The answer of a target selection."""
        try:
            selector = self._served.selections[request.selection]
            question = msgspec.json.decode(request.question, type=SelectionQuestion)
            answer = await self._served.threads.run(selector.select, question)
            return m.SelectResponse(answer=msgspec.json.encode(answer))
        except Exception as error:
            return m.SelectResponse(trouble=trouble_message(_trouble(error, "select")))

    async def validate(self, request: m.ValidateRequest, _context: object) -> m.ValidateResponse:
        """The problems that a validator finds, or what it needs to look at."""
        threads = self._served.threads
        proposal: GivenProposal | None = None
        try:
            validator = self._served.validators[request.validator]
            proposal = await threads.run(GivenProposal, request, self._served.registry)
            problems = await threads.run(_problems, validator, proposal)
            found = m.ValidateResponse(problems=m.Problems(problems=problems))
        except Exception as error:  # what counts is what it needed, also if it made another error of that
            needs = proposal is not None and not proposal.complete
            found = m.ValidateResponse(
                trouble=None if needs else trouble_message(_trouble(error, "validate"))
            )
        if proposal is not None and not proposal.complete:
            found = m.ValidateResponse(need=proposal.need)
        found.mark = request.mark
        return found

    async def drained(self) -> None:
        """Wait for the pushes under way."""
        if tasks := self.tasks():
            await asyncio.wait(tasks)

    def tasks(self) -> list[asyncio.Task[Outcome]]:
        """Those of the pushes under way."""
        return [push.task for push in self._pushes.values() if push.task is not None]

    def _reader(self, intent: m.Intent, target: m.Target) -> GivenReader:
        return GivenReader(intent, target.incarnation, self._served.registry)


class _RunningPush:
    """A `lehr.sdk.plugin.Push` whose reports are sent.

    Attributes:
        events: its reports, and None once it has ended.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.superseded = False
        self.events: asyncio.Queue[str | None] = asyncio.Queue()
        self.task: asyncio.Task[Outcome] | None = None

    def progress(self, message: str) -> None:
        self.events.put_nowait(message)


def _diff_response(mark: bytes, found: Diff | LehrError, reader: GivenReader) -> m.DiffResponse:
    if not reader.complete:
        return m.DiffResponse(mark=mark, need=reader.need)
    if isinstance(found, LehrError):
        return m.DiffResponse(mark=mark, trouble=trouble_message(found))
    return m.DiffResponse(mark=mark, difference=difference_message(found))


def _problems(validator: Validator, proposal: GivenProposal) -> list[m.Problem]:
    """Runs in a thread: a validator may be any function, and may be slow."""
    return [problem_message(found) for found in validator(proposal)]


def _check_trouble(error: Exception, reader: GivenCheckReader) -> m.Trouble | None:
    """Why a check has no answer; None if it only needs more."""
    return None if reader.need.questions else trouble_message(_trouble(error, "check"))


def _trouble(error: Exception, call: str) -> LehrError:
    """`error` as a plugin of the same process would be reported."""
    if isinstance(error, LehrError):
        return error
    _log.error("%s failed", call, exc_info=error)
    return TransientError(
        f"the plugin failed: {type(error).__name__}", code="PLG145", why=one_line(str(error))
    )


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializeToString())
