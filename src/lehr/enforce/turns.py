"""One turn of one asset: carries out what `step` asks for, and returns the results to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.client.turns import TurnQueue
from lehr.enforce.claims import SlotClaims
from lehr.enforce.committer import Committer
from lehr.enforce.conclude import broke
from lehr.enforce.cycles import cycle
from lehr.enforce.governance import AsOf, Governance
from lehr.enforce.lookups import Lookups
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.plugin_errors import one_line
from lehr.enforce.pushes import Pushes
from lehr.enforce.slot import ADMITTING, PUSHING, TURN, Slot
from lehr.enforce.state import (
    Again,
    AskAdmission,
    AskStatus,
    Begin,
    Checked,
    Commit,
    Diffed,
    DiffFailed,
    Effect,
    Event,
    Phase,
    Rest,
    RunChecks,
    RunDiff,
    StartPush,
    State,
    View,
)
from lehr.enforce.step import step
from lehr.enforce.turn_checks import TurnCheckReader, ask_all, waits_for
from lehr.enforce.turn_inputs import with_inputs
from lehr.enforce.viewer import Viewer
from lehr.enforce.wakeups import Wakeups
from lehr.model.asset import AssetId, AssetKey
from lehr.model.damage import DamagedError
from lehr.model.diff import Goal, Target
from lehr.model.outputs import Outputs, changed_names
from lehr.model.writes import Finish, LiftControl, Refused, Write
from lehr.sdk.check import CheckPlugin
from lehr.sdk.runtime import Runtime

log = Log()

Turned = Callable[[AssetKey, str, float], object]
"""Called at the end of a turn: its asset, what woke it, and how many seconds it took."""


def nobody(_asset: AssetKey, _cause: str, _seconds: float) -> None:
    """Follows no turns."""


class Turns:
    """Runs turns.

    Attributes:
        governance: governance of the turns that begin from now on; None before the first
            incarnation.
        epoch: of the lease under which they push.
        count: turns run so far.
        looked_at: wall-clock seconds when production was last compared; None before that.
    """

    def __init__(
        self,
        runtime: Runtime,
        committer: Committer,
        checks: Sequence[CheckPlugin],
        lookups: Lookups,
        viewer: Viewer,
        neighbours: Neighbours,
        wakeups: Wakeups,
        claims: SlotClaims,
        pushes: Pushes,
        add: Callable[[AssetId, str, Digest | None], Slot],
        lifted: Callable[[AssetId], None],
        turned: Turned,
    ) -> None:
        """Run turns of the slots of `wakeups`.

        Args:
            add: starts to enforce one more asset.
            lifted: takes note that a turn lifts controls of this one asset.
            turned: called at the end of each turn.
        """
        self.governance: Governance | None = None
        self.epoch = 0
        self.count = 0
        self.looked_at: float | None = None
        self._runtime = runtime
        self._committer = committer
        self._checks = checks
        self._lookups = lookups
        self._viewer = viewer
        self._neighbours = neighbours
        self._wakeups = wakeups
        self._claims = claims
        self._pushes = pushes
        self._add = add
        self._lifted = lifted
        self._turned = turned

    async def run(self, slot: Slot) -> None:
        """Run one turn of one asset. Never raises, so that a failure of one asset affects no other."""
        slot.become(TURN)
        self.count += 1
        monotonic = self._runtime.clock.monotonic
        began, cause = monotonic(), "its push has ended" if slot.inbox is not None else slot.cause
        try:
            await self._steps(slot)
        except LehrError as error:
            log.warning(
                "an asset cannot be enforced: the store cannot be read", asset=slot.key.id, error=str(error)
            )
            self._broke(slot, error)
        except Exception as error:
            log.exception("a turn failed", asset=slot.key.id)
            self._broke(slot, one_line(error))
        finally:
            if slot.activity is ADMITTING:
                self._pushes.refused(slot)
            self._turn_over(slot)
            self._turned(slot.key, cause, monotonic() - began)

    def read_ahead(self, upcoming: TurnQueue[Slot]) -> asyncio.Task[None] | None:
        """Read what the turns that are next look at first; returns what to wait for, if anything."""
        lookups = self._lookups
        if lookups.may_read_ahead(upcoming) and self.governance is not None:
            ids = (slot.key.id for slot in upcoming if slot.digest is not None)
            lookups.read_ahead(self.governance.sequence, ids)
        if not lookups.coming or (slot := upcoming.first()) is None:
            return None
        return lookups.coming.get(slot.key.id)

    def _broke(self, slot: Slot, error: LehrError | str) -> None:
        assert slot.governance is not None
        now = self._runtime.clock.now()
        event = broke(slot.key, slot.governance.sequence, now, slot.cause, error)
        before = replace(slot.state, phase=Phase.IDLE, turn=None)
        slot.state, effects = step(before, event)
        commit, rest = with_inputs(before, (event,), effects)
        assert isinstance(commit, Commit)
        assert isinstance(rest, Rest)
        self._committer.post(commit.writes)
        self._rest(slot, rest)

    def post(self, slot: Slot, writes: Sequence[Write]) -> None:
        """Queue these writes. A refused write affects its own asset only."""
        self._committer.post(writes, partial(self._not_written, slot))

    def _not_written(self, slot: Slot, write: Write, refused: Refused) -> None:
        """The store refused the end of a push, so its record of this asset is no longer reliable."""
        if not isinstance(write, Finish) or slot.damage is not None:
            return
        id = slot.key.id
        log.error(
            "the outcome of a push cannot be recorded: its record is damaged",
            asset=id,
            operation=write.operation,
            result=str(write.outcome.result),
            message=write.outcome.message,
            why=refused.message,
        )
        # A successful removal may have dropped the slot since, and another asset may have its id.
        slot = self._wakeups.slots.get(id) or self._add(id, slot.type, None)
        row = f"operation {write.operation} of asset {id}"
        slot.damage = DamagedError(row, "operation", why=refused.message)
        self._wakeups.wake_slot(slot, "the record of its push is damaged", urgent=True)

    def _turn_over(self, slot: Slot) -> None:
        slot.compared = None
        if slot.activity is PUSHING:
            return
        self._wakeups.idle(slot)
        if slot.woken is not None:
            cause, slot.woken = slot.woken, None
            self._wakeups.wake_slot(slot, cause, urgent=True)
        elif slot.departed and slot.state.left and slot.state.operation is None:
            self._wakeups.drop(slot)
            self._neighbours.let_go(slot)
            self._succeed(slot)
            self._outputs_changed(slot.key.id, slot.state.outputs, None)
        self._wakeups.changed.set()

    def _succeed(self, slot: Slot) -> None:
        """Start to enforce the asset that has taken over the id of one that has left."""
        head = slot.successor
        if head is not None and not self._runtime.registry.inert(head.type):
            new = self._add(head.id, head.type, head.digest)
            new.state = State(ledger=slot.state.ledger)
            cause = f"the former `{head.id}`, a {slot.type}, has left"
            self._wakeups.wake_slot(new, cause, urgent=True)

    async def _steps(self, slot: Slot) -> None:
        event: Event | None
        events: list[Event]
        if slot.inbox is not None:
            event, slot.inbox = slot.inbox, None
        else:
            slot.governance = self.governance
            if slot.damage is not None:
                slot.state = replace(slot.state, operation=None, ledger=None)
                self._broke(slot, slot.damage)
                return
            view = await self._lookups.run(partial(self._view, slot))
            if not self._selects(view):
                self._wakeups.leave_alone(slot)
                return
            self._note_holds(slot, view)
            self._note_needs(slot, view)
            if view.stage.wait_for:
                self._wakeups.listen(slot, view.stage.wait_for)
            event = Begin(view)
        before, events = slot.state, []
        while event is not None:
            ledger, left, outputs = slot.state.ledger, slot.state.left, slot.state.outputs
            events.append(event)
            slot.state, effects = step(slot.state, event)
            effects = with_inputs(before, events, effects)
            if slot.state.left and not left:
                await self._claims.release(slot.key.id)
            if slot.state.ledger is not ledger:
                self._entered(slot)
            if slot.state.outputs is not outputs:
                self._outputs_changed(slot.key.id, outputs, slot.state.outputs)
            event = None
            for effect in effects:
                answer = self._carry_out(slot, effect)
                event = None if answer is None else await answer

    def _view(self, slot: Slot) -> View:
        """The view of a turn that begins at this moment."""
        slot.governance = self.governance
        assert slot.governance is not None
        return self._viewer.view(slot, slot.governance, slot.cause, self.epoch)

    def _selects(self, view: View) -> bool:
        only = self._runtime.only
        return only is None or view.newest is None or only.matches(view.newest)

    def _note_holds(self, slot: Slot, view: View) -> None:
        """Wake the readers of an asset whose pin or release has changed: they read it at its own content."""
        held_at = view.pinning.content if view.pinning.held else 0
        if held_at != slot.held_at:
            slot.held_at = held_at
            self._wakeups.wake_readers(slot.key.id, f"{slot.key.id}, which it reads, is held elsewhere")

    def _note_needs(self, slot: Slot, view: View) -> None:
        """Follow the references of a changed asset, which may need what was removed and not differ itself."""
        if slot.met != slot.digest:
            slot.met = slot.digest
            if self._wakeups.removed and view.newest is not None:
                self._bring_back(self._neighbours.referred(view.newest))

    def _as_of(self, slot: Slot) -> AsOf:
        """The moment by whose pins and releases the turn of `slot` reads other assets."""
        assert slot.governance is not None
        assert slot.state.turn is not None
        return AsOf(slot.governance, slot.state.turn.view.now)

    def _entered(self, slot: Slot) -> None:
        """There is a new entry in the ledger."""
        self._viewer.entered(slot)
        ledger, id = slot.state.ledger, slot.key.id
        if ledger is not None and ledger.goal is Goal.ABSENT:
            self._wakeups.wake_readers(id, f"{id}, which it reads, was removed")

    def _outputs_changed(self, id: AssetId, before: Outputs | None, after: Outputs | None) -> None:
        same_type = before is not None and after is not None and before.type == after.type
        was = {} if before is None else before.values
        now = {} if after is None else after.values
        names = changed_names(was, now) if same_type else sorted({*was, *now})
        self._wakeups.wake_output_readers(id, names, f"outputs of {id}, which it reads, have changed")

    def _carry_out(self, slot: Slot, effect: Effect) -> Coroutine[Any, Any, Event] | None:
        """Carry out `effect`, or return a coroutine that does so and returns an event."""
        match effect:
            case RunDiff():
                return self._diff(slot, effect.target)
            case Rest():
                self._rest(slot, effect)
            case Commit():
                self.post(slot, list(map(self._pushes.with_steps, effect.writes)))
                if any(isinstance(write, LiftControl) for write in effect.writes):
                    self._lifted(slot.key.id)
            case RunChecks():
                return self._check(slot, effect)
            case AskAdmission():
                return self._pushes.admit(slot, effect)
            case StartPush():
                self._pushes.start(slot, effect, self._as_of(slot))
            case AskStatus():
                return slot.lane.status(effect.operation)
            case Again():
                slot.wake_later(effect.cause)
        return None

    def _rest(self, slot: Slot, rest: Rest) -> None:
        self._wakeups.rest(slot, rest)
        removed = self._neighbours.was_removed(slot.key.id)
        if removed:
            self._wakeups.removed.add(slot.key.id)
        else:
            self._wakeups.removed.discard(slot.key.id)
        if removed and rest.settled and slot.compared is not None:
            # An asset that only this one needed may be about to come back, and wait for something else first.
            needed = self._neighbours.referred_by(slot.compared, slot.key.id)
            freed = [id for id in needed if id in self._wakeups.unsettled]
            self._wakeups.wake_all(freed, f"{slot.key.id}, which referred to it, was removed")
            if self.governance is not slot.governance:
                # An asset that needs it again was compared during this turn, when it was not removed yet.
                self._wakeups.wake_slot(slot, "intent has changed during its removal", urgent=True)
        now, then = self.governance, slot.governance
        if not rest.settled and now is not None and then is not None and now.digest != then.digest:
            # The obstacle may be gone: only unsettled assets were woken when that was published.
            self._wakeups.wake_slot(slot, "checks, limits or freezes have changed", urgent=True)

    async def _diff(self, slot: Slot, target: Target) -> Diffed | DiffFailed:
        # A push is verified with the outputs that it has read; later ones need another push.
        assert slot.state.turn is not None
        slot.looks_now()
        event, read = await self._neighbours.compare(
            slot.lane,
            target,
            self._as_of(slot),
            known=slot.state.turn.view.known(target),
            routine=slot.may_share_a_call,
            like=slot.compared,
        )
        slot.compared = read
        if isinstance(event, Diffed):
            self.looked_at = self._runtime.clock.now()
            if not event.diff.empty:
                # Now, and not when the turn rests: admission may take as long as the store hangs.
                self._wakeups.unsettled[slot.key.id] = None
                if target.goal is Goal.PRESENT:
                    self._bring_back(self._neighbours.referred_by(read, slot.key.id))
        elif event.awaits:
            event = replace(event, cycle=cycle(self._wakeups.slots, slot, event.awaits))
        others = read.others(slot.key.id)
        if others != slot.reads:
            self._wakeups.read(slot, others)
            self._bring_back(others)
            if self.governance is not slot.governance:
                # Published before these reads were known: it must not be missed.
                self._wakeups.wake_slot(slot, "intent has changed during the comparison", urgent=True)
        if read.waking != slot.output_reads:
            self._wakeups.read_outputs(slot, read.waking)
        if read.out_of_date:
            self._wakeups.wake_slot(slot, "outputs have changed during the comparison", urgent=True)
        return event

    def _bring_back(self, needed: Iterable[AssetId]) -> None:
        """Wake those that their turndown has removed: they may be needed again."""
        for id in filter(self._neighbours.was_removed, needed):
            self._wakeups.recheck_soon(id)

    async def _check(self, slot: Slot, effect: RunChecks) -> Checked:
        view = effect.view
        assert slot.governance is not None

        def listen(id: AssetId) -> None:
            self._wakeups.listen(slot, (id,))

        recheck = self._wakeups.recheck_soon
        metrics = self._runtime.metrics
        reader = TurnCheckReader(view, slot.governance, self._neighbours, listen, recheck, metrics)
        verdicts = await ask_all(self._checks, view, effect.diff, effect.purpose, reader)
        others = tuple(dict.fromkeys((*reader.others, *self._read_by(slot))))
        now, then = self.governance, slot.governance
        if now is not None and now is not then and now.holds_otherwise(then, others, view.now):
            # An asset that was looked at under its former release may have settled before this one listened.
            self._wakeups.wake_slot(slot, "pins or releases of what it looked at have changed", urgent=True)
        return Checked(
            verdicts,
            self._runtime.chance.identifier(view.now),
            tuple(reader.looked_at.items()),
            cycle(self._wakeups.slots, slot, waits_for(verdicts)),
            others,
        )

    def _read_by(self, slot: Slot) -> tuple[AssetId, ...]:
        """The other assets that the plugin read: their pins and releases decide what it found there."""
        return () if slot.compared is None else slot.compared.others(slot.key.id)
