"""The running program: publishing, enforcing and taking commands, for one partition."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from lehr.base.errors import StalledError, TransientError
from lehr.base.log import Log
from lehr.control.commander import Commander
from lehr.control.health import Vitals
from lehr.control.mirror_upkeep import tidy_up
from lehr.control.parts import CLOSE_SECONDS, Parts
from lehr.control.retention import keep_pruned
from lehr.control.tenure import Tenure
from lehr.control.tenures import LOOK_AGAIN_SECONDS, StandingByError, Tenures
from lehr.enforce.committer import Committed, Committer
from lehr.enforce.enforcer import Enforcer
from lehr.enforce.plugin_errors import defect_of, one_line
from lehr.enforce.turns import Turned
from lehr.model.asset import AssetKey, Partition
from lehr.model.attempt import Attempt, Publication
from lehr.model.writes import LeaseLostError, Write
from lehr.publish.publisher import Publisher
from lehr.query.run_state import History, Load, RunState
from lehr.rollouts.figures import RolloutFigures
from lehr.sdk.plugin_meter import Metered, PluginMeter
from lehr.sdk.runtime import Runtime

log = Log()

GRACE_SECONDS = 30.0
"""How long running pushes may take to finish when the process ends."""


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
    """

    def __init__(self, parts: Parts, partition: Partition) -> None:
        self.partition = partition
        self.listeners: list[Callable[[Attempt], object]] = []
        self.commit_listeners: list[Committed] = []
        self.turn_listeners: list[Turned] = []
        self.source_looked_at: float | None = None
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
        self._tenures = Tenures(self._new_tenure, partition, parts.owner, parts.clock)
        self._publisher = Publisher(
            runtime,
            parts.source,
            parts.generation,
            parts.clean_generation,
            self._ask,
            parts.reading,
            parts.look_up,
            parts.claims,
            parts.validators,
            parts.asked_validators,
        )
        self._refreshing = asyncio.Lock()
        commander = Commander(runtime, lambda: self._tenures.current, self.refresh, self.state)
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
    def standby(self) -> str:
        """Why it does nothing; empty while it enforces."""
        return self._tenures.standby

    @property
    def committer(self) -> Committer:
        """Writes under the lease, since it was last taken."""
        return self._tenures.current.committer

    @property
    def enforcer(self) -> Enforcer:
        """Answers queries about current state. Another one after the lease was lost."""
        return self._tenures.current.enforcer

    @property
    def rollouts(self) -> Sequence[RolloutFigures]:
        """The rollouts of each policy in force, as the Strategist found them last."""
        return tuple(self._tenures.current.strategist.figures.values())

    @property
    def meters(self) -> Sequence[PluginMeter]:
        """Figures of the plugins that run in other processes."""
        plugins = (plugin for plugin in self._parts.plugins if isinstance(plugin, Metered))
        return [meter for plugin in plugins for meter in plugin.meters()]

    @property
    def started(self) -> bool:
        """True once it stands by, or has made its first pass over the source."""
        return bool(self._tasks) or (self._tenures.known and bool(self.standby))

    @property
    def at_rest(self) -> bool:
        """As of the Enforcer; False while another process enforces."""
        return not self.standby and self.enforcer.at_rest

    async def _ask(self, write: Write) -> object:
        self._tenures.require()
        [answer] = await self.committer.ask(write)
        return answer

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
            self._tenures.require()
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
            await self._tenures.take()
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

    async def _keep_lease(self) -> None:
        """Each time that another process takes the lease, stop what acts under it, and take it back later.

        Raises:
            StalledError, Exception: as `Tenure.broken`, also if a process with the same owner has taken it.
        """
        while True:
            try:
                await self._tenures.current.broken()
            except LeaseLostError as error:
                await self._tenures.stand_by(error)
            await self._follow_up()

    async def _first_pass(self) -> Attempt:
        while True:
            try:
                return await self.refresh()
            except LeaseLostError as error:
                await self._tenures.stand_by(error)

    async def _follow_source(self) -> None:
        """Publish what the source has, at each of its hints; after any failure, try again later."""
        while True:
            try:
                async for _hint in self._parts.source.changes():
                    await self._follow_up()
            except Exception:
                log.exception("watching the source for changes failed; retrying")
            await self._parts.clock.sleep(LOOK_AGAIN_SECONDS)
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
        await self._tenures.current.end(grace)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        await self._parts.close()
