"""The Enforcer: composes the parts of enforcement, and their life cycle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence

from lehr.base.digest import Digest
from lehr.base.errors import LehrError, WaitingError
from lehr.base.log import Log
from lehr.enforce.claims import SlotClaims
from lehr.enforce.committer import Committer
from lehr.enforce.governance import Governance
from lehr.enforce.in_force import InForce
from lehr.enforce.intent_follower import IntentFollower
from lehr.enforce.lane import Lane
from lehr.enforce.lookups import Lookups
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.plugin_errors import defect_of
from lehr.enforce.pushes import Pushes
from lehr.enforce.slot import HINT, Slot
from lehr.enforce.turns import Turned, Turns, nobody
from lehr.enforce.unserved import Unserved
from lehr.enforce.viewer import Viewer
from lehr.enforce.wakeups import Wakeups
from lehr.model.asset import AssetId, AssetKey
from lehr.model.operation import Operation
from lehr.model.selector import Selector
from lehr.model.writes import KeepLease, LeaseLostError, Refused, TakeLease
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime

log = Log()

_CATCH_UP_SECONDS = 5.0


class LeaseHeldError(WaitingError):
    """Another process enforces the partition."""


class Enforcer:
    """Runs one logical loop for every asset of a partition, independent of all others.

    Use: `await start()` once an incarnation may exist, call `notify_published` and `controls_changed` as
    needed, and `await stop()`.

    Attributes:
        defect: what broke a loop; None if nothing did.
    """

    def __init__(
        self,
        runtime: Runtime,
        committer: Committer,
        plugins: Iterable[AssetPlugin],
        checks: Sequence[CheckPlugin],
        claims: Claims | None = None,
        turned: Turned = nobody,
        policies_in_force: Callable[[], None] = lambda: None,
    ) -> None:
        """Enforce the partition of `runtime`.

        Args:
            claims: the register of the host, if it has one.
            turned: called at the end of each turn.
            policies_in_force: called whenever rollout policies come into force, or stay in force.
        """
        self.partition = runtime.partition
        self.defect: BaseException | None = None
        self._runtime = runtime
        self._committer = committer
        self._lookups = Lookups(runtime)
        self._wakeups = Wakeups(runtime.clock, runtime.chance)
        self._claims = SlotClaims(claims, runtime, self._lookups, self._wakeups.slots)
        self._lanes: dict[str, Lane[Slot]] = {}
        plugins = tuple(plugins)
        served = frozenset(type for plugin in plugins for type in plugin.types)
        self._neighbours = Neighbours(runtime, self._lookups, self._wakeups.slots, self._lanes)
        pushes = Pushes(
            runtime, committer, self._lookups, self._neighbours, self._wakeups, self._claims, self._push
        )
        self._turns = Turns(
            runtime,
            committer,
            checks,
            self._lookups,
            Viewer(runtime, self._lookups, served, self._neighbours.needing),
            self._neighbours,
            self._wakeups,
            self._claims,
            pushes,
            self._add,
            self._lifted,
            turned,
        )
        self._in_force = InForce(
            runtime,
            committer,
            self._lookups,
            self._neighbours,
            self._wakeups,
            self._turns,
            self._add,
            policies_in_force,
        )
        for plugin in plugins:
            self._lanes.update(dict.fromkeys(plugin.types, self._lane(plugin)))
        self._unserved = self._lane(Unserved())
        self._intent_follower = IntentFollower(
            runtime, self._in_force.listed, self._in_force.published, self._wakeups.changed.set
        )
        self._tasks: dict[asyncio.Task[None], None] = {}  # ordered: they are cancelled in this order
        self._broken = asyncio.Event()
        runtime.metrics.listen(self._metrics_changed)

    def _lane(self, plugin: AssetPlugin) -> Lane[Slot]:
        turns = self._turns
        return Lane(plugin, self._runtime.clock, turns.run, self._work_done, turns.read_ahead)

    # --- life cycle --------------------------------------------------------------------

    async def start(self, owner: str) -> None:
        """Take the lease as `owner`, find unfinished work, and begin a turn for every asset.

        Raises:
            LeaseHeldError: another owner has the lease; nothing was started.
            TransientError, StalledError: the store is out of order.
        """
        now = self._runtime.clock.now()
        [taken] = await self._committer.ask(TakeLease(self.partition, owner, now))
        if isinstance(taken, Refused):
            until = now if taken.until is None else taken.until
            raise LeaseHeldError(taken.message, until=until, code="ENF108")
        self._turns.epoch = taken
        self._committer.under(self._lease())
        self._spawn(self._wakeups.follow_agenda(), "agenda", self._loop_ended)
        self._spawn(self._follow_store(), "store", self._loop_ended)
        for lane in dict.fromkeys(self._lanes.values()):
            if lane.watches:
                name = f"hints of {type(lane.plugin).__name__}"
                self._spawn(self._follow_hints(lane), name, self._loop_ended)
        await self._intent_follower.begin()
        self._spawn(self._intent_follower.run(), "intent", self._loop_ended)
        await self._release_claims()

    def _lease(self) -> KeepLease:
        return KeepLease(self.partition, self._turns.epoch, self._runtime.clock.now())

    async def stop(self, grace: float = 0.0) -> None:
        """Stop all loops. Pushes that do not finish within `grace` seconds have an unknown outcome."""
        self._wakeups.stopping = True
        self._runtime.metrics.ignore(self._metrics_changed)
        pushes = [slot for slot in self._wakeups.slots.values() if slot.push is not None]
        if pushes and grace:
            try:
                async with asyncio.timeout(grace):
                    while any(slot.push is not None for slot in pushes):
                        await self.changed()
            except TimeoutError:
                log.warning("some pushes did not finish in time; the next process checks their outcome")
        for lane in dict.fromkeys((*self._lanes.values(), self._unserved)):
            await lane.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.end_waits()

    def end_waits(self) -> None:
        """Wake those who wait for a turn to end: there will be none."""
        self._wakeups.changed.set()

    def _spawn(
        self,
        work: Coroutine[None, None, None],
        name: str,
        then: Callable[[asyncio.Task[None]], None],
    ) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(lambda task: self._tasks.pop(task, None))
        task.add_done_callback(then)

    def _push(self, work: Coroutine[None, None, None], name: str) -> None:
        self._spawn(work, name, self._work_done)

    def _loop_ended(self, task: asyncio.Task[None]) -> None:
        """A loop that ends would silently leave assets unhealed: the process that serves must end with it."""
        self._report_defect(defect_of(task, LeaseLostError))

    def _work_done(self, task: asyncio.Task[None]) -> None:
        """A push or a few turns have ended. An error that was not handled there ends the process."""
        self._report_defect(defect_of(task, LeaseLostError, may_end=True))

    def _report_defect(self, defect: BaseException | None) -> None:
        if defect is not None and self.defect is None and not self._wakeups.stopping:
            self.defect = defect
            self._broken.set()

    async def broken(self) -> None:
        """Wait until one of the loops breaks or ends, and raise its error."""
        await self._broken.wait()
        assert self.defect is not None
        raise self.defect

    # --- what wakes assets -----------------------------------------------------------

    def notify_published(self, sequence: int = 0) -> None:
        """Hint that an incarnation may have been published, and which."""
        self._intent_follower.notify_published(sequence)

    async def _follow_store(self) -> None:
        """Check periodically for writes without a notification."""
        while True:
            await self._runtime.clock.sleep(_CATCH_UP_SECONDS)
            try:
                await self._in_force.look_at_controls()
                # Without writes, this process would never notice that another one has taken over.
                await self._committer.ask(self._lease())
                await self._release_claims()
            except LeaseLostError:
                raise  # the process ends with it
            except LehrError as error:
                log.warning("the store cannot be read; retrying", error=str(error))

    async def _release_claims(self) -> None:
        """Release what departed assets still hold, once all running turndowns are known."""
        if self._turns.governance is not None:
            await self._claims.settle()

    async def releases_changed(self) -> None:
        """Assets may have been released, or releases withdrawn.

        Raises:
            LehrError: the store cannot be read; it is read again within seconds.
        """
        await self._in_force.releases_changed()

    async def controls_changed(self, selector: Selector, cause: str) -> None:
        """A control on the assets of `selector` was set or lifted."""
        await self._in_force.controls_changed(selector, cause)

    def _lifted(self, id: AssetId) -> None:
        self._spawn(self._in_force.lifted(id), f"restart of {id} is done", self._work_done)

    async def select(self, selector: Selector) -> list[AssetId]:
        """Ids of the enforced assets that `selector` selects.

        Raises:
            LehrError: an asset cannot be read.
        """
        return await self._in_force.select(selector)

    async def sweep(self) -> None:
        """Begin a turn of every asset."""
        await self._wakeups.sweep("resync")

    def restarts(self, id: AssetId) -> bool:
        """Whether the plugin of an asset, which is enforced here, can restart what runs."""
        return self._wakeups.slots[id].lane.traits.restarts

    def wake(self, id: AssetId, cause: str) -> None:
        """Begin a turn of one asset, if it is enforced here."""
        self._wakeups.wake(id, cause)

    def _metrics_changed(self) -> None:
        self._wakeups.wake_all(self._wakeups.unsettled, "what monitoring has found has changed")

    async def _follow_hints(self, lane: Lane[Slot]) -> None:
        async for key in lane.hints():
            if key.partition == self.partition:
                self.wake(key.id, HINT)

    # --- slots -----------------------------------------------------------------------

    def _add(self, id: AssetId, type: str, digest: Digest | None) -> Slot:
        slot = Slot(AssetKey(self.partition, id), type, digest, self._lanes.get(type, self._unserved))
        self._wakeups.add(slot)
        return slot

    def pushes(self) -> list[tuple[Operation, str]]:
        """Pushes under way, and the last progress that each reported. May be called from any thread."""
        slots = list(self._wakeups.slots.values())
        pushes = (slot.push for slot in slots)
        return [(push.operation, push.last_progress) for push in pushes if push]

    # --- queries -----------------------------------------------------------------

    @property
    def unsettled(self) -> frozenset[AssetId]:
        """Assets on which something is left to do."""
        return frozenset(self._wakeups.unsettled)

    @property
    def unsettled_count(self) -> int:
        """How many these are."""
        return len(self._wakeups.unsettled)

    @property
    def queued(self) -> dict[str, int]:
        """How many turns wait to begin, by the name of their plugin."""
        lanes = dict.fromkeys((*self._lanes.values(), self._unserved))
        return {type(lane.plugin).__name__: lane.queued for lane in lanes}

    @property
    def overdue(self) -> float:
        """Seconds by which the turn that is due first is late; 0 if none is."""
        return self._wakeups.overdue

    @property
    def epoch(self) -> int:
        """The epoch of its lease."""
        return self._turns.epoch

    def type_of(self, id: AssetId) -> str:
        """The type of an asset; empty if it is not enforced."""
        slot = self._wakeups.slots.get(id)
        return "" if slot is None else slot.type

    @property
    def turns(self) -> int:
        """How many turns were run."""
        return self._turns.count

    @property
    def looked_at(self) -> float | None:
        """Wall-clock seconds when production was last compared; None before that."""
        return self._turns.looked_at

    @property
    def assets(self) -> int:
        """How many assets are enforced."""
        return len(self._wakeups.slots)

    @property
    def trouble(self) -> str:
        """Why the newest incarnation is not enforced; empty when it is, or is about to be."""
        return self._intent_follower.trouble

    @property
    def governance(self) -> Governance | None:
        """What turns are judged by: checks, controls, policies, releases. None before it has started."""
        return self._turns.governance

    @property
    def at_rest(self) -> bool:
        """True when nothing runs, and nothing due within some seconds could change much."""
        behind = self._intent_follower.behind and not self._intent_follower.trouble
        return self._wakeups.at_rest and not behind

    async def changed(self) -> None:
        """Wait until some turn has ended."""
        self._wakeups.changed.clear()
        await self._wakeups.changed.wait()
