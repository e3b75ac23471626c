"""Which assets get a turn, when and why: those that a change, a settled neighbour or the time wakes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable

from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.pauses import in_parts
from lehr.client.agenda import Agenda
from lehr.enforce.lane import Lane
from lehr.enforce.listeners import Listeners
from lehr.enforce.output_reads import OutputPath
from lehr.enforce.slot import IDLE, PUSHED, QUEUED, Slot
from lehr.enforce.state import Ended, Rest
from lehr.enforce.step import RETRY
from lehr.model.asset import AssetId
from lehr.model.outputs import name_in

_RECHECK_SECONDS = 5.0
_SOON_SECONDS = 10.0

_RESYNC_TICKS = 64
"""Parts into which the time between resyncs is divided. Assets are due at the end of a part, so that
one wake-up serves many: of a thousand assets, about twenty."""


class Wakeups:
    """The slots of a partition, and what wakes them.

    Attributes:
        slots: of all assets that are enforced, by id.
        removed: that are out of production, and come back once an asset that stays needs them.
        unsettled: on which something is left to do; in order, so that equal seeds give equal runs.
        changed: set when a turn has ended.
        stopping: nothing more is woken.
    """

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self.slots: dict[AssetId, Slot] = {}
        self.unsettled: dict[AssetId, None] = {}
        self.removed: set[AssetId] = set()
        self.changed = asyncio.Event()
        self.stopping = False
        self._clock = clock
        self._chance = chance
        self._agenda: Agenda[AssetId] = Agenda()
        self._waiting: Listeners[AssetId, AssetId] = Listeners()
        self._readers: Listeners[AssetId, AssetId] = Listeners()
        self._output_readers: Listeners[AssetId, tuple[AssetId, str]] = Listeners()
        self._busy = 0

    # --- slots ---------------------------------------------------------------------

    def add(self, slot: Slot) -> None:
        """Start to enforce an asset."""
        self.slots[slot.key.id] = slot
        self.unsettled[slot.key.id] = None

    def drop(self, slot: Slot) -> None:
        """Stop enforcing an asset."""
        del self.slots[slot.key.id]
        slot.lane.forget(slot)
        self._agenda.discard(slot.key.id)
        self.unsettled.pop(slot.key.id, None)
        self.removed.discard(slot.key.id)
        self._waiting.leave(slot.key.id, slot.waits)
        self._readers.leave(slot.key.id, slot.reads)
        self._output_readers.leave(slot.key.id, _names(slot.output_reads))

    # --- waking --------------------------------------------------------------------

    def wake(self, id: AssetId, cause: str) -> None:
        """Begin a turn of one asset, if it is enforced here."""
        slot = self.slots.get(id)
        if slot is not None:
            self.wake_slot(slot, cause, urgent=True)

    def wake_all(self, ids: Iterable[AssetId], cause: str) -> None:
        """Begin a turn of each."""
        for id in list(ids):
            self.wake(id, cause)

    async def sweep(self, cause: str) -> None:
        """Begin a turn of every asset."""
        async for slot in in_parts(list(self.slots.values()), self._clock):
            self.wake_slot(slot, cause, urgent=False)

    def wake_readers(self, id: AssetId, cause: str) -> None:
        """Begin a turn of each asset that read `id` when it was last compared."""
        self.wake_all(self._readers.of(id), cause)

    def wake_output_readers(self, id: AssetId, names: Iterable[str], cause: str) -> None:
        """Begin a turn of each asset to which one of these outputs of `id` matters."""
        self.wake_all(
            dict.fromkeys(it for name in names for it in self._output_readers.of((id, name))), cause
        )

    def wake_slot(self, slot: Slot, cause: str, *, urgent: bool) -> None:
        """Queue a turn, once; one that arrives while the asset is busy runs afterwards.

        Which cause it has may be lost, except that a retry was requested. A hint needs no turn of its own if
        the one under way has yet to look at production.
        """
        if slot.activity is QUEUED:
            slot.cause = RETRY if cause == RETRY else slot.cause
            if urgent and slot.routine:
                slot.routine = False
                slot.lane.hasten(slot)
            return
        if slot.activity is not IDLE:
            slot.wake_later(cause)
            return
        if self.stopping:
            return
        self._busy += 1
        slot.become(QUEUED)
        slot.cause, slot.routine = cause, not urgent
        self._agenda.discard(slot.key.id)
        slot.lane.add(slot, urgent=urgent)

    def queue_outcome(self, slot: Slot, ended: Ended) -> None:
        """Queue a turn that handles the outcome of a push."""
        slot.push = None
        slot.inbox, slot.routine = ended, False
        slot.become(PUSHED)
        slot.lane.add(slot, urgent=True)

    def idle(self, slot: Slot) -> None:
        """A turn is over, and no push is running. The caller handles what has arrived since."""
        slot.become(IDLE)
        self._busy -= 1
        if slot.offered:
            # It was woken for a free place and does not need it: wake the next one.
            slot.offered = False
            self._offer_place(slot.lane)

    async def follow_agenda(self) -> None:
        """Wake assets that are due, for ever."""
        while True:
            for id in await self._agenda.wait(self._clock):
                self.wake_slot(self.slots[id], "regular turn", urgent=False)
            await self._clock.sleep(0)

    # --- places for pushes -----------------------------------------------------------

    def free_place(self, lane: Lane[Slot]) -> None:
        """Return a place for pushes, and wake a slot that waits for one."""
        lane.free_place()
        self._offer_place(lane)

    def _offer_place(self, lane: Lane[Slot]) -> None:
        deferred = lane.next_deferred()
        if deferred is not None:
            deferred.offered = True
            self.wake_slot(deferred, "a place for its push became free", urgent=True)

    # --- which assets wait for which -----------------------------------------------------------

    def listen(self, slot: Slot, ids: Iterable[AssetId]) -> None:
        """Wake `slot` when these settle, from now on and until its turn rests."""
        more = tuple(id for id in ids if id not in slot.waits)
        self._waiting.join(slot.key.id, more)
        slot.waits += more

    def read(self, slot: Slot, others: tuple[AssetId, ...]) -> None:
        """Wake `slot` when these change: they are everything that it reads other than itself."""
        self._readers.leave(slot.key.id, slot.reads)
        self._readers.join(slot.key.id, others)
        slot.reads = others

    def read_outputs(self, slot: Slot, places: tuple[OutputPath, ...]) -> None:
        """Wake `slot` when these outputs change; no others matter to it."""
        self._output_readers.leave(slot.key.id, _names(slot.output_reads))
        self._output_readers.join(slot.key.id, _names(places))
        slot.output_reads = places

    def recheck_soon(self, id: AssetId) -> None:
        """Wake an asset at rest soon: it was found to differ, or could not be compared.

        An asset may be at rest with work left, such as a turndown that waits for its referrers. One whose
        next turn already has a time is left alone. Not immediately: a pinned asset may be at rest with
        other content, and would be woken for ever.
        """
        slot = self.slots.get(id)
        if slot is None or slot.activity is not IDLE:
            return
        if slot.due is None or id not in self.unsettled:
            self._agenda.bring_forward(id, self._clock.monotonic() + _RECHECK_SECONDS)

    def rest(self, slot: Slot, rest: Rest) -> None:
        """A turn ends: note when the next one is due and what it waits for, and wake the assets that wait."""
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
        slot.settled = rest.settled
        if rest.settled:
            self.unsettled.pop(id, None)
        else:
            self.unsettled[id] = None
        if (rest.settled or rest.quiet) and (waiting := self._waiting.of(id)):
            self.wake_all(waiting, f"{id}, which it waits for, has settled")

    def leave_alone(self, slot: Slot) -> None:
        """End the turn of an asset that is not enforced in this run: nothing is left to do on it."""
        slot.due = None
        self.unsettled.pop(slot.key.id, None)

    @property
    def overdue(self) -> float:
        """Seconds by which the turn that is due first is late; 0 if none is."""
        due = self._agenda.next_due()
        return 0.0 if due is None else max(0.0, self._clock.monotonic() - due)

    @property
    def at_rest(self) -> bool:
        """True when nothing runs, and nothing due within some seconds could change much."""
        if self._busy:
            return False
        soon = self._clock.monotonic() + _SOON_SECONDS
        return not any((due := self.slots[id].due) is not None and due < soon for id in self.unsettled)


def _names(places: Iterable[OutputPath]) -> dict[tuple[AssetId, str], None]:
    return dict.fromkeys((id, name_in(path)) for id, path in places)
