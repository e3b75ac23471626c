"""Pushes: admits what a turn wants to push, and runs it in a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial

from msgspec.structs import replace

from lehr.base.errors import LehrError, TransientError
from lehr.base.log import Log
from lehr.enforce.claims import PushRefusal, SlotClaims
from lehr.enforce.committer import Committer
from lehr.enforce.governance import AsOf
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.lookups import Lookups
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.plugin_errors import one_line
from lehr.enforce.slot import ADMITTING, PUSHING, TURN, RunningPush, Slot
from lehr.enforce.state import Admitted, AskAdmission, Deferred, Ended, NotAdmitted, StartPush
from lehr.enforce.wakeups import Wakeups
from lehr.model.diff import Target
from lehr.model.operation import Outcome, PushStep, Result
from lehr.model.reason import Reason
from lehr.model.writes import Finish, Refused, Write
from lehr.sdk.runtime import Runtime

log = Log()


class Pushes:
    """Admits and runs pushes."""

    def __init__(
        self,
        runtime: Runtime,
        committer: Committer,
        lookups: Lookups,
        neighbours: Neighbours,
        wakeups: Wakeups,
        claims: SlotClaims,
        spawn: Callable[[Coroutine[None, None, None], str], None],
    ) -> None:
        """Push the assets of the slots of `wakeups`.

        Args:
            spawn: starts a push as a named task.
        """
        self._clock = runtime.clock
        self._committer = committer
        self._lookups = lookups
        self._neighbours = neighbours
        self._wakeups = wakeups
        self._claims = claims
        self._spawn = spawn
        self._reports: dict[str, tuple[PushStep, ...]] = {}

    async def admit(self, slot: Slot, effect: AskAdmission) -> Admitted | NotAdmitted | Deferred:
        """Ask for a place, the retry budget, claims and admission. An admitted push has to be started."""
        lane = slot.lane
        if self._wakeups.stopping:
            return NotAdmitted(Refused(Reason.STOPPING, "the control plane is stopping; no new push starts"))
        has_place = await lane.take_place(slot)
        slot.offered = False
        if not has_place:
            limit = lane.traits.pushes
            return Deferred(
                Reason.CONCURRENCY_LIMIT, f"{limit} pushes of this plugin are running, which is its limit"
            )
        if effect.retry and (wait := lane.budget.take(self._clock.monotonic())):
            self._wakeups.free_place(lane)
            return Deferred(Reason.RETRY_BUDGET, "the retry budget of this plugin's pushes is used up", wait)
        slot.become(ADMITTING)
        try:
            refusal = (
                await self._claims.take(slot)
                or await self._neighbours.needed_again(effect.admit)
                or await self._reads_changed(slot)  # last: nothing may happen between it and the request
            )
            if refusal is None:
                [refused] = await self._committer.ask(effect.admit)
                refusal = None if refused is None else PushRefusal(refused)
        except LehrError as error:
            refusal = PushRefusal(Refused(Reason.STORE_UNAVAILABLE, str(error)))
        if refusal is None:
            return Admitted(effect.admit.operation)
        self.refused(slot)
        self._wakeups.listen(slot, refusal.wait_for)
        return NotAdmitted(refusal.refused, refusal.wait_for)

    async def _reads_changed(self, slot: Slot) -> PushRefusal | None:
        """Why a push must not begin: an asset that its plugin read for the comparison has changed since.

        Invariant: I1. Admission itself sees neither outputs nor which content was applied last.

        Raises:
            LehrError: it cannot be looked up.
        """
        read, id = slot.compared, slot.key.id
        if read is None or not (changed := await self._lookups.run(partial(read.changed, id))):
            return None
        why = f"{', '.join(changed)} changed after it was read to compare {id}"
        return PushRefusal(Refused(Reason.READS_CHANGED, why))

    def refused(self, slot: Slot) -> None:
        """The push was not admitted: free its place for another one."""
        slot.become(TURN)
        slot.overtaken = False
        self._wakeups.free_place(slot.lane)

    def start(self, slot: Slot, effect: StartPush, as_of: AsOf) -> None:
        """Start an admitted push.

        Args:
            as_of: decides at which incarnation other assets are read.
        """
        slot.push = RunningPush(effect.operation, self._clock.now)
        slot.push.superseded = slot.overtaken
        slot.overtaken = False
        slot.become(PUSHING)
        self._wakeups.unsettled[slot.key.id] = None
        push = self._push(slot, effect.target, slot.push, as_of, slot.compared)
        self._spawn(push, f"push of {slot.key.id}")

    async def _push(
        self,
        slot: Slot,
        target: Target,
        push: RunningPush,
        as_of: AsOf,
        compared: RecordingReader | None,
    ) -> None:
        try:
            read = await self._push_reader(target, as_of, compared)
            if not self._committer.may_start:
                why = "the lease could not be renewed in time"
                raise TransientError("the push was not started", code="ENF109", why=why)
        except LehrError as error:
            outcome = Outcome(Result.FAILED, str(error))
        else:
            slot.compared = read
            try:
                outcome = await slot.lane.push(target, read, push)
            except Exception as error:
                log.exception("a push failed", asset=slot.key.id)
                outcome = Outcome(Result.UNKNOWN, one_line(error))
        self._wakeups.free_place(slot.lane)
        if push.steps:
            self._reports[push.operation.id] = push.steps
        ended = Ended(outcome, self._clock.now(), self._clock.monotonic(), push.superseded)
        self._wakeups.queue_outcome(slot, ended)

    async def _push_reader(
        self, target: Target, as_of: AsOf, compared: RecordingReader | None
    ) -> RecordingReader:
        """A reader with everything in memory that was read to compare, or that the asset refers to.

        A push cannot be repeated for something that is missing.

        Raises:
            LehrError: it cannot be read.
        """
        asset, read = await self._lookups.run(partial(self._neighbours.begun, target, as_of))
        if compared is not None and compared.incarnation == target.incarnation:
            read.know_same(compared)
        for id in () if asset is None else self._neighbours.referred(asset):
            await read.fetch(id)
        return read

    def with_steps(self, write: Write) -> Write:
        """The end of a push, with what its plugin reported: no turn decides anything from that."""
        if not self._reports or not isinstance(write, Finish):
            return write
        return replace(write, steps=self._reports.pop(write.operation, ()))
