"""Lanes: one for each plugin, so that trouble with one plugin does not delay others (invariant I9).

A lane is a work queue of assets that want a turn, a bounded number of workers that run turns,
a bounded number of pushes, and a retry budget. Calls of the plugin go through it. It
limits their time, and returns their errors as values: no exception of a plugin gets past it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from lehr.base.backoff import RetryBudget
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, NeedError, StalledError, TransientError, WaitingError
from lehr.base.log import Log
from lehr.client.turns import TurnQueue
from lehr.enforce.diff_batches import UNANSWERED, Batches
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.places import Places
from lehr.enforce.plugin_errors import FAILURES, one_line, reraise_if_cancelled, storable
from lehr.enforce.state import Diffed, DiffFailed, StatusReported
from lehr.enforce.time_limit import call_on_first_wait, within
from lehr.model.asset import Asset, AssetKey
from lehr.model.diff import NO_DIFF, Diff, Target
from lehr.model.handle import excess
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.outputs import NO_OUTPUTS, OutputNames, problem_with
from lehr.sdk.plugin import AssetPlugin, Push, Traits
from lehr.validate.secrets import known_secret, secrets_in

log = Log()

T = TypeVar("T")
Returned = TypeVar("Returned", Diff, Outcome)

_YIELD_SECONDS = 0.005
"""How long a worker may run before it yields to others."""

_PATIENCE_SECONDS = 1.0

_PREPARATION_SECONDS = 0.1
"""How long a turn waits for its preparation; a store that hangs must not hold up turns that need none."""

_STATUS_TIMEOUT = 30.0
_WATCH_RESTART_SECONDS = 5.0

_FIX_PLUGIN = "fix or update the plugin"
_TRACEBACK = f"{_FIX_PLUGIN}; the log of `lehr run` has the traceback"


class Lane(Generic[T]):
    """The turns, pushes and calls of one plugin."""

    def __init__(
        self,
        plugin: AssetPlugin,
        clock: Clock,
        turn: Callable[[T], Coroutine[Any, Any, None]],
        broke: Callable[[asyncio.Task[None]], None] = lambda worker: None,
        prepare: Callable[[TurnQueue[T]], asyncio.Task[None] | None] = lambda upcoming: None,
    ) -> None:
        """Create an empty lane.

        Args:
            turn: runs one turn of one asset; it does not raise.
            broke: called with every worker that has ended, including one that ran out of turns.
            prepare: called before each turn with the items whose turns are next, about in this order. The
                next turn waits a little for the task that it returns, if any.
        """
        self.plugin = plugin
        self._name = f"plugin {plugin.name}"
        self.budget = RetryBudget()
        self._clock = clock
        self._turn = turn
        self._broke = broke
        self._prepare = prepare
        self._preparing = False
        self._queue: TurnQueue[T] = TurnQueue()
        self._places = Places(self.traits.pushes)
        self._deferred: OrderedDict[T, None] = OrderedDict()
        self._diffs = Places(self.traits.turns)
        self._batches = Batches(plugin, self._diffs, self.traits.diff_timeout)
        self._flushing = False
        self._batched = type(plugin).diff_many is not AssetPlugin.diff_many  # it compares many in one call
        self._workers: dict[asyncio.Task[None], None] = {}  # ordered: they are cancelled in this order
        self._starting: asyncio.Task[None] | None = None
        self._stopped = False
        # Turns also wait for checks and commits, so more of them than diffs may be under way.
        self._most_workers = max(self.traits.turns, self.traits.pushes) * 2

    @property
    def traits(self) -> Traits:
        """As the plugin has them now: one in another process may have been replaced."""
        return self.plugin.traits

    def add(self, item: T, *, urgent: bool) -> None:
        """Queue a turn."""
        self._queue.add(item, urgent=urgent)
        self._start_worker()

    @property
    def queued(self) -> int:
        """How many turns wait to begin."""
        return len(self._queue)

    def _start_worker(self) -> None:
        """Start a worker for queued turns unless one is starting.

        A worker whose turn has to wait starts the next worker. So a hundred turns that never wait
        take one task, not a hundred.
        """
        if self._worker_starting or self._preparing or self._stopped or not self._queue:
            return
        # A worker that is not just starting is in the middle of a turn, which may take long.
        if len(self._workers) < self._most_workers:
            worker = asyncio.create_task(self._work(), name=f"turns of {type(self.plugin).__name__}")
            worker.add_done_callback(self._broke)
            self._workers[worker] = None
            self._starting = worker

    @property
    def _worker_starting(self) -> bool:
        """Whether a worker was made that has not begun; one that is cancelled first never does."""
        return self._starting is not None and not self._starting.done()

    def hasten(self, item: T) -> None:
        """Move the queued turn of `item` ahead of routine ones."""
        self._queue.hasten(item)

    async def _work(self) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        self._starting = None
        since = self._clock.monotonic()
        try:
            while self._queue:
                if (coming := self._prepare(self._queue)) is not None:
                    await self._wait_for(coming)
                    if not self._queue:
                        break
                waited = await call_on_first_wait(self._start_worker, self._turn(self._queue.take()))
                if waited and self._batched:
                    since = self._clock.monotonic()  # it has just waited for a batch, together with others
                elif self._clock.monotonic() - since > _YIELD_SECONDS:
                    await self._clock.sleep(0)
                    since = self._clock.monotonic()
        finally:
            # Here and not in a callback of the task, which runs later: a caller that queues a turn
            # in between would count on a worker that takes no more.
            self._workers.pop(worker, None)
            self._start_worker()

    async def _wait_for(self, coming: asyncio.Task[None]) -> None:
        """Let one worker wait, and not as many as there are places: all turns would wait for the same."""
        self._preparing = True
        try:
            await asyncio.wait((coming,), timeout=_PREPARATION_SECONDS)
        finally:
            self._preparing = False

    async def take_place(self, item: T) -> bool:
        """Take one of the plugin's places for pushes, waiting a little if all are taken.

        Returns False when none came free; `item` is then remembered for `next_deferred`. Where
        pushes are short, the wait saves a second diff. It is bounded, as is the number of turns that
        wait, so that long pushes do not delay the turns of other assets.
        """
        if not await self._place_came_free():
            self._deferred[item] = None
            return False
        self._deferred.pop(item, None)
        return True

    async def _place_came_free(self) -> bool:
        if self._places.take():
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._places.wait()
            return True
        return self._places.take()

    def forget(self, item: T) -> None:
        """Forget `item`: it will not be queued again."""
        self._deferred.pop(item, None)

    def free_place(self) -> None:
        """Return a place."""
        self._places.give_back()

    def next_deferred(self) -> T | None:
        """The slot deferred longest ago; None if none is deferred, or no place is free.

        The caller must make it take the place, defer it again, or call this again, so that no place
        stays free while a slot waits for one.
        """
        if not self._places.free or not self._deferred:
            return None
        return self._deferred.popitem(last=False)[0]

    async def stop(self) -> None:
        """Run no more turns; those under way are cancelled and have ended when this returns."""
        self._stopped = True
        workers = tuple(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self._batches.stop()

    # --- calls of the plugin ---------------------------------------------------

    @property
    def watches(self) -> bool:
        """Whether the plugin ever reports possible changes."""
        return type(self.plugin).watch is not AssetPlugin.watch

    async def hints(self) -> AsyncIterator[AssetKey]:
        """Possible changes that the plugin reports, for ever. A watch that fails or ends is restarted."""
        warned = False
        while True:
            try:
                async for key in self.plugin.watch():
                    if not isinstance(key, AssetKey):
                        raise TypeError(f"it yielded a {type(key).__name__} instead of an AssetKey")
                    yield key
                if not warned:  # once: it may end whenever there is nothing to watch
                    log.warning("watch ended; it is restarted each time", plugin=self._name)
                warned = True
            except asyncio.CancelledError:
                reraise_if_cancelled()
            except FAILURES:
                log.exception("watch failed; restarting it", plugin=self._name)
            await self._clock.sleep(_WATCH_RESTART_SECONDS)

    async def diff(
        self, target: Target, asset: Asset | None, read: RecordingReader, *, routine: bool = False
    ) -> Diffed | DiffFailed:
        """Ask the plugin to compare.

        Args:
            routine: nothing urgent depends on the answer, so it may share a call with others.
        """
        read.understands = self.plugin.versions
        try:
            diff = await self._ask_until_read(target, read, routine)
        except TimeoutError:
            limit = self.traits.diff_timeout
            fix = "find out what it waits for; Lehr retries automatically"
            return DiffFailed(f"{self._name} took longer than {limit:g} s to look at production", fix)
        except LehrError as error:
            return _diff_failed(error, read)
        except asyncio.CancelledError:
            reraise_if_cancelled()
            return DiffFailed(f"{self._name} cancelled itself", _FIX_PLUGIN)
        except FAILURES as error:
            log.exception("plugin failed to diff", asset=target.id, type=target.type)
            return DiffFailed(f"{self._name} failed: {one_line(error)}", _TRACEBACK)
        if not isinstance(diff, Diff):
            return DiffFailed(f"{self._name} returned a {type(diff).__name__} instead of a diff", _FIX_PLUGIN)
        try:
            if diff == NO_DIFF:
                diff = NO_DIFF
            else:
                diff = _usable_diff(diff, self.plugin.outputs.get(target.type, NO_OUTPUTS))
        except ValueError as error:
            return DiffFailed(f"{self._name} returned a diff that is not valid: {error}", _FIX_PLUGIN)
        known = asset or read.asset(target.id)
        if known is None:
            return DiffFailed(f"incarnation {target.incarnation} has no asset {target.id}")
        return Diffed(diff, read.content_digest(known), read.elsewhere)

    async def _ask_until_read(self, target: Target, read: RecordingReader, routine: bool) -> object:
        """The plugin's answer, repeated until everything that it reads is in memory."""
        while True:
            try:
                diff: object = UNANSWERED
                if routine and self._batched:
                    diff = await self._ask_for_diff_in_batch(target, read)
                if diff is UNANSWERED:
                    diff = await self._ask_alone(target, read)
            except FAILURES:
                # Not only of a `NeedError`: it may have become an error of the plugin's own.
                if not read.missed:
                    raise
            if not read.missed:
                return diff
            await read.fetch_missed()

    async def _ask_alone(self, target: Target, read: RecordingReader) -> object:
        if not self._diffs.take():
            await self._diffs.wait()
        try:
            return await within(self.traits.diff_timeout, self._ask_for_diff(target, read))
        finally:
            self._diffs.give_back()

    async def _ask_for_diff(self, target: Target, read: RecordingReader) -> object:
        """Always a coroutine, whatever the plugin returns."""
        return await self.plugin.diff(target, read)

    async def _ask_for_diff_in_batch(self, target: Target, read: RecordingReader) -> object:
        if not self._flushing:
            self._flushing = True
            # In the loop's next iteration but one: workers that yielded are back by then.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._flush)
        answer = await self._batches.diff(target, read)
        if isinstance(answer, LehrError):
            raise answer
        return answer

    def _flush(self) -> None:
        """Ask for the collected diffs, unless a worker is starting: its turn may need one more."""
        if self._worker_starting:
            asyncio.get_running_loop().call_soon(self._flush)
            return
        self._flushing = False
        self._batches.flush()

    async def push(self, target: Target, read: RecordingReader, push: Push) -> Outcome:
        """Let the plugin push. Anything that is not a valid outcome is unknown."""
        limit = self.traits.push_timeout
        read.understands = self.plugin.versions
        try:
            async with asyncio.timeout(limit):
                outcome: object = await self.plugin.push(target, read, push)
        except TimeoutError:
            return Outcome(Result.UNKNOWN, f"{self._name} did not finish within {limit:g} s")
        except StalledError as error:
            return Outcome(Result.STALLED, str(error))
        except WaitingError as error:
            return self._usable(Outcome(Result.FAILED, str(error), error.until))
        except TransientError as error:
            return Outcome(Result.FAILED, str(error))
        except NeedError:
            assets = ", ".join(read.missed)
            return Outcome(Result.FAILED, f"{self._name} reads {assets} to push and had not to compare")
        except asyncio.CancelledError:
            reraise_if_cancelled()
            return Outcome(Result.UNKNOWN, f"{self._name} cancelled itself")
        except FAILURES as error:
            log.exception("plugin failed to push", asset=target.id, operation=push.operation.id)
            return Outcome(Result.UNKNOWN, f"{self._name} failed: {one_line(error)}")
        return self._usable(outcome)

    def _usable(self, outcome: object) -> Outcome:
        """`outcome` if it is valid, otherwise an unknown one."""
        if not isinstance(outcome, Outcome):
            kind = type(outcome).__name__
            return Outcome(Result.UNKNOWN, f"{self._name} returned a {kind} instead of an outcome")
        try:
            return outcome if outcome is DONE else _with_handle_intact(outcome, storable(outcome, Outcome))
        except ValueError as error:
            return Outcome(Result.UNKNOWN, f"{self._name} returned an outcome that is not valid: {error}")

    async def status(self, operation: Operation) -> StatusReported:
        """Ask the plugin about a push whose outcome is unknown."""
        try:
            async with asyncio.timeout(_STATUS_TIMEOUT):
                progress: object = await self.plugin.status(operation)
        except TimeoutError:
            return StatusReported(
                None, f"{self._name} did not report within {_STATUS_TIMEOUT:g} s whether the push has ended"
            )
        except asyncio.CancelledError:
            reraise_if_cancelled()
            return StatusReported(None, f"{self._name} cancelled itself")
        except LehrError as error:
            return StatusReported(None, str(error))
        except FAILURES as error:
            log.exception("plugin failed to report a status", operation=operation.id)
            return StatusReported(
                None, f"{self._name} failed to report whether the push has ended: {one_line(error)}"
            )
        if isinstance(progress, Progress):
            return StatusReported(progress)
        return StatusReported(
            None, f"{self._name} returned a {type(progress).__name__} when asked whether the push has ended"
        )


def _with_handle_intact(returned: Returned, stored: Returned) -> Returned:
    """`stored`, made of what a plugin returned.

    Raises:
        ValueError: the handle in it cannot be kept as it is.
    """
    if problem := excess(returned.handle):
        raise ValueError(f"it has {problem}")
    if stored.handle != returned.handle:
        raise ValueError("its handle is not plain text")
    if isinstance(stored.handle, str) and (found := known_secret(stored.handle)):
        raise ValueError(f"its handle contains {found}")
    return stored


def _usable_diff(diff: Diff, names: OutputNames) -> Diff:
    """`diff` as it can be stored, of a plugin that declares these outputs.

    Raises:
        ValueError: it cannot be; outputs that must not be kept are not quoted.
    """
    if diff.outputs is UNSET:
        return _with_handle_intact(diff, storable(diff, Diff))
    outputs = _plain_outputs(diff.outputs)
    if problem := problem_with(outputs, names):
        raise ValueError(f"it has {problem}")
    for path, found in secrets_in(outputs):
        raise ValueError(f"its output `{path}` looks like {found}, and all who read the state would see it")
    others = replace(diff, outputs=UNSET)
    return replace(_with_handle_intact(others, storable(others, Diff)), outputs=outputs)


def _plain_outputs(outputs: object) -> dict[str, Any]:
    """A copy of outputs. They must be intact, so nothing in them is repaired."""
    try:
        return msgspec.json.decode(msgspec.json.encode(outputs), type=dict[str, Any])
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ValueError("its outputs are not plain data") from error


def _diff_failed(error: LehrError, read: RecordingReader) -> DiffFailed:
    why = f": {error.why}" if error.why else ""
    is_waiting = isinstance(error, WaitingError)
    awaited = read.outputs.awaited if is_waiting and read.outputs is not None else ()
    awaits = tuple(dict.fromkeys(id for id, _path in awaited))
    until = error.until if isinstance(error, WaitingError) else None
    failed = DiffFailed(
        f"{error.what}{why}", error.fix, isinstance(error, StalledError), until, awaits=awaits
    )
    return storable(failed, DiffFailed)
