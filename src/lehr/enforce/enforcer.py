"""The Enforcer's life cycle: follows intent and controls, and wakes the assets they concern."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError, WaitingError
from lehr.base.log import Log
from lehr.base.pauses import in_parts
from lehr.enforce.claims import SlotClaims
from lehr.enforce.committer import Committer
from lehr.enforce.governance import Governance, load, load_releases
from lehr.enforce.intent_follower import Heads, IntentFollower
from lehr.enforce.lane import Lane
from lehr.enforce.lookups import Lookups, selected
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.plugin_errors import defect_of
from lehr.enforce.recovery import Recovery, recover, unfinished_pushes
from lehr.enforce.slot import Activity, Slot
from lehr.enforce.state import State
from lehr.enforce.turns import Turned, Turns, nobody
from lehr.enforce.unserved import Unserved
from lehr.enforce.viewer import Viewer
from lehr.enforce.wakeups import Wakeups
from lehr.model.asset import AssetId, AssetKey
from lehr.model.declared import TYPE, declared_type
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.pinning import pin
from lehr.model.release import NO_RELEASES
from lehr.model.selector import Selector
from lehr.model.writes import Finish, KeepLease, LeaseLostError, Refused, TakeLease
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Head

log = Log()

T = TypeVar("T")

_CATCH_UP_SECONDS = 5.0

_MOST_SELECTORS = 16
"""Of more selectors, all assets are woken: to match each of them with every asset takes longer."""

_CONTROLS_CHANGED = "controls were set or lifted"


async def as_of_newest(
    newest: Callable[[], Awaitable[Incarnation]], read: Callable[[Incarnation], Awaitable[T]]
) -> tuple[Incarnation, T]:
    """The newest incarnation, and what `read` finds in it, with nothing published in between.

    Otherwise an asset's newest digest could meet an older incarnation, whose content would be admitted.
    """
    current = await newest()
    while True:
        found = await read(current)
        before, current = current, await newest()
        if current == before:
            return current, found


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
        self._policies_in_force = policies_in_force
        self._claims = SlotClaims(claims, runtime, self._lookups, self._wakeups.slots)
        self._lanes: dict[str, Lane[Slot]] = {}
        plugins = tuple(plugins)
        served = frozenset(type for plugin in plugins for type in plugin.types)
        self._neighbours = Neighbours(runtime, self._lookups, self._wakeups.slots, self._lanes)
        self._turns = Turns(
            runtime,
            committer,
            checks,
            self._lookups,
            Viewer(runtime, self._lookups, served, self._neighbours.needing),
            self._neighbours,
            self._wakeups,
            self._claims,
            self._add,
            self._push,
            self._lifted,
            turned,
        )
        for plugin in plugins:
            self._lanes.update(dict.fromkeys(plugin.types, self._lane(plugin)))
        self._unserved = self._lane(Unserved())
        self._intent_follower = IntentFollower(
            runtime, self._listed, self._published, self._wakeups.changed.set
        )
        self._changing = asyncio.Lock()
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

    async def _take_over(self) -> int:
        """Continue from the state that the previous process left."""
        runtime, store = self._runtime, self._runtime.store
        now = runtime.clock.now()

        async def read(newest: Incarnation) -> tuple[Governance, Recovery]:
            governance = await self._load(newest)  # its types are known from here on
            return governance, await runtime.reading.run(
                recover, store.intent, store.records, runtime.registry, self.partition
            )

        newest, (governance, recovered) = await as_of_newest(self._newest, read)
        self._lookups.advance(0, newest.sequence, ())
        # Read everything before changing anything: after a failure, all of it is read again.
        self._turns.governance = governance
        self._neighbours.unwatched.update(recovered.unwatched)
        async for item in in_parts(recovered.assets, runtime.clock):
            slot = self._add(item.id, item.type, item.digest)
            slot.state, slot.successor, slot.damage = item.state, item.successor, item.damage
            if item.damage is not None:
                log.error("an asset cannot be enforced", asset=item.id, error=str(item.damage))
        unknown = Outcome(Result.UNKNOWN, "the control plane stopped during the push")
        for operation in unfinished_pushes(recovered.assets):
            finish = Finish(operation.partition, operation.id, unknown, now)
            self._turns.post(self._wakeups.slots[operation.asset], [finish])
        await self.sweep("start")
        if governance.policies:
            self._policies_in_force()
        return newest.sequence

    async def _load(self, newest: Incarnation) -> Governance:
        """Governance of `newest`, whose types are known from now on: later reads use these types."""
        runtime, before = self._runtime, self._turns.governance
        known = NO_RELEASES if before is None else before.releases
        governance = await runtime.reading.run(
            load, runtime.store, runtime.registry, newest, runtime.clock.now(), known
        )
        runtime.registry.declare(map(declared_type, governance.of_type(TYPE)))
        return governance

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

    async def _listed(self) -> int:
        """An incarnation is in force, and its changes are not known. Returns its sequence."""
        async with self._changing:
            if self._turns.governance is None:
                return await self._take_over()
            runtime = self._runtime
            heads: dict[AssetId, Head | None] = {}
            gone = dict.fromkeys(self._wakeups.slots)
            newest, listed = await as_of_newest(self._newest, lambda _: runtime.reading.run(self._heads))
            async for head in in_parts(listed, runtime.clock):
                gone.pop(head.id, None)
                slot = self._wakeups.slots.get(head.id)
                if slot is None or slot.digest != head.digest:
                    heads[head.id] = head
            self._lookups.advance(0, newest.sequence, ())
            await self._apply_incarnation(newest, heads | gone)
            return newest.sequence

    def _heads(self) -> list[Head]:
        return list(self._runtime.store.intent.heads(self.partition))

    async def _newest(self) -> Incarnation:
        newest = await self._runtime.reading.run(self._runtime.store.intent.newest, self.partition)
        assert newest is not None, "only a partition with an incarnation is followed"
        return newest

    async def _published(self, incarnation: Incarnation, heads: Heads) -> None:
        """`incarnation` is in force, and differs from the one before in `heads`."""
        async with self._changing:
            self._lookups.advance(incarnation.sequence - 1, incarnation.sequence, heads)
            await self._apply_incarnation(incarnation, heads)

    async def _apply_incarnation(self, incarnation: Incarnation, heads: Heads) -> None:
        before = self._turns.governance
        assert before is not None
        slots = self._wakeups.slots
        # Read everything before changing anything: after a failure, the same changes are read again.
        same = before.digest == incarnation.governance
        governance = replace(before, incarnation=incarnation) if same else await self._load(incarnation)
        enforced = {
            id: head
            for id, head in heads.items()
            if head is None or id in slots or not self._runtime.registry.inert(head.type)
        }
        new = [id for id, head in enforced.items() if head is not None and id not in slots]
        remembered = await self._runtime.reading.run(self._remembered, new) if new else {}
        overtaken = await self._lookups.run(
            lambda: [id for id in enforced if id in slots and self._overtakes(slots[id])]
        )
        # From here on, nothing waits until every slot knows of the incarnation.
        self._govern_by(governance, before)
        arriving = [id for id in new if id not in slots]
        for id in arriving:
            if (arrived := enforced[id]) is not None:
                self._add(id, arrived.type, arrived.digest).state = remembered[id]
        for id in overtaken:
            if id in slots:
                slots[id].superseded()
        for id, head in enforced.items():
            if (slot := slots.get(id)) is not None:
                slot.update_head(head)
        if governance.controls_version != before.controls_version:
            await self.sweep(_CONTROLS_CHANGED)
        if not same:
            self._wakeups.wake_all(self._wakeups.unsettled, "checks, limits or freezes have changed")
        async for id in in_parts(enforced, self._runtime.clock):
            if (slot := slots.get(id)) is not None:
                self._wakeups.wake_slot(slot, f"published in {incarnation.name}", urgent=True)
        async for id in in_parts(heads, self._runtime.clock):
            self._wakeups.wake_readers(id, f"{id}, which it reads, has changed")
        self._wakeups.changed.set()

    def _remembered(self, ids: list[AssetId]) -> dict[AssetId, State]:
        """The states of assets that come back, as they were left."""
        records = self._runtime.store.records
        keys = {id: AssetKey(self.partition, id) for id in ids}
        return {
            id: State(ledger=records.ledger(key), handle=records.handle(key), outputs=records.outputs_of(key))
            for id, key in keys.items()
        }

    def _overtakes(self, slot: Slot) -> bool:
        """Whether the latest publication makes a push that runs, or is about to begin, out of date.

        Not where a pin or a release decides: only what it allows can be newer content for the asset.
        """
        return (slot.push is not None or slot.activity is Activity.ADMITTING) and not self._held(slot)

    async def _follow_store(self) -> None:
        """Check periodically for writes without a notification."""
        while True:
            await self._runtime.clock.sleep(_CATCH_UP_SECONDS)
            try:
                await self._look_at_controls()
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

    async def _look_at_controls(self) -> None:
        runtime = self._runtime
        version, _controls = await runtime.reading.run(
            runtime.store.records.controls, self.partition, runtime.clock.now()
        )
        if self._turns.governance is not None and version != self._turns.governance.controls_version:
            await self.controls_changed(Selector(all=True), _CONTROLS_CHANGED)
        await self.releases_changed()

    async def releases_changed(self) -> None:
        """Assets may have been released, or releases withdrawn.

        Raises:
            LehrError: the store cannot be read; it is read again within seconds.
        """
        async with self._changing:
            before, runtime = self._turns.governance, self._runtime
            if before is None:
                return
            known = before.releases
            releases = await runtime.reading.run(load_releases, runtime.store, self.partition, known)
            if releases is not known:
                self._govern_by(replace(before, releases=releases), before)

    def _govern_by(self, governance: Governance, before: Governance) -> None:
        """Judge turns by `governance` from now on, and wake the assets for which another release counts.

        Whatever it was read for, it has the newest releases. A push of other content is out of date.
        """
        self._turns.governance = governance
        if governance.policies:
            self._policies_in_force()
        for id in governance.releases.changed_from(before.releases):
            if (slot := self._wakeups.slots.get(id)) is not None:
                released = governance.releases.of(id)
                target = None if released is None or released.release is None else released.release.target
                push = slot.push
                if slot.activity is Activity.ADMITTING or (push and push.operation.content != target):
                    slot.superseded()
                self._wakeups.wake_slot(slot, "another release counts", urgent=True)

    async def controls_changed(self, selector: Selector, cause: str) -> None:
        """A control on the assets of `selector` was set or lifted."""
        async with self._changing:
            before = self._turns.governance
            if before is None:
                return
            try:
                governance = await self._load(before.incarnation)
                # Also of those whose own notification found a store that lagged behind.
                ids = await self._select_any([selector, *governance.selectors_changed_from(before)])
            except LehrError as error:
                # The control is stored all the same, and its version is looked for again until it is read.
                log.warning("the store cannot be read; retrying", error=str(error))
                return
            self._govern_by(governance, before)
            self._wakeups.wake_all(ids, cause)

    async def _lifted(self, id: AssetId) -> None:
        """A turn has lifted controls that select only this asset."""
        try:
            await self._committer.ask()  # with nothing to write: until everything before it is written
        except LehrError:
            return  # noticed later, by their version
        await self.controls_changed(Selector(ids=(id,)), "its restart is done")

    async def _select_any(self, selectors: Iterable[Selector]) -> Iterable[AssetId]:
        """Ids of the enforced assets that at least one of these selects."""
        different = {str(selector): selector for selector in selectors}
        if len(different) > _MOST_SELECTORS:
            return list(self._wakeups.slots)
        found = [await self.select(selector) for selector in different.values()]
        return dict.fromkeys(id for ids in found for id in ids)

    async def select(self, selector: Selector) -> list[AssetId]:
        """Ids of the enforced assets that `selector` selects.

        Raises:
            LehrError: an asset cannot be read.
        """
        slots = self._wakeups.slots
        if selector.all:
            return list(slots)
        known = [(slot.key, slot.type) for id, slot in slots.items() if selector.may_name(id)]
        if not selector.types and not selector.labels:
            return [key.id for key, _type in known]
        found = await self._runtime.reading.run(selected, self._runtime.store.intent, known, selector)
        return [id for id in found if id in slots]

    async def sweep(self, cause: str = "resync") -> None:
        """Begin a turn of every asset."""
        async for slot in in_parts(list(self._wakeups.slots.values()), self._runtime.clock):
            self._wakeups.wake_slot(slot, cause, urgent=False)

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
                self.wake(key.id, "its plugin reported a change")

    # --- slots -----------------------------------------------------------------------

    def _add(self, id: AssetId, type: str, digest: Digest | None) -> Slot:
        slot = Slot(AssetKey(self.partition, id), type, digest, self._lanes.get(type, self._unserved))
        self._wakeups.add(slot)
        return slot

    def _held(self, slot: Slot) -> bool:
        last = self._lookups.last_known(slot.key, slot.type)
        if last is None or self._turns.governance is None:
            return False
        holds = self._turns.governance.holds(last[0], self._runtime.clock.now())
        return holds.released is not None or pin(last[0], last[1], holds).pin is not None

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
