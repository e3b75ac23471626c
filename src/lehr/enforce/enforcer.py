"""The shell: wakes loops, carries out what `step` asks for, and hands back what came of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

import structlog
from msgspec.structs import replace

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.client.agenda import Agenda
from lehr.enforce.checking import Looking, ask_all
from lehr.enforce.claims import GivingUp, Kept, take_before_push
from lehr.enforce.committer import Committer
from lehr.enforce.conclude import broken
from lehr.enforce.endings import defect_of
from lehr.enforce.failing import brief
from lehr.enforce.following import Following, Heads
from lehr.enforce.governance import Governance, load
from lehr.enforce.lane import Lane
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.pinning import pin
from lehr.enforce.reading import RecordingReader, RememberedIntent, last_known
from lehr.enforce.recovery import left_under_way, recover
from lehr.enforce.slot import PushUnderWay, Slot
from lehr.enforce.state import (
    Admitted,
    Again,
    AskAdmission,
    Begin,
    Checked,
    Commit,
    Deferred,
    Diffed,
    DiffFailed,
    Effect,
    Ended,
    Event,
    Look,
    NotAdmitted,
    Rest,
    RunChecks,
    RunDiff,
    StartPush,
    State,
    View,
)
from lehr.enforce.step import RETRY, step
from lehr.enforce.unserved import Unserved
from lehr.enforce.viewing import Viewer
from lehr.enforce.waiting import Waiting
from lehr.model.addons import TURNDOWN
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.damage import DamagedError
from lehr.model.declared import TYPE, declared_type
from lehr.model.diff import Diff, Goal, Target
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import Registry, addon_names
from lehr.model.writes import Finish, KeepLease, LeaseLostError, Refused, TakeLease, Write
from lehr.sdk.check import CheckPlugin, Referrer
from lehr.sdk.claims import Claims, Conflict
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.store import Head, Store

log = structlog.get_logger()

_SOON_SECONDS = 10.0
_CATCH_UP_SECONDS = 5.0
_DOUBT_SECONDS = 5.0

_WORD = "a person's word was given or taken back"

_RESYNC_TICKS = 64
"""Into so many parts is the time between resyncs divided. They come due at the end of a part, so
that one wake-up serves many: of a thousand assets, about twenty."""


class Enforcer:
    """One logical loop for every asset of a partition, independent of all others.

    Use: `await start()` once an incarnation may exist, let it know (`told`, `controls_changed`), and
    `await stop()`.
    """

    def __init__(
        self,
        partition: Partition,
        store: Store,
        committer: Committer,
        registry: Registry,
        plugins: Iterable[AssetPlugin],
        checks: Sequence[CheckPlugin],
        clock: Clock,
        chance: Chance,
        claims: Claims | None = None,
    ) -> None:
        self.partition = partition
        self._claims = claims
        self._giving_up = None if claims is None else GivingUp(claims, partition, self._is_gone)
        self._store = store
        self._committer = committer
        self._intent = RememberedIntent(store.intent)
        self._registry = registry
        self._checks = checks
        self._clock = clock
        self._chance = chance
        self._unserved: Lane[Slot] = Lane(Unserved(), clock, self._turn, self._done)
        self._lanes: dict[str, Lane[Slot]] = {}
        for plugin in plugins:
            lane: Lane[Slot] = Lane(plugin, clock, self._turn, self._done)
            self._lanes.update(dict.fromkeys(plugin.types, lane))
        self._slots: dict[AssetId, Slot] = {}
        self._neighbours = Neighbours(partition, self._intent, registry, self._slots, self._lanes)
        self._viewer = Viewer(
            self._intent, registry, clock, chance, frozenset(self._lanes), self._neighbours.has_left
        )
        self._waiting: Waiting[AssetId] = Waiting()
        self._readers: Waiting[AssetId] = Waiting()
        self._agenda: Agenda[AssetId] = Agenda()
        self._unsettled: dict[AssetId, None] = {}  # in order, so that equal seeds give equal runs
        self._busy = 0
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._governance: Governance | None = None
        self._following = Following(
            partition, store, clock, chance, self._listed, self._published, self._changed.set
        )
        self._epoch = 0
        self._stopping = False
        self.turns = 0
        self.looked_at: float | None = None
        self.defect: BaseException | None = None
        self._broken = asyncio.Event()

    # --- life --------------------------------------------------------------------

    async def start(self) -> None:
        """Take the lease, look up what was under way, and begin a turn of every asset."""
        [self._epoch] = await self._committer.ask(TakeLease(self.partition))
        self._committer.under(KeepLease(self.partition, self._epoch))
        self._spawn(self._follow_agenda(), "agenda", self._ended)
        self._spawn(self._follow_store(), "store", self._ended)
        for lane in dict.fromkeys(self._lanes.values()):
            if lane.watches:
                name = f"hints of {type(lane.plugin).__name__}"
                self._spawn(self._follow_hints(lane), name, self._ended)
        await self._following.begin()
        self._spawn(self._following.run(), "intent", self._ended)
        await self._give_up_the_rest()

    def _take_up(self, newest: Incarnation) -> None:
        """Begin with what a former process had left."""
        now = self._clock.now()
        governance = self._load(newest)
        self._intent.advance(0, newest.sequence, ())
        recovered = recover(self._intent, self._store.records, self._registry, self.partition)
        # Nothing is changed before all is read: what fails is begun again as if it never had.
        self._governance = governance
        for item in recovered:
            slot = self._add(item.id, item.type, item.digest)
            slot.state, slot.successor, slot.damage = item.state, item.successor, item.damage
            if item.damage is not None:
                log.error("an asset cannot be enforced", asset=item.id, error=str(item.damage))
        unknown = Outcome(Result.UNKNOWN, "the control plane ended during the push")
        for operation in left_under_way(recovered):
            self._post(self._slots[operation.asset], [Finish(operation.id, unknown, now)])
        self.sweep("start")

    def _load(self, newest: Incarnation) -> Governance:
        """What governs `newest`, whose types are known from now on: what is read next is of these types."""
        governance = load(self._store, self._registry, newest, self._clock.now())
        self._registry.declare(map(declared_type, governance.of_type(TYPE)))
        return governance

    async def stop(self, grace: float = 0.0) -> None:
        """End all loops. Pushes under way get `grace` seconds; what then goes on is unknown."""
        self._stopping = True
        pushes = [slot for slot in self._slots.values() if slot.push is not None]
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

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A loop that ends would leave assets unhealed without a word: whoever serves must end with it."""
        self._broke_of(defect_of(task, LeaseLostError))

    def _done(self, task: asyncio.Task[None]) -> None:
        """A push or a few turns are over. Their errors are dealt with where they come up; others end all."""
        self._broke_of(defect_of(task, LeaseLostError, may_end=True))

    def _broke_of(self, defect: BaseException | None) -> None:
        if defect is not None and self.defect is None and not self._stopping:
            self.defect = defect
            self._broken.set()

    async def broken(self) -> None:
        """Wait until one of the loops breaks or ends, and raise what it broke of."""
        await self._broken.wait()
        assert self.defect is not None
        raise self.defect

    # --- what wakes loops -----------------------------------------------------------

    def told(self) -> None:
        """An incarnation may have been published: a hint like any other."""
        self._following.told()

    def _listed(self, newest: Incarnation) -> None:
        """`newest` is in force, and what it changed is not known."""
        if self._governance is None:
            self._take_up(newest)
            return
        heads: dict[AssetId, Head | None] = {}
        gone = dict.fromkeys(self._slots)
        for head in self._intent.heads(self.partition):
            gone.pop(head.id, None)
            slot = self._slots.get(head.id)
            if slot is None or slot.digest != head.digest:
                heads[head.id] = head
        self._intent.advance(0, newest.sequence, ())
        self._go_on_with(newest, heads | gone)

    def _published(self, incarnation: Incarnation, heads: Heads) -> None:
        """`incarnation` is in force, and differs from the one before in `heads`."""
        self._intent.advance(incarnation.sequence - 1, incarnation.sequence, heads)
        self._go_on_with(incarnation, heads)

    def _go_on_with(self, incarnation: Incarnation, heads: Heads) -> None:
        before = self._governance
        assert before is not None
        # Nothing is changed before all is read: what fails comes again, and must be as new then.
        same = before.digest == incarnation.governance
        governance = replace(before, incarnation=incarnation) if same else self._load(incarnation)
        enforced = {
            id: head
            for id, head in heads.items()
            if head is None or id in self._slots or not self._registry.inert(head.type)
        }
        arriving = {
            id: (head, self._store.records.ledger(AssetKey(self.partition, id)))
            for id, head in enforced.items()
            if head is not None and id not in self._slots
        }
        overtaken = [id for id in enforced if id in self._slots and self._overtakes(self._slots[id])]
        self._governance = governance
        if governance.controls_version != before.controls_version:
            self.sweep(_WORD)
        if not same:
            self._wake_all(self._unsettled, "checks, limits or freezes have changed")
        for id, (arrived, ledger) in arriving.items():
            self._add(id, arrived.type, arrived.digest).state = State(ledger=ledger)
        for id in overtaken:
            self._slots[id].superseded()
        for id, head in enforced.items():
            if (slot := self._slots.get(id)) is not None:
                slot.stands_as(head)
                self._wake(slot, f"published in {incarnation.name}", urgent=True)
        for id in heads:
            self._wake_all(self._readers.of(id), f"{id}, which it reads, has changed")
        self._changed.set()

    def _overtakes(self, slot: Slot) -> bool:
        """Whether what has just been published makes a push under way, or about to begin, out of date."""
        return (slot.push is not None or slot.admitting) and not self._pinned(slot)

    async def _follow_store(self) -> None:
        """Look now and then for what was written and not told."""
        while True:
            await self._clock.sleep(_CATCH_UP_SECONDS)
            try:
                self._look_at_controls()
                # Who has nothing to write would never learn that another one has taken over.
                await self._committer.ask(KeepLease(self.partition, self._epoch))
                await self._give_up_the_rest()
            except LeaseLostError:
                raise  # the process ends with it
            except LehrError as error:
                log.warning("the store cannot be read, it is looked at again", error=str(error))

    def _look_at_controls(self) -> None:
        version, _controls = self._store.records.controls(self.partition, self._clock.now())
        if self._governance is not None and version != self._governance.controls_version:
            self.controls_changed(Selector(all=True), _WORD)

    def controls_changed(self, selector: Selector, cause: str) -> None:
        """A person's word about the assets of `selector` was given or taken back."""
        if self._governance is None:
            return
        try:
            governance, ids = self._load(self._governance.incarnation), self.select(selector)
        except LehrError as error:
            # It stands all the same. As long as its version is not taken up, it is looked for again.
            log.warning("the store cannot be read, it is looked at again", error=str(error))
            return
        self._governance = governance
        self._wake_all(ids, cause)

    def select(self, selector: Selector) -> list[AssetId]:
        """Ids of the enforced assets that `selector` selects."""
        if selector.all:
            return list(self._slots)
        found = []
        for id, slot in self._slots.items():
            last = last_known(self._intent, slot.key, slot.type)
            if last is not None and selector.matches(last[0]):
                found.append(id)
        return found

    def sweep(self, cause: str = "resync") -> None:
        """Begin a turn of every asset."""
        for slot in self._slots.values():
            self._wake(slot, cause, urgent=False)

    def wake(self, id: AssetId, cause: str) -> None:
        """Begin a turn of one asset, if it is enforced here."""
        slot = self._slots.get(id)
        if slot is not None:
            self._wake(slot, cause, urgent=True)

    def _wake_all(self, ids: Iterable[AssetId], cause: str) -> None:
        for id in list(ids):
            self.wake(id, cause)

    def _wake(self, slot: Slot, cause: str, *, urgent: bool) -> None:
        """Queue a turn, once; one that comes while the asset is busy is taken up afterwards.

        Causes are hints and may be lost, but a person's word is not: that a retry was asked for stays.
        """
        if slot.running or slot.push is not None or slot.inbox is not None:
            slot.woken = RETRY if slot.woken == RETRY else cause
            return
        if slot.queued:
            slot.cause = RETRY if cause == RETRY else slot.cause
            if urgent:
                slot.lane.hasten(slot)
            return
        if self._stopping:
            return
        self._busy += 1
        slot.queued = True
        slot.cause = cause
        self._agenda.discard(slot.key.id)
        slot.lane.add(slot, urgent=urgent)

    async def _follow_agenda(self) -> None:
        while True:
            for id in await self._agenda.wait(self._clock):
                self._wake(self._slots[id], "due again", urgent=False)
            await self._clock.sleep(0)

    async def _follow_hints(self, lane: Lane[Slot]) -> None:
        async for key in lane.hints():
            if key.partition == self.partition:
                self.wake(key.id, "its plugin saw a change")

    # --- slots -----------------------------------------------------------------------

    def _add(self, id: AssetId, type: str, digest: Digest | None) -> Slot:
        slot = Slot(AssetKey(self.partition, id), type, digest, self._lanes.get(type, self._unserved))
        self._slots[id] = slot
        self._unsettled[id] = None
        return slot

    def _pinned(self, slot: Slot) -> bool:
        last = last_known(self._intent, slot.key, slot.type)
        if last is None or self._governance is None:
            return False
        controls = self._governance.standing(self._clock.now())
        return pin(last[0], last[1], controls).pin is not None

    def _drop(self, slot: Slot) -> None:
        del self._slots[slot.key.id]
        slot.lane.forget(slot)
        self._agenda.discard(slot.key.id)
        self._unsettled.pop(slot.key.id, None)
        self._waiting.leave(slot.key.id, slot.waits)
        self._readers.leave(slot.key.id, slot.reads)

    def _succeed(self, slot: Slot) -> None:
        """Begin with what has taken the id of an asset that has left."""
        head = slot.successor
        if head is not None and not self._registry.inert(head.type):
            new = self._add(head.id, head.type, head.digest)
            new.state = State(ledger=slot.state.ledger)
            self._wake(new, f"what `{head.id}` was before, a {slot.type}, has left", urgent=True)

    # --- one turn ----------------------------------------------------------------------

    async def _turn(self, slot: Slot) -> None:
        """Run one turn of one asset. Never raises, so that no asset's trouble is another's."""
        slot.queued, slot.running = False, True
        self.turns += 1
        try:
            await self._steps(slot)
        except LehrError as error:
            log.warning(
                "an asset cannot be enforced: the store cannot be read", asset=slot.key.id, error=str(error)
            )
            self._broke(slot, error)
        except Exception as error:
            log.exception("a turn broke", asset=slot.key.id)
            self._broke(slot, brief(error))
        finally:
            slot.running = False
            self._turn_over(slot)

    def _broke(self, slot: Slot, error: LehrError | str) -> None:
        assert slot.governance is not None
        slot.state, (commit, rest) = broken(
            slot.state,
            slot.key,
            governing=slot.governance.sequence,
            now=self._clock.now(),
            cause=slot.cause,
            error=error,
        )
        self._committer.post(commit.writes)
        self._rest(slot, rest)

    def _post(self, slot: Slot, writes: Sequence[Write]) -> None:
        """Have these written down. What is refused of them is an asset's own trouble."""
        self._committer.post(writes, partial(self._not_written, slot))

    def _not_written(self, slot: Slot, write: Write, refused: Refused) -> None:
        """The end of a push is not in the store, which nobody can rely on about this asset from now on."""
        if not isinstance(write, Finish) or slot.damage is not None:
            return
        id = slot.key.id
        log.error(
            "the outcome of a push cannot be written down: its record is damaged",
            asset=id,
            operation=write.operation,
            result=str(write.outcome.result),
            message=write.outcome.message,
            why=refused.message,
        )
        # A removal that ended well may have dropped the slot since, and another may have its id.
        slot = self._slots.get(id) or self._add(id, slot.type, None)
        row = f"operation {write.operation} of asset {id}"
        slot.damage = DamagedError(row, "operation", why=refused.message)
        self._wake(slot, "the record of its push is damaged", urgent=True)

    def _turn_over(self, slot: Slot) -> None:
        if slot.push is not None:
            return
        if slot.inbox is not None:
            slot.queued = True
            slot.lane.add(slot, urgent=True)
            return
        self._busy -= 1
        if slot.offered:
            # It had come for a place and does not need it: the next one must hear of it.
            slot.offered = False
            self._offer_place(slot.lane)
        if slot.woken is not None:
            cause, slot.woken = slot.woken, None
            self._wake(slot, cause, urgent=True)
        elif slot.departed and slot.state.left and slot.state.operation is None:
            self._drop(slot)
            self._succeed(slot)
        self._changed.set()

    async def _steps(self, slot: Slot) -> None:
        event: Event | None
        if slot.inbox is not None:
            event, slot.inbox = slot.inbox, None
        else:
            slot.governance = self._governance
            if slot.damage is not None:
                slot.state = replace(slot.state, operation=None, ledger=None)
                self._broke(slot, slot.damage)
                return
            if slot.departed:
                # Intent may name it again already: its last version must not be one of the future (I1).
                self._following.catch_up()
                slot.governance = self._governance
            assert slot.governance is not None
            view = self._viewer.view(slot, slot.governance, slot.cause, self._epoch)
            if view.course.wait_for:
                self._listen(slot, view.course.wait_for)
            event = Begin(view)
        while event is not None:
            ledger, left = slot.state.ledger, slot.state.left
            slot.state, effects = step(slot.state, event)
            if slot.state.left and not left and self._giving_up is not None:
                await self._giving_up.give_up(slot.key.id)
            if slot.state.ledger is not ledger:
                self._entered(slot)
            event = None
            for effect in effects:
                answer = self._carry_out(slot, effect)
                event = None if answer is None else await answer

    def _entered(self, slot: Slot) -> None:
        """There is a new entry in the ledger."""
        self._viewer.entered(slot)
        ledger, id = slot.state.ledger, slot.key.id
        if ledger is not None and ledger.goal is Goal.ABSENT:
            self._wake_all(self._readers.of(id), f"{id}, which it reads, was removed")

    def _carry_out(self, slot: Slot, effect: Effect) -> Coroutine[Any, Any, Event] | None:
        """Do what `effect` says, or return what will, and answers with an event."""
        match effect:
            case RunDiff():
                return self._diff(slot, effect.target)
            case Commit():
                self._post(slot, effect.writes)
            case Rest():
                self._rest(slot, effect)
            case RunChecks():
                return self._check(slot, effect.view, effect.diff)
            case AskAdmission():
                return self._ask_admission(slot, effect)
            case StartPush():
                self._start_push(slot, effect)
            case Look():
                return slot.lane.status(effect.operation)
            case Again():
                slot.woken = slot.woken or effect.cause
        return None

    async def _diff(self, slot: Slot, target: Target) -> Diffed | DiffFailed:
        read = self._reader(slot, target.incarnation)
        asset = self._intent.asset(slot.key, target.incarnation)
        event = await slot.lane.diff(target, asset, read)
        if isinstance(event, Diffed):
            self.looked_at = self._clock.now()
        elif asset is not None:
            event = replace(event, refers_to=tuple(self._neighbours.referred(asset)))
        others = read.others(slot.key.id)
        if others != slot.reads:
            self._readers.leave(slot.key.id, slot.reads)
            self._readers.join(slot.key.id, others)
            slot.reads = others
            if self._governance is not slot.governance:
                # Published before anybody knew that it reads these: it must not be missed.
                self._wake(slot, "intent has changed while it was looked at", urgent=True)
        return event

    def _reader(self, slot: Slot, sequence: int) -> RecordingReader:
        """For the asset of `slot`, which is read also after its removal."""
        read = self._neighbours.reader(sequence)
        asset = self._intent.asset(slot.key, sequence)
        if asset is not None:
            read.know(asset)
        return read

    async def _check(self, slot: Slot, view: View, diff: Diff) -> Checked:
        assert slot.governance is not None

        async def look(id: AssetId) -> tuple[Diff, Digest | None] | None:
            # Before it is looked at: what settles while the turn goes on must not be missed.
            self._listen(slot, (id,))
            found = await self._neighbours.look(id, sequence, view.governing)
            if found is not None and not found[0].empty:
                self._doubt(id)
            return found

        def refer() -> list[Referrer]:
            return self._neighbours.referrers(slot.key.id, view.governing, controls)

        stays = view.goal is Goal.PRESENT
        sequence = view.pinning.content if stays else view.governing
        # What leaves waits for what others are to become, wherever a pin keeps them for now.
        controls = slot.governance.standing(view.now) if stays else ()
        reader = Looking(self._registry, slot.governance, self._store.records, view.now, look, refer)
        verdicts = await ask_all(self._checks, view, diff, reader)
        return Checked(
            verdicts,
            self._chance.identifier(view.now),
            tuple(reader.looked_at.items()),
            self._neighbours.circle(slot, verdicts),
        )

    def _listen(self, slot: Slot, ids: Iterable[AssetId]) -> None:
        """Wake `slot` when these settle, from now on and until its turn rests."""
        more = tuple(id for id in ids if id not in slot.waits)
        self._waiting.join(slot.key.id, more)
        slot.waits += more

    def _doubt(self, id: AssetId) -> None:
        """Somebody saw that an asset differs, or could not see it. If it is at rest, it does not know.

        It may be at rest with work left, such as a turndown that waits for its referrers; but who has said
        when he comes again does so then. Not at once: it may be at rest with another content, by a pin, and
        would be asked for ever.
        """
        slot = self._slots.get(id)
        if slot is None or slot.queued or slot.running or slot.push is not None:
            return
        if slot.due is None or id not in self._unsettled:
            self._agenda.bring_forward(id, self._clock.monotonic() + _DOUBT_SECONDS)

    async def _ask_admission(self, slot: Slot, effect: AskAdmission) -> Admitted | NotAdmitted | Deferred:
        lane = slot.lane
        if self._stopping:
            return NotAdmitted(Refused(Reason.STOPPING, "the control plane stops: no push begins any more"))
        has_place = await lane.take_place(slot)
        slot.offered = False
        if not has_place:
            limit = lane.traits.pushes
            return Deferred(
                Reason.CONCURRENCY_LIMIT, f"{limit} pushes of this plugin are under way, its limit"
            )
        if effect.retry and (wait := lane.budget.take(self._clock.monotonic())):
            self._free_place(lane)
            return Deferred(Reason.RETRY_BUDGET, "too many retries of this plugin's pushes lately", wait)
        slot.admitting, kept = True, None
        begins = False
        try:
            kept = await self._claimed_elsewhere(slot)
            if kept is None:
                [refused] = await self._committer.ask(effect.admit)
                kept = None if refused is None else Kept(refused)
            begins = kept is None
        except LehrError as error:
            kept = Kept(Refused(Reason.STORE_UNAVAILABLE, str(error)))
        finally:
            if not begins:
                slot.admitting = slot.overtaken = False
                self._free_place(lane)
        if kept is None:
            return Admitted(effect.admit.operation)
        self._listen(slot, kept.wait_for)
        return NotAdmitted(kept.refused, kept.wait_for)

    async def _claimed_elsewhere(self, slot: Slot) -> Kept | None:
        """Why what a push would change is another's; None if it is not."""
        turn = slot.state.turn
        if self._claims is None or turn is None or turn.view.asset is None:
            return None
        claimed = self._registry.claims(turn.view.asset)
        return await take_before_push(self._claims, slot.key, claimed, self._still_holds)

    def _still_holds(self, conflict: Conflict) -> bool:
        """Whether the asset of ours that holds a claim is in production with it, or is to be."""
        slot = self._slots.get(conflict.holder.asset)
        if slot is None or slot.departed:
            return slot is not None
        last = self._intent.last(slot.key)
        return last is not None and conflict.claim in self._registry.claims(last[0])

    async def _give_up_the_rest(self) -> None:
        """Release what could not be before. Not before it is known what is still being turned down."""
        if self._giving_up is not None and self._governance is not None:
            await self._giving_up.settle()

    def _is_gone(self, id: AssetId) -> bool:
        """Whether an asset is out of production or of our care, and intent as it is now leaves it so."""
        slot = self._slots.get(id)
        if slot is not None and not slot.state.left:
            return False
        head = next(self._store.intent.heads(self.partition, (id,)), None)
        if head is None:
            return True
        last = self._intent.last(AssetKey(self.partition, id))
        return slot is not None and last is not None and TURNDOWN in addon_names(last[0])

    def _free_place(self, lane: Lane[Slot]) -> None:
        lane.free_place()
        self._offer_place(lane)

    def _offer_place(self, lane: Lane[Slot]) -> None:
        deferred = lane.next_deferred()
        if deferred is not None:
            deferred.offered = True
            self._wake(deferred, "a place for its push is free", urgent=True)

    # --- pushes --------------------------------------------------------------------------

    def _start_push(self, slot: Slot, effect: StartPush) -> None:
        slot.push = PushUnderWay(effect.operation)
        slot.push.superseded = slot.overtaken
        slot.admitting = slot.overtaken = False
        self._unsettled[slot.key.id] = None
        self._spawn(self._push(slot, effect.target, slot.push), f"push of {slot.key.id}", self._done)

    async def _push(self, slot: Slot, target: Target, push: PushUnderWay) -> None:
        try:
            outcome = await slot.lane.push(target, self._reader(slot, target.incarnation), push)
        except Exception as error:
            log.exception("a push broke", asset=slot.key.id)
            outcome = Outcome(Result.UNKNOWN, brief(error))
        self._free_place(slot.lane)
        slot.push = None
        slot.inbox = Ended(outcome, self._clock.now(), self._clock.monotonic(), push.superseded)
        if not slot.running:
            slot.queued = True
            slot.lane.add(slot, urgent=True)

    def pushes(self) -> list[tuple[Operation, str]]:
        """Pushes under way, and what each said last of its progress."""
        return [(slot.push.operation, slot.push.said) for slot in self._slots.values() if slot.push]

    # --- rest ------------------------------------------------------------------------------

    def _rest(self, slot: Slot, rest: Rest) -> None:
        id = slot.key.id
        now, resync = self._clock.monotonic(), slot.lane.traits.resync
        tick = max(resync, 1.0) / _RESYNC_TICKS
        due = math.ceil((now + resync * self._chance.uniform(0.5, 1.0)) / tick) * tick
        if rest.delay is None:
            slot.due = None
        else:
            slot.due = due = min(due, now + rest.delay)
        self._agenda.set(id, due)
        if rest.wait_for != slot.waits:
            self._waiting.leave(id, slot.waits)
            self._waiting.join(id, rest.wait_for)
            slot.waits = rest.wait_for
        if rest.settled:
            self._unsettled.pop(id, None)
        else:
            self._unsettled[id] = None
            self._wake_if_governed_otherwise(slot)
        if rest.settled or rest.quiet:
            self._wake_all(self._waiting.of(id), f"{id}, which it waits for, has settled")

    def _wake_if_governed_otherwise(self, slot: Slot) -> None:
        """What holds it may be gone: only who was unsettled then was woken when that was published."""
        now, then = self._governance, slot.governance
        if now is not None and then is not None and now.digest != then.digest:
            self._wake(slot, "checks, limits or freezes have changed", urgent=True)

    # --- what others may ask -----------------------------------------------------------------

    @property
    def unsettled(self) -> frozenset[AssetId]:
        """Assets on which something is left to do."""
        return frozenset(self._unsettled)

    @property
    def assets(self) -> int:
        """How many assets are enforced."""
        return len(self._slots)

    @property
    def trouble(self) -> str:
        """Why the newest incarnation is not enforced; empty when it is, or is about to be."""
        return self._following.trouble

    @property
    def at_rest(self) -> bool:
        """True when nothing goes on, and nothing is due within some seconds that could change much."""
        if self._busy or (self._following.behind and not self._following.trouble):
            return False
        soon = self._clock.monotonic() + _SOON_SECONDS
        return not any((due := self._slots[id].due) is not None and due < soon for id in self._unsettled)

    async def changed(self) -> None:
        """Wait until some turn has ended."""
        self._changed.clear()
        await self._changed.wait()
