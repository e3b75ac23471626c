"""Lanes: one for each plugin, so that one plugin's trouble delays no other (invariant I9).

A lane is a work queue of assets that want a turn, a bounded number of workers that run turns,
a bounded number of pushes, and a retry budget. Calls of the plugin go through it, get their
time-out there, and come back as values: no exception of a plugin passes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Generic, TypeVar

import structlog

from lehr.base.backoff import RetryBudget
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.client.turns import TurnQueue
from lehr.enforce.failing import FAILURES, brief, raise_if_ours, storable
from lehr.enforce.limit import telling, within
from lehr.enforce.reading import RecordingReader
from lehr.enforce.state import Diffed, DiffFailed, Looked
from lehr.model.asset import Asset, AssetKey
from lehr.model.diff import NO_DIFF, Diff, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.sdk.plugin import AssetPlugin, Push

log = structlog.get_logger()

T = TypeVar("T")

_YIELD_SECONDS = 0.005
"""How long a worker may go on without giving others the loop."""

_PATIENCE_SECONDS = 1.0

_STATUS_TIMEOUT = 30.0
_WATCH_RESTART_SECONDS = 5.0

_MEND = "mend or update the plugin"
_TRACEBACK = f"{_MEND}; the log of `lehr run` has the traceback"


class Lane(Generic[T]):
    """The way of all assets that one plugin serves."""

    def __init__(
        self,
        plugin: AssetPlugin,
        clock: Clock,
        turn: Callable[[T], Coroutine[Any, Any, None]],
        broke: Callable[[asyncio.Task[None]], None] = lambda worker: None,
    ) -> None:
        """Make a lane without turns.

        Args:
            turn: runs one turn of one asset; it does not raise.
            broke: is called with every worker that has ended, also when it only had nothing left to do.
        """
        self.plugin = plugin
        self.traits = plugin.traits
        self._name = f"plugin {type(plugin).__module__}.{type(plugin).__qualname__}"
        self.budget = RetryBudget()
        self._clock = clock
        self._turn = turn
        self._broke = broke
        self._queue: TurnQueue[T] = TurnQueue()
        self._places = asyncio.Semaphore(self.traits.pushes)
        self._deferred: OrderedDict[T, None] = OrderedDict()
        self._diffs = asyncio.Semaphore(self.traits.turns)
        self._workers: set[asyncio.Task[None]] = set()
        self._roused = False
        self._stopped = False
        # Turns also wait for checks and commits, so more of them than diffs may be under way.
        self._most_workers = max(self.traits.turns, self.traits.pushes) * 2

    def add(self, item: T, *, urgent: bool) -> None:
        """Queue a turn."""
        self._queue.add(item, urgent=urgent)
        self._rouse()

    def _rouse(self) -> None:
        """Start a worker for queued turns unless one is starting.

        A worker whose turn has to wait calls the next worker. So a hundred turns that wait for
        nothing take one task, not a hundred.
        """
        if self._roused or self._stopped or not self._queue:
            return
        # A worker that is not on its way is in the middle of a turn, which may take its time.
        if len(self._workers) < self._most_workers:
            worker = asyncio.create_task(self._work(), name=f"turns of {type(self.plugin).__name__}")
            worker.add_done_callback(self._broke)
            self._workers.add(worker)
            self._roused = True

    def hasten(self, item: T) -> None:
        """Let the queued turn of `item` overtake routine ones."""
        self._queue.hasten(item)

    async def _work(self) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        self._roused = False
        since = self._clock.monotonic()
        try:
            while self._queue:
                await telling(self._rouse, self._turn(self._queue.take()))
                if self._clock.monotonic() - since > _YIELD_SECONDS:
                    await self._clock.sleep(0)
                    since = self._clock.monotonic()
        finally:
            # Here and not in a callback of the task, which runs later: a caller that queues a turn
            # in between would count on a worker that takes no more.
            self._workers.discard(worker)
            self._rouse()

    async def take_place(self, item: T) -> bool:
        """Take one of the plugin's places for pushes, waiting a little if all are taken.

        Returns False when none came free; `item` is then remembered for `next_deferred`. The wait
        spares assets a second diff where pushes are short. It is bounded, as is the number of turns
        that wait, so that long pushes do not keep others from being looked at.
        """
        if not await self._place_came_free():
            self._deferred[item] = None
            return False
        self._deferred.pop(item, None)
        return True

    async def _place_came_free(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS if self._places.locked() else None):
                await self._places.acquire()
            return True
        if self._places.locked():
            return False
        await self._places.acquire()
        return True

    def forget(self, item: T) -> None:
        """`item` is not to come again."""
        self._deferred.pop(item, None)

    def free_place(self) -> None:
        """Return a place."""
        self._places.release()

    def next_deferred(self) -> T | None:
        """The slot that comes next, of those deferred longest ago; None if there is none, or no place.

        The caller must take the place, be deferred again, or have this asked once more: no place
        stays free while a slot waits for one.
        """
        if self._places.locked() or not self._deferred:
            return None
        return self._deferred.popitem(last=False)[0]

    async def stop(self) -> None:
        """Run no more turns; those under way are cancelled and have ended when this returns."""
        self._stopped = True
        workers = tuple(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    # --- calls of the plugin ---------------------------------------------------

    @property
    def watches(self) -> bool:
        """Whether the plugin ever reports possible changes."""
        return type(self.plugin).watch is not AssetPlugin.watch

    async def hints(self) -> AsyncIterator[AssetKey]:
        """Possible changes that the plugin reports, for ever; a watch that breaks or ends only costs time."""
        told = False
        while True:
            try:
                async for key in self.plugin.watch():
                    if not isinstance(key, AssetKey):
                        raise TypeError(f"it hinted at a {type(key).__name__}, not an AssetKey")
                    yield key
                if not told:  # once: it may end each time that there is nothing to watch
                    log.warning("watch ended, it is started again and again", plugin=self._name)
                told = True
            except asyncio.CancelledError:
                raise_if_ours()
            except FAILURES:
                log.exception("watch broke, it is started again", plugin=self._name)
            await self._clock.sleep(_WATCH_RESTART_SECONDS)

    async def diff(self, target: Target, asset: Asset | None, read: RecordingReader) -> Diffed | DiffFailed:
        """Ask the plugin to compare."""
        limit = self.traits.diff_timeout
        try:
            async with self._diffs:
                diff: object = await within(limit, self._ask_for_diff(target, read))
        except TimeoutError:
            fix = "see what it waits for; Lehr looks again by itself"
            return DiffFailed(f"{self._name} took longer than {limit:g} s to look at production", fix)
        except LehrError as error:
            return _diff_failed(error)
        except asyncio.CancelledError:
            raise_if_ours()
            return DiffFailed(f"{self._name} cancelled itself", _MEND)
        except FAILURES as error:
            log.exception("plugin failed to diff", asset=target.id, type=target.type)
            return DiffFailed(f"{self._name} failed: {brief(error)}", _TRACEBACK)
        if not isinstance(diff, Diff):
            return DiffFailed(f"{self._name} answered a {type(diff).__name__} instead of a diff", _MEND)
        try:
            diff = diff if diff is NO_DIFF else storable(diff, Diff)
        except ValueError as error:
            return DiffFailed(f"{self._name} answered a diff that cannot be used: {error}", _MEND)
        known = asset or read.asset(target.id)
        if known is None:
            return DiffFailed(f"incarnation {target.incarnation} has no asset {target.id}")
        return Diffed(diff, read.content_digest(known))

    async def _ask_for_diff(self, target: Target, read: RecordingReader) -> object:
        """A coroutine for sure, whatever the plugin answers."""
        read.understands = self.plugin.versions
        return await self.plugin.diff(target, read)

    async def push(self, target: Target, read: RecordingReader, push: Push) -> Outcome:
        """Let the plugin push. Whatever is not plainly an outcome is unknown."""
        limit = self.traits.push_timeout
        read.understands = self.plugin.versions
        try:
            async with asyncio.timeout(limit):
                outcome: object = await self.plugin.push(target, read, push)
        except TimeoutError:
            return Outcome(Result.UNKNOWN, f"{self._name} did not end within {limit:g} s")
        except StalledError as error:
            return Outcome(Result.STALLED, str(error))
        except WaitingError as error:
            return self._usable(Outcome(Result.FAILED, str(error), error.until))
        except TransientError as error:
            return Outcome(Result.FAILED, str(error))
        except asyncio.CancelledError:
            raise_if_ours()
            return Outcome(Result.UNKNOWN, f"{self._name} cancelled itself")
        except FAILURES as error:
            log.exception("plugin failed to push", asset=target.id, operation=push.operation.id)
            return Outcome(Result.UNKNOWN, f"{self._name} failed: {brief(error)}")
        return self._usable(outcome)

    def _usable(self, outcome: object) -> Outcome:
        """`outcome` if it is valid, otherwise an unknown one."""
        if not isinstance(outcome, Outcome):
            kind = type(outcome).__name__
            return Outcome(Result.UNKNOWN, f"{self._name} answered a {kind} instead of an outcome")
        try:
            return outcome if outcome is DONE else storable(outcome, Outcome)
        except ValueError as error:
            return Outcome(Result.UNKNOWN, f"{self._name} answered an outcome that cannot be used: {error}")

    async def status(self, operation: Operation) -> Looked:
        """Ask the plugin about a push whose outcome is unknown."""
        try:
            async with asyncio.timeout(_STATUS_TIMEOUT):
                progress: object = await self.plugin.status(operation)
        except TimeoutError:
            return Looked(None, f"{self._name} did not say within {_STATUS_TIMEOUT:g} s whether it has ended")
        except asyncio.CancelledError:
            raise_if_ours()
            return Looked(None, f"{self._name} cancelled itself")
        except LehrError as error:
            return Looked(None, str(error))
        except FAILURES as error:
            log.exception("plugin failed to tell a status", operation=operation.id)
            return Looked(None, f"{self._name} failed to say whether it has ended: {brief(error)}")
        if isinstance(progress, Progress):
            return Looked(progress)
        return Looked(None, f"{self._name} answered a {type(progress).__name__} when asked if it has ended")


def _diff_failed(error: LehrError) -> DiffFailed:
    why = f": {error.why}" if error.why else ""
    until = error.until if isinstance(error, WaitingError) else None
    failed = DiffFailed(f"{error.what}{why}", error.fix, isinstance(error, StalledError), until)
    return storable(failed, DiffFailed)
