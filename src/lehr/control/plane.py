"""The running program: publishing, enforcing and taking commands, for one partition."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic, errors, in_order
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.log import Log
from lehr.control.commander import Commander
from lehr.control.health import Vitals
from lehr.control.mirror_upkeep import Tidying, tidy_up
from lehr.control.retention import Retention, keep_pruned
from lehr.control.server import CarryOut
from lehr.control.tenure import Tenure
from lehr.enforce.committer import Committed, Committer
from lehr.enforce.enforcer import Enforcer, LeaseHeldError
from lehr.enforce.plugin_errors import defect_of, one_line
from lehr.enforce.turns import Turned
from lehr.model.asset import AssetKey, Partition
from lehr.model.attempt import Attempt, Publication
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.model.writes import LeaseLostError, Write
from lehr.publish.problem_positions import with_excerpts
from lehr.publish.publisher import Publisher
from lehr.query.run_state import History, Load, RunState
from lehr.rollouts.figures import RolloutFigures
from lehr.sdk.calendars import Calendars, no_calendars
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.generation import Generation
from lehr.sdk.metrics import NO_METRICS, Metrics
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.sdk.source import Source
from lehr.sdk.store import Store
from lehr.sdk.target_selection import Selections, no_selections
from lehr.sdk.validator import LookUp

log = Log()

GRACE_SECONDS = 30.0
"""How long running pushes may take to finish when the process ends."""

_LOOK_AGAIN_SECONDS = 5.0
_SOON_SECONDS = 0.1
_STARTING = "the store has not answered yet"
_CLOSE_SECONDS = 5.0


class Listener(Protocol):
    """Takes people's commands. Implementation: `lehr.control.server.Server`."""

    async def start(self) -> None:
        """Listen."""
        ...

    async def stop(self) -> None:
        """Stop listening."""
        ...


class Parts(msgspec.Struct, frozen=True):
    """The parts of the program, chosen by `lehr.wiring`.

    Attributes:
        blocking: runs writes to the store.
        store_reading: runs reads of the store.
        reading: runs reads of the source and validation of the result: a source that hangs, or a million
            changes, hold up no push (invariant I9).
        claims: the register of claims of this host; None where no other partition can exist.
        owner: names this process to others that would enforce the same partition; the same after a restart.
        joins: True if this state folder uses the store for the first time.
        forget_store: undoes that.
        retention: what a run does not prune; None to prune nothing.
        only: the assets to enforce, as in `lehr.sdk.runtime.Runtime`.
        metrics: answers questions of checks about production.
        close_metrics: ends that.
        selections: target selections that are not Lehr's own.
        calendars: reads when pushes may not start.
    """

    listen: Callable[[CarryOut], Listener]
    store: Store
    source: Source
    generation: Generation
    clean_generation: Callable[[], Generation]
    registry: Registry
    plugins: Sequence[AssetPlugin]
    checks: Sequence[CheckPlugin]
    clock: Clock
    chance: Chance
    blocking: Blocking
    reading: Blocking
    store_reading: Blocking
    owner: str
    look_up: LookUp | None = None
    joins: bool = False
    forget_store: Callable[[], None] = lambda: None
    retention: Retention | None = None
    claims: Claims | None = None
    tidying: Tidying | None = None
    only: Selector | None = None
    metrics: Metrics = NO_METRICS
    close_metrics: Callable[[], Coroutine[Any, Any, None]] | None = None
    selections: Selections = no_selections
    calendars: Calendars = no_calendars


class NotPublishableError(LehrError):
    """Nothing to run: the workspace has errors and nothing was published before."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(in_order(diagnostics))
        super().__init__("the workspace cannot be published", code="CTL120")


class StandingByError(TransientError):
    """This process does nothing, because another one enforces the partition."""


class ControlPlane:
    """One partition's control plane in this process.

    While another process has the partition's lease, this one stands by, and takes over when that ends.

    Attributes:
        listeners: called with every attempt to publish.
        commit_listeners: called after every commit with its writes and their answers; the feed may have one
            more entry.
        turn_listeners: called at the end of every turn.
        runtime: the partition's store and types, clock and chance.
        source_looked_at: wall-clock seconds when the last completed pass over the source began.
        standby: why it does nothing; empty while it enforces.
    """

    def __init__(self, parts: Parts, partition: Partition) -> None:
        self.partition = partition
        self.listeners: list[Callable[[Attempt], object]] = []
        self.commit_listeners: list[Committed] = []
        self.turn_listeners: list[Turned] = []
        self.source_looked_at: float | None = None
        self.standby = _STARTING
        self._pruned_at: float | None = None
        self._turned_at = self._source_read_at = parts.clock.monotonic()
        self._parts = parts
        runtime = Runtime(
            partition,
            parts.store,
            parts.registry,
            parts.clock,
            parts.chance,
            parts.store_reading,
            parts.only,
            parts.metrics,
            parts.selections,
            parts.calendars,
        )
        self.runtime = runtime
        self._tenure = self._new_tenure()
        self._publisher = Publisher(
            runtime,
            parts.source,
            parts.generation,
            parts.clean_generation,
            self._ask,
            parts.reading,
            parts.look_up,
            parts.claims,
        )
        self._refreshing = asyncio.Lock()
        commander = Commander(runtime, lambda: self._tenure, self.refresh, self.state)
        self._listener = parts.listen(commander.carry_out)
        self._tasks: list[asyncio.Task[None]] = []
        self._waits = False

    def _new_tenure(self) -> Tenure:
        parts = self._parts
        return Tenure(
            self.runtime,
            parts.blocking,
            parts.plugins,
            parts.checks,
            parts.claims,
            self._committed,
            self._turned,
        )

    def _committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        for listener in self.commit_listeners:
            listener(writes, answers)

    def _turned(self, asset: AssetKey, cause: str, seconds: float) -> None:
        self._turned_at = self._parts.clock.monotonic()
        for listener in self.turn_listeners:
            listener(asset, cause, seconds)

    @property
    def committer(self) -> Committer:
        """Writes under the lease, since it was last taken."""
        return self._tenure.committer

    @property
    def enforcer(self) -> Enforcer:
        """Answers queries about current state. Another one after the lease was lost."""
        return self._tenure.enforcer

    @property
    def rollouts(self) -> Sequence[RolloutFigures]:
        """The rollouts of each policy in force, as the Strategist found them last."""
        return tuple(self._tenure.strategist.figures.values())

    @property
    def started(self) -> bool:
        """True once it stands by, or has made its first pass over the source."""
        return bool(self._tasks) or self.standby not in ("", _STARTING)

    @property
    def at_rest(self) -> bool:
        """As of the Enforcer; False while another process enforces."""
        return not self.standby and self.enforcer.at_rest

    async def _ask(self, write: Write) -> object:
        self._require_lease()
        [answer] = await self.committer.ask(write)
        return answer

    def _require_lease(self) -> None:
        if self.standby:
            raise StandingByError(
                "this process does not enforce the partition", code="CTL136", why=self.standby
            )

    def state(self) -> RunState:
        """The current state. May be called from any thread."""
        now = self._parts.clock.now()
        return RunState(
            active=True,
            now=now,
            process=os.getpid(),
            partition=self.partition,
            seen_at=now,
            source_looked_at=self.source_looked_at,
            production_looked_at=self.enforcer.looked_at,
            standby=self.standby,
            load=Load(turns=self.enforcer.turns, queued=self.enforcer.queued),
            history=self._history(),
            progress={operation.id: progress for operation, progress in self.enforcer.pushes()},
        )

    def vitals(self) -> Vitals:
        """Facts from which `lehr.control.health` decides whether this process works."""
        enforcer, committer, now = self.enforcer, self.committer, self._parts.clock.monotonic()
        trouble = committer.trouble
        return Vitals(
            defect="" if enforcer.defect is None else one_line(enforcer.defect),
            overdue=enforcer.overdue,
            queued=sum(enforcer.queued.values()),
            since_turn=now - self._turned_at,
            store_trouble="" if trouble is None else str(trouble),
            since_commit=now - committer.committed_at,
            standby=self.standby,
            intent_trouble=enforcer.trouble,
            since_source=now - self._source_read_at,
        )

    def _history(self) -> History | None:
        kept = self._parts.retention
        if kept is None:
            return None
        return History(seconds=kept.seconds, incarnations=kept.incarnations, pruned_at=self._pruned_at)

    def _pruned(self, at: float) -> None:
        self._pruned_at = at

    async def refresh(self) -> Attempt:
        """Make a pass over the source, and notify the Enforcer of what it published."""
        async with self._refreshing:
            self._require_lease()
            began = self._parts.clock.now()
            attempt = await self._publisher.refresh()
            self.source_looked_at = began
            if attempt.publication is not Publication.UNREADABLE:
                self._source_read_at = self._parts.clock.monotonic()
            if attempt.publication is Publication.PUBLISHED:
                self.enforcer.notify_published(attempt.sequence)
        for listener in self.listeners:
            listener(attempt)
        return attempt

    async def start(self) -> Attempt:
        """Start commands and loops, and return the first pass over the source.

        Waits while another process enforces the partition.

        Raises:
            TransientError, StalledError: the store is out of order; nothing keeps running then.
        """
        try:
            await self._listener.start()
            await self._take_lease()
            attempt = await self._first_pass()
        except BaseException:
            await self.stop(grace=0.0)
            raise
        self._tasks = [
            asyncio.create_task(self._keep_lease(), name="lease"),
            asyncio.create_task(self._follow_source(), name="source"),
        ]
        parts = self._parts
        if parts.tidying is not None:
            tidying = tidy_up(parts.tidying, parts.store, parts.store_reading, self._refreshing, parts.clock)
            self._tasks.append(asyncio.create_task(tidying, name="tidying"))
        if parts.retention is not None:
            pruning = keep_pruned(self.partition, parts.retention, self._ask, parts.clock, self._pruned)
            self._tasks.append(asyncio.create_task(pruning, name="retention"))
        return attempt

    async def _take_lease(self) -> None:
        """Begin a tenure as soon as no other process has the lease."""
        while True:
            try:
                await self._tenure.begin(self._parts.owner)
            except LeaseHeldError as error:
                if error.what != self.standby:
                    self.standby = error.what
                    log.warning("standing by", partition=self.partition, why=error.what)
                left = error.until - self._parts.clock.now()
                await self._parts.clock.sleep(min(max(left, _SOON_SECONDS), _LOOK_AGAIN_SECONDS))
            else:
                self.standby = ""
                return

    async def _keep_lease(self) -> None:
        """Each time that another process takes the lease, stop what acts under it, and take it back later.

        Raises:
            StalledError, Exception: as `Tenure.broken`, also if a process with the same owner has taken it.
        """
        while True:
            try:
                await self._tenure.broken()
            except LeaseLostError as error:
                await self._stand_by(error)
            await self._follow_up()

    async def _first_pass(self) -> Attempt:
        while True:
            try:
                return await self.refresh()
            except LeaseLostError as error:
                await self._stand_by(error)

    async def _stand_by(self, lost: LeaseLostError) -> None:
        """Stop what acts under the lease that was lost, and take it back when it is free.

        Raises:
            LeaseLostError: a process with the same owner has taken it: they would take it from each other
                forever.
        """
        if lost.owner == self._parts.owner:
            raise lost
        self.standby = lost.what
        log.warning("the lease is lost; standing by", partition=self.partition, why=str(lost))
        await self._tenure.end()
        await self._retake_lease()
        log.warning("the lease is taken again", partition=self.partition)

    async def _retake_lease(self) -> None:
        while True:
            ended, self._tenure = self._tenure, self._new_tenure()
            ended.enforcer.end_waits()  # those who began to wait after it stopped
            try:
                await self._take_lease()
            except TransientError as error:
                log.warning("the lease cannot be taken; retrying", error=str(error))
            else:
                return
            await self._tenure.end()
            await self._parts.clock.sleep(_LOOK_AGAIN_SECONDS)

    async def _follow_source(self) -> None:
        """Publish what the source has, at each of its hints; after any failure, try again later."""
        while True:
            try:
                async for _hint in self._parts.source.changes():
                    await self._follow_up()
            except Exception:
                log.exception("watching the source for changes failed; retrying")
            await self._parts.clock.sleep(_LOOK_AGAIN_SECONDS)
            await self._follow_up()

    async def _follow_up(self) -> None:
        try:
            await self.refresh()
            self._waits = False
        except (StandingByError, LeaseLostError):
            pass  # the source is looked at again when this process takes over
        except TransientError as error:
            if not self._waits:
                log.warning("publishing waits for the store", error=str(error))
            self._waits = True
        except Exception:
            log.exception("a pass over the source failed; the next change starts another one")

    async def serve(self) -> None:
        """Run until cancelled.

        Raises:
            StalledError: the store is broken.
            Exception: a defect has ended one of the loops, and assets might no longer be healed.
        """
        await self._unless_broken(asyncio.Event().wait())

    async def converge(self) -> bool:
        """Wait until nothing is left to do (True), or nothing more will happen automatically (False).

        Raises:
            StalledError: the store is broken.
        """
        await self._unless_broken(self._at_rest())
        return not (self.enforcer.unsettled or self.enforcer.trouble)

    async def _at_rest(self) -> None:
        # No task switch may happen between the check and the wait, or the last change is missed.
        while not self.at_rest:
            await self.enforcer.changed()
        await self.committer.flush()

    async def _unless_broken(self, work: Coroutine[None, None, object]) -> None:
        """Wait for `work`, but not forever if a loop that it depends on breaks."""
        waiting = asyncio.ensure_future(work)
        try:
            await asyncio.wait((waiting, *self._tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done() and (defect := defect_of(task, StalledError)) is not None:
                    raise defect
            if waiting.done():
                waiting.result()
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def stop(self, grace: float = GRACE_SECONDS) -> None:
        """End everything that this process does. Production stays as it is."""
        await self._listener.stop()
        for task in self._tasks:
            task.cancel()
        await self._tenure.end(grace)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        if self._parts.close_metrics is not None:
            await _closed("metric sources", self._parts.close_metrics())
        await _closed("generation", self._parts.generation.close())
        for plugin in self._parts.plugins:
            await _closed(type(plugin).__name__, plugin.close())
        if self._parts.claims is not None:
            await _closed("claims", self._parts.claims.close())


async def _closed(what: str, closing: Coroutine[None, None, None]) -> None:
    """A part that hangs or breaks while closing does not keep the others from closing."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await closing
    except Exception as error:
        log.warning("could not be closed cleanly", what=what, error=one_line(error))


async def partition_of(parts: Parts) -> Partition:
    """The partition that the state belongs to, else the one that the workspace names.

    If a state folder joins a store that others have used before, the workspace must name the same partition:
    otherwise it would take their lease.

    Raises:
        StalledError: it names another one; nothing was written, and no lease was taken.
        NotPublishableError: the state is new and the workspace names none.
        TransientError, StalledError: the source cannot be read.
    """
    known = parts.store.intent.partitions()
    if known and not parts.joins:
        return known[0]
    try:
        named = await _named_partition(parts)
        if known and named != known[0]:
            raise StalledError(
                f"the store belongs to partition {known[0]}, but the workspace names {named}",
                code="CTL121",
                why="a store holds one partition",
                fix=f"give {named} a schema of its own in the address of the store: ?schema={named}",
            )
    except BaseException:
        parts.forget_store()
        raise
    return named


async def _named_partition(parts: Parts) -> Partition:
    snapshot = await parts.reading.run(parts.source.newest)
    generated = await parts.generation.generate(snapshot)
    if generated.partition is None:
        raise NotPublishableError(with_excerpts(errors(generated.diagnostics), snapshot))
    return generated.partition
