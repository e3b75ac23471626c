"""The Enforcer's life: follows intent and controls, and has the assets woken that they concern."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence

import structlog
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.enforce.claims import SlotClaims
from lehr.enforce.committer import Committer
from lehr.enforce.endings import defect_of
from lehr.enforce.following import Following, Heads
from lehr.enforce.governance import Governance, load
from lehr.enforce.lane import Lane
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.reading import RememberedIntent, last_known
from lehr.enforce.recovery import left_under_way, recover
from lehr.enforce.slot import Activity, Slot
from lehr.enforce.state import State
from lehr.enforce.turns import Turns
from lehr.enforce.unserved import Unserved
from lehr.enforce.viewing import Viewer
from lehr.enforce.wakeups import Wakeups
from lehr.model.asset import AssetId, AssetKey
from lehr.model.declared import TYPE, declared_type
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.pinning import pin
from lehr.model.selector import Selector
from lehr.model.writes import Finish, KeepLease, LeaseLostError, TakeLease
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Head

log = structlog.get_logger()

_CATCH_UP_SECONDS = 5.0

_WORD = "a person's word was given or taken back"


class Enforcer:
    """One logical loop for every asset of a partition, independent of all others.

    Use: `await start()` once an incarnation may exist, notify it (`told`, `controls_changed`), and
    `await stop()`.

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
    ) -> None:
        """Enforce the partition of `runtime`; `claims` is the register of the host, if it has one."""
        self.partition = runtime.partition
        self.defect: BaseException | None = None
        self._runtime = runtime
        self._committer = committer
        self._intent = RememberedIntent(runtime.store.intent)
        self._wakeups = Wakeups(runtime.clock, runtime.chance)
        self._claims = SlotClaims(claims, runtime, self._intent, self._wakeups.slots)
        self._lanes: dict[str, Lane[Slot]] = {}
        plugins = tuple(plugins)
        served = frozenset(type for plugin in plugins for type in plugin.types)
        neighbours = Neighbours(runtime, self._intent, self._wakeups.slots, self._lanes)
        self._turns = Turns(
            runtime,
            committer,
            checks,
            self._intent,
            Viewer(runtime, self._intent, served, neighbours.has_left),
            neighbours,
            self._wakeups,
            self._claims,
            self._add,
            self._catch_up,
            self._push,
        )
        for plugin in plugins:
            self._lanes.update(dict.fromkeys(plugin.types, self._lane(plugin)))
        self._unserved = self._lane(Unserved())
        self._following = Following(runtime, self._listed, self._published, self._wakeups.changed.set)
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()

    def _lane(self, plugin: AssetPlugin) -> Lane[Slot]:
        return Lane(plugin, self._runtime.clock, self._turns.run, self._done)

    def _catch_up(self) -> None:
        self._following.catch_up()

    # --- life --------------------------------------------------------------------

    async def start(self) -> None:
        """Take the lease, look up what was under way, and begin a turn for every asset."""
        [self._turns.epoch] = await self._committer.ask(TakeLease(self.partition))
        self._committer.under(KeepLease(self.partition, self._turns.epoch))
        self._spawn(self._wakeups.follow_agenda(), "agenda", self._ended)
        self._spawn(self._follow_store(), "store", self._ended)
        for lane in dict.fromkeys(self._lanes.values()):
            if lane.watches:
                name = f"hints of {type(lane.plugin).__name__}"
                self._spawn(self._follow_hints(lane), name, self._ended)
        await self._following.begin()
        self._spawn(self._following.run(), "intent", self._ended)
        await self._release_claims()

    def _take_up(self, newest: Incarnation) -> None:
        """Begin with what a former process left."""
        now = self._runtime.clock.now()
        governance = self._load(newest)
        self._intent.advance(0, newest.sequence, ())
        recovered = recover(self._intent, self._runtime.store.records, self._runtime.registry, self.partition)
        # Nothing is changed before everything is read: after a failure, all of it is begun again.
        self._turns.governance = governance
        for item in recovered:
            slot = self._add(item.id, item.type, item.digest)
            slot.state, slot.successor, slot.damage = item.state, item.successor, item.damage
            if item.damage is not None:
                log.error("an asset cannot be enforced", asset=item.id, error=str(item.damage))
        unknown = Outcome(Result.UNKNOWN, "the control plane ended during the push")
        for operation in left_under_way(recovered):
            self._turns.post(self._wakeups.slots[operation.asset], [Finish(operation.id, unknown, now)])
        self.sweep("start")

    def _load(self, newest: Incarnation) -> Governance:
        """Governance of `newest`, whose types are known from now on: later reads use these types."""
        governance = load(self._runtime.store, self._runtime.registry, newest, self._runtime.clock.now())
        self._runtime.registry.declare(map(declared_type, governance.of_type(TYPE)))
        return governance

    async def stop(self, grace: float = 0.0) -> None:
        """End all loops. Pushes under way get `grace` seconds; those still running then become unknown."""
        self._wakeups.stopping = True
        pushes = [slot for slot in self._wakeups.slots.values() if slot.push is not None]
        if pushes and grace:
            try:
                async with asyncio.timeout(grace):
                    while any(slot.push is not None for slot in pushes):
                        await self.changed()
            except TimeoutError:
                log.warning("pushes did not end in time; their outcome will be looked at next time")
        for lane in dict.fromkeys((*self._lanes.values(), self._unserved)):
            await lane.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(
        self,
        work: Coroutine[None, None, None],
        name: str,
        then: Callable[[asyncio.Task[None]], None],
    ) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(then)

    def _push(self, work: Coroutine[None, None, None], name: str) -> None:
        self._spawn(work, name, self._done)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A loop that ends would silently leave assets unhealed: the process that serves must end with it."""
        self._broke_of(defect_of(task, LeaseLostError))

    def _done(self, task: asyncio.Task[None]) -> None:
        """A push or a few turns are over. Their errors are dealt with where they come up; others end all."""
        self._broke_of(defect_of(task, LeaseLostError, may_end=True))

    def _broke_of(self, defect: BaseException | None) -> None:
        if defect is not None and self.defect is None and not self._wakeups.stopping:
            self.defect = defect
            self._broken.set()

    async def broken(self) -> None:
        """Wait until one of the loops breaks or ends, and raise its error."""
        await self._broken.wait()
        assert self.defect is not None
        raise self.defect

    # --- what wakes loops -----------------------------------------------------------

    def told(self) -> None:
        """An incarnation may have been published: a hint like any other."""
        self._following.told()

    def _listed(self, newest: Incarnation) -> None:
        """`newest` is in force, and its changes are not known."""
        if self._turns.governance is None:
            self._take_up(newest)
            return
        heads: dict[AssetId, Head | None] = {}
        gone = dict.fromkeys(self._wakeups.slots)
        for head in self._intent.heads(self.partition):
            gone.pop(head.id, None)
            slot = self._wakeups.slots.get(head.id)
            if slot is None or slot.digest != head.digest:
                heads[head.id] = head
        self._intent.advance(0, newest.sequence, ())
        self._go_on_with(newest, heads | gone)

    def _published(self, incarnation: Incarnation, heads: Heads) -> None:
        """`incarnation` is in force, and differs from the one before in `heads`."""
        self._intent.advance(incarnation.sequence - 1, incarnation.sequence, heads)
        self._go_on_with(incarnation, heads)

    def _go_on_with(self, incarnation: Incarnation, heads: Heads) -> None:
        before = self._turns.governance
        assert before is not None
        slots = self._wakeups.slots
        # Nothing is changed before everything is read: after a failure, the same is read again as
        # new.
        same = before.digest == incarnation.governance
        governance = replace(before, incarnation=incarnation) if same else self._load(incarnation)
        enforced = {
            id: head
            for id, head in heads.items()
            if head is None or id in slots or not self._runtime.registry.inert(head.type)
        }
        arriving = {
            id: (head, self._runtime.store.records.ledger(AssetKey(self.partition, id)))
            for id, head in enforced.items()
            if head is not None and id not in slots
        }
        overtaken = [id for id in enforced if id in slots and self._overtakes(slots[id])]
        self._turns.governance = governance
        if governance.controls_version != before.controls_version:
            self.sweep(_WORD)
        if not same:
            self._wakeups.wake_all(self._wakeups.unsettled, "checks, limits or freezes have changed")
        for id, (arrived, ledger) in arriving.items():
            self._add(id, arrived.type, arrived.digest).state = State(ledger=ledger)
        for id in overtaken:
            slots[id].superseded()
        for id, head in enforced.items():
            if (slot := slots.get(id)) is not None:
                slot.stands_as(head)
                self._wakeups.wake_slot(slot, f"published in {incarnation.name}", urgent=True)
        for id in heads:
            self._wakeups.wake_readers(id, f"{id}, which it reads, has changed")
        self._wakeups.changed.set()

    def _overtakes(self, slot: Slot) -> bool:
        """Whether the latest publication makes a push that runs, or is about to begin, out of date."""
        return (slot.push is not None or slot.activity is Activity.ADMITTING) and not self._pinned(slot)

    async def _follow_store(self) -> None:
        """Check periodically for writes without a notification."""
        while True:
            await self._runtime.clock.sleep(_CATCH_UP_SECONDS)
            try:
                self._look_at_controls()
                # Without writes, this process would never notice that another one has taken over.
                await self._committer.ask(KeepLease(self.partition, self._turns.epoch))
                await self._release_claims()
            except LeaseLostError:
                raise  # the process ends with it
            except LehrError as error:
                log.warning("the store cannot be read, it is looked at again", error=str(error))

    async def _release_claims(self) -> None:
        """Release what departed assets still hold, once all running turndowns are known."""
        if self._turns.governance is not None:
            await self._claims.settle()

    def _look_at_controls(self) -> None:
        version, _controls = self._runtime.store.records.controls(self.partition, self._runtime.clock.now())
        if self._turns.governance is not None and version != self._turns.governance.controls_version:
            self.controls_changed(Selector(all=True), _WORD)

    def controls_changed(self, selector: Selector, cause: str) -> None:
        """A person's word about the assets of `selector` was given or taken back."""
        if self._turns.governance is None:
            return
        try:
            governance, ids = self._load(self._turns.governance.incarnation), self.select(selector)
        except LehrError as error:
            # It is published all the same. Until its version is taken up, it is looked for again.
            log.warning("the store cannot be read, it is looked at again", error=str(error))
            return
        self._turns.governance = governance
        self._wakeups.wake_all(ids, cause)

    def select(self, selector: Selector) -> list[AssetId]:
        """Ids of the enforced assets that `selector` selects."""
        if selector.all:
            return list(self._wakeups.slots)
        found = []
        for id, slot in self._wakeups.slots.items():
            last = last_known(self._intent, slot.key, slot.type)
            if last is not None and selector.matches(last[0]):
                found.append(id)
        return found

    def sweep(self, cause: str = "resync") -> None:
        """Begin a turn of every asset."""
        self._wakeups.sweep(cause)

    def wake(self, id: AssetId, cause: str) -> None:
        """Begin a turn of one asset, if it is enforced here."""
        self._wakeups.wake(id, cause)

    async def _follow_hints(self, lane: Lane[Slot]) -> None:
        async for key in lane.hints():
            if key.partition == self.partition:
                self.wake(key.id, "its plugin saw a change")

    # --- slots -----------------------------------------------------------------------

    def _add(self, id: AssetId, type: str, digest: Digest | None) -> Slot:
        slot = Slot(AssetKey(self.partition, id), type, digest, self._lanes.get(type, self._unserved))
        self._wakeups.add(slot)
        return slot

    def _pinned(self, slot: Slot) -> bool:
        last = last_known(self._intent, slot.key, slot.type)
        if last is None or self._turns.governance is None:
            return False
        controls = self._turns.governance.standing(self._runtime.clock.now())
        return pin(last[0], last[1], controls).pin is not None

    def pushes(self) -> list[tuple[Operation, str]]:
        """Pushes under way, and the last progress that each reported."""
        return [(slot.push.operation, slot.push.said) for slot in self._wakeups.slots.values() if slot.push]

    # --- what others may ask -----------------------------------------------------------------

    @property
    def unsettled(self) -> frozenset[AssetId]:
        """Assets on which something is left to do."""
        return frozenset(self._wakeups.unsettled)

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
        return self._following.trouble

    @property
    def at_rest(self) -> bool:
        """True when nothing runs, and nothing due within some seconds could change much."""
        behind = self._following.behind and not self._following.trouble
        return self._wakeups.at_rest and not behind

    async def changed(self) -> None:
        """Wait until some turn has ended."""
        self._wakeups.changed.clear()
        await self._wakeups.changed.wait()
