"""One turn of one asset: carries out what `step` asks for, and hands back what came of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import structlog
from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.enforce.checking import Looking, ask_all
from lehr.enforce.claims import Kept, SlotClaims
from lehr.enforce.committer import Committer
from lehr.enforce.conclude import broken
from lehr.enforce.failing import brief
from lehr.enforce.governance import Governance
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.reading import RememberedIntent
from lehr.enforce.slot import Activity, PushUnderWay, Slot
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
from lehr.enforce.step import step
from lehr.enforce.viewing import Viewer
from lehr.enforce.wakeups import Wakeups
from lehr.model.asset import AssetId
from lehr.model.damage import DamagedError
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import Outcome, Result
from lehr.model.reason import Reason
from lehr.model.writes import Finish, Refused, Write
from lehr.sdk.check import CheckPlugin
from lehr.sdk.runtime import Runtime

log = structlog.get_logger()


class Turns:
    """Runs turns.

    Attributes:
        governance: governance of the turns that begin from now on; None before the first
            incarnation.
        epoch: of the lease under which they push.
        count: how many were run.
        looked_at: wall-clock seconds when production was last compared; None before that.
    """

    def __init__(
        self,
        runtime: Runtime,
        committer: Committer,
        checks: Sequence[CheckPlugin],
        intent: RememberedIntent,
        viewer: Viewer,
        neighbours: Neighbours,
        wakeups: Wakeups,
        claims: SlotClaims,
        add: Callable[[AssetId, str, Digest | None], Slot],
        catch_up: Callable[[], None],
        spawn: Callable[[Coroutine[None, None, None], str], None],
    ) -> None:
        """Run turns of the slots of `wakeups`.

        Args:
            add: enforces one asset more.
            catch_up: takes up everything that has been published.
            spawn: runs a push, under a name.
        """
        self.governance: Governance | None = None
        self.epoch = 0
        self.count = 0
        self.looked_at: float | None = None
        self._runtime = runtime
        self._committer = committer
        self._checks = checks
        self._intent = intent
        self._viewer = viewer
        self._neighbours = neighbours
        self._wakeups = wakeups
        self._claims = claims
        self._add = add
        self._catch_up = catch_up
        self._spawn = spawn

    async def run(self, slot: Slot) -> None:
        """Run one turn of one asset. Never raises, so that no asset's trouble is another's."""
        slot.become(Activity.TURN)
        self.count += 1
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
            if slot.activity is Activity.ADMITTING:
                self._not_pushed(slot)
            self._turn_over(slot)

    def _broke(self, slot: Slot, error: LehrError | str) -> None:
        assert slot.governance is not None
        slot.state, (commit, rest) = broken(
            slot.state,
            slot.key,
            governing=slot.governance.sequence,
            now=self._runtime.clock.now(),
            cause=slot.cause,
            error=error,
        )
        self._committer.post(commit.writes)
        self._rest(slot, rest)

    def post(self, slot: Slot, writes: Sequence[Write]) -> None:
        """Have these written. A refused write is its asset's own trouble."""
        self._committer.post(writes, partial(self._not_written, slot))

    def _not_written(self, slot: Slot, write: Write, refused: Refused) -> None:
        """The end of a push is not in the store: its record of this asset is not reliable from now on."""
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
        slot = self._wakeups.slots.get(id) or self._add(id, slot.type, None)
        row = f"operation {write.operation} of asset {id}"
        slot.damage = DamagedError(row, "operation", why=refused.message)
        self._wakeups.wake_slot(slot, "the record of its push is damaged", urgent=True)

    def _turn_over(self, slot: Slot) -> None:
        if slot.activity is Activity.PUSHING:
            return
        self._wakeups.idle(slot)
        if slot.woken is not None:
            cause, slot.woken = slot.woken, None
            self._wakeups.wake_slot(slot, cause, urgent=True)
        elif slot.departed and slot.state.left and slot.state.operation is None:
            self._wakeups.drop(slot)
            self._succeed(slot)
        self._wakeups.changed.set()

    def _succeed(self, slot: Slot) -> None:
        """Begin with the asset that has taken the id of one that has left."""
        head = slot.successor
        if head is not None and not self._runtime.registry.inert(head.type):
            new = self._add(head.id, head.type, head.digest)
            new.state = State(ledger=slot.state.ledger)
            cause = f"what `{head.id}` was before, a {slot.type}, has left"
            self._wakeups.wake_slot(new, cause, urgent=True)

    async def _steps(self, slot: Slot) -> None:
        event: Event | None
        if slot.inbox is not None:
            event, slot.inbox = slot.inbox, None
        else:
            slot.governance = self.governance
            if slot.damage is not None:
                slot.state = replace(slot.state, operation=None, ledger=None)
                self._broke(slot, slot.damage)
                return
            if slot.departed:
                # Intent may name it again already: its last version must not be one of the future (I1).
                self._catch_up()
                slot.governance = self.governance
            assert slot.governance is not None
            view = self._viewer.view(slot, slot.governance, slot.cause, self.epoch)
            if view.course.wait_for:
                self._wakeups.listen(slot, view.course.wait_for)
            event = Begin(view)
        while event is not None:
            ledger, left = slot.state.ledger, slot.state.left
            slot.state, effects = step(slot.state, event)
            if slot.state.left and not left:
                await self._claims.give_up(slot.key.id)
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
            self._wakeups.wake_readers(id, f"{id}, which it reads, was removed")

    def _carry_out(self, slot: Slot, effect: Effect) -> Coroutine[Any, Any, Event] | None:
        """Carry out `effect`, or return a coroutine that does; it answers with an event."""
        match effect:
            case RunDiff():
                return self._diff(slot, effect.target)
            case Commit():
                self.post(slot, effect.writes)
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

    def _rest(self, slot: Slot, rest: Rest) -> None:
        self._wakeups.rest(slot, rest)
        now, then = self.governance, slot.governance
        if not rest.settled and now is not None and then is not None and now.digest != then.digest:
            # The obstacle may be gone: only unsettled assets were woken when that was published.
            self._wakeups.wake_slot(slot, "checks, limits or freezes have changed", urgent=True)

    async def _diff(self, slot: Slot, target: Target) -> Diffed | DiffFailed:
        event, read = await self._neighbours.compare(slot.lane, target)
        if isinstance(event, Diffed):
            self.looked_at = self._runtime.clock.now()
        others = read.others(slot.key.id)
        if others != slot.reads:
            self._wakeups.read(slot, others)
            if self.governance is not slot.governance:
                # Published before anybody knew that it reads these: it must not be missed.
                self._wakeups.wake_slot(slot, "intent has changed while it was looked at", urgent=True)
        return event

    async def _check(self, slot: Slot, view: View, diff: Diff) -> Checked:
        assert slot.governance is not None

        def listen(id: AssetId) -> None:
            self._wakeups.listen(slot, (id,))

        records, doubt = self._runtime.store.records, self._wakeups.doubt
        reader = Looking(view, slot.governance, self._neighbours, records, listen, doubt)
        verdicts = await ask_all(self._checks, view, diff, reader)
        return Checked(
            verdicts,
            self._runtime.chance.identifier(view.now),
            tuple(reader.looked_at.items()),
            self._neighbours.circle(slot, verdicts),
        )

    async def _ask_admission(self, slot: Slot, effect: AskAdmission) -> Admitted | NotAdmitted | Deferred:
        lane = slot.lane
        if self._wakeups.stopping:
            return NotAdmitted(Refused(Reason.STOPPING, "the control plane stops: no push begins any more"))
        has_place = await lane.take_place(slot)
        slot.offered = False
        if not has_place:
            limit = lane.traits.pushes
            return Deferred(
                Reason.CONCURRENCY_LIMIT, f"{limit} pushes of this plugin are under way, its limit"
            )
        if effect.retry and (wait := lane.budget.take(self._runtime.clock.monotonic())):
            self._wakeups.free_place(lane)
            return Deferred(Reason.RETRY_BUDGET, "too many retries of this plugin's pushes lately", wait)
        slot.become(Activity.ADMITTING)
        try:
            kept = await self._claims.take(slot)
            if kept is None:
                [refused] = await self._committer.ask(effect.admit)
                kept = None if refused is None else Kept(refused)
        except LehrError as error:
            kept = Kept(Refused(Reason.STORE_UNAVAILABLE, str(error)))
        if kept is None:
            return Admitted(effect.admit.operation)
        self._not_pushed(slot)
        self._wakeups.listen(slot, kept.wait_for)
        return NotAdmitted(kept.refused, kept.wait_for)

    def _not_pushed(self, slot: Slot) -> None:
        """The push that should have been admitted does not begin: another one has its place."""
        slot.become(Activity.TURN)
        slot.overtaken = False
        self._wakeups.free_place(slot.lane)

    # --- pushes --------------------------------------------------------------------------

    def _start_push(self, slot: Slot, effect: StartPush) -> None:
        slot.push = PushUnderWay(effect.operation)
        slot.push.superseded = slot.overtaken
        slot.overtaken = False
        slot.become(Activity.PUSHING)
        self._wakeups.unsettled[slot.key.id] = None
        self._spawn(self._push(slot, effect.target, slot.push), f"push of {slot.key.id}")

    async def _push(self, slot: Slot, target: Target, push: PushUnderWay) -> None:
        try:
            read = self._neighbours.reader(slot.key.id, target.incarnation)
            outcome = await slot.lane.push(target, read, push)
        except Exception as error:
            log.exception("a push broke", asset=slot.key.id)
            outcome = Outcome(Result.UNKNOWN, brief(error))
        self._wakeups.free_place(slot.lane)
        clock = self._runtime.clock
        self._wakeups.take_up(slot, Ended(outcome, clock.now(), clock.monotonic(), push.superseded))
