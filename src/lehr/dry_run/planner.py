"""What a run would do, were a workspace published now: the first turn of every asset, and no push.

It begins where a process begins that is started now (`recover`), over the incarnation that the workspace
would become. Turns are those of `lehr.enforce`; where they ask for admission, it is answered in the order of
ids, each with the shares of limits that those before it would take. Places for pushes, and claims that others
have made since validation, are not asked for.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import structlog
from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.dry_run.candidate import CandidateIntent
from lehr.dry_run.supposed import Supposed
from lehr.enforce.checking import Looking, ask_all
from lehr.enforce.conclude import broken
from lehr.enforce.failing import brief
from lehr.enforce.governance import load
from lehr.enforce.lane import Lane
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.reading import RecordingReader, RememberedIntent
from lehr.enforce.recovery import Recovered, recover
from lehr.enforce.slot import Slot
from lehr.enforce.state import (
    Admitted,
    Again,
    AskAdmission,
    Begin,
    Checked,
    Commit,
    Diffed,
    DiffFailed,
    Effect,
    Event,
    Look,
    NotAdmitted,
    Rest,
    RunChecks,
    RunDiff,
)
from lehr.enforce.step import step
from lehr.enforce.unserved import Unserved
from lehr.enforce.viewing import Viewer
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Decision, Status, Verdict
from lehr.model.diff import Diff, Goal, Target
from lehr.model.reason import Reason
from lehr.model.writes import Record
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Records, Store

log = structlog.get_logger()

_EPOCH = 0
"""Of a lease that nobody takes."""

_CAUSE = "plan"


class Fate(enum.StrEnum):
    """What would become of an asset."""

    AS_INTENDED = "as intended"
    PUSHED = "will be pushed"
    WAITS = "waits"
    APPROVAL = "needs approval"
    HELD = "held"
    ORPHANED = "orphaned"
    NOT_KNOWN = "not known"


class Planned(msgspec.Struct, frozen=True):
    """What the next turn of one asset would come to.

    Attributes:
        goal: what production is compared with.
        content: sequence of the incarnation whose content that is; 0 where there is none.
        reason, message, unblock: as in a condition (`lehr.model.decision.Condition`).
        diff: None when its plugin could not compare, or was not asked.
        wait_for: assets whose settling may change the answer.
        verdicts: of the checks.
    """

    id: AssetId
    type: str
    goal: Goal
    content: int
    fate: Fate
    reason: str
    message: str = ""
    unblock: str = ""
    diff: Diff | None = None
    wait_for: tuple[AssetId, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


class _Overlay(NamedTuple):
    """As much of a store as `lehr.enforce.governance.load` reads."""

    intent: CandidateIntent
    records: Records


class _Ended(NamedTuple):
    decision: Decision
    wait_for: tuple[AssetId, ...] = ()


class Planner:
    """Plans a whole workspace, once."""

    def __init__(
        self,
        runtime: Runtime,
        candidate: CandidateIntent,
        plugins: Sequence[AssetPlugin],
        checks: Sequence[CheckPlugin],
    ) -> None:
        """Plan what `candidate` would come to.

        Args:
            runtime: whose store has what was published, decided and done, and is only read.
        """
        overlay = cast(Store, _Overlay(candidate, runtime.store.records))
        self._runtime = runtime = replace(runtime, store=overlay)
        self._newest = candidate.newest
        self._checks = checks
        self._intent = RememberedIntent(runtime.store.intent)
        self._slots: dict[AssetId, Slot] = {}
        self._unserved = _PatientLane(Unserved(), runtime.clock, self._turn)
        self._lanes: dict[str, Lane[Slot]] = {}
        for plugin in plugins:
            lane = _PatientLane(plugin, runtime.clock, self._turn)
            self._lanes.update(dict.fromkeys(plugin.types, lane))
        self._neighbours = Neighbours(runtime, self._intent, self._slots, self._lanes)
        self._viewer = Viewer(runtime, self._intent, frozenset(self._lanes), self._neighbours.has_left)
        self._governance = load(runtime.store, runtime.registry, candidate.newest, runtime.clock.now())
        self._left = 0
        self._over = asyncio.Event()
        self._begun: set[AssetId] = set()
        self._checked: dict[AssetId, Checked] = {}
        self._ended: dict[AssetId, _Ended] = {}
        for item in recover(self._intent, runtime.store.records, runtime.registry, runtime.partition):
            self._add(item)

    def _add(self, item: Recovered) -> None:
        lane = self._lanes.get(item.type, self._unserved)
        slot = Slot(AssetKey(self._runtime.partition, item.id), item.type, item.digest, lane)
        # As if nothing had been decided before: so each turn says what it decides, also what it did last.
        slot.state = replace(item.state, standing=None, next_at=None)
        slot.successor, slot.damage, slot.governance = item.successor, item.damage, self._governance
        self._slots[item.id] = slot

    async def plan(self) -> list[Planned]:
        """What would be done, by asset id. Assets without production are left out."""
        slots = [slot for _id, slot in sorted(self._slots.items())]
        try:
            # What became of pushes that nobody has ended, and who has left, is found out first: others may
            # wait for them.
            await self._turns([slot for slot in slots if slot.may_be_pushing or slot.departed])
            await self._turns([slot for slot in slots if slot.key.id not in self._begun])
        finally:
            for lane in (*self._lanes.values(), self._unserved):
                await lane.stop()
        self._admit([slot for slot in slots if slot.key.id in self._checked])
        return [_planned(slot, self._ended[slot.key.id]) for slot in slots]

    async def _turns(self, slots: list[Slot]) -> None:
        """Run the turns of `slots` as far as their checks have answered, or they rest."""
        self._begun.update(slot.key.id for slot in slots)
        self._left = len(slots)
        self._over = asyncio.Event()
        for slot in slots:
            slot.lane.add(slot, urgent=False)
        if slots:
            await self._over.wait()

    # --- one turn ----------------------------------------------------------------

    async def _turn(self, slot: Slot) -> None:
        """Begin the turn of `slot`, and go on as far as its checks have answered, or it rests."""
        try:
            if slot.damage is not None:
                slot.state = replace(slot.state, operation=None, ledger=None)
                raise slot.damage
            while slot.key.id not in self._ended and slot.key.id not in self._checked:
                await self._steps(slot, Begin(self._viewer.view(slot, self._governance, _CAUSE, _EPOCH)))
        except LehrError as error:
            self._broke(slot, error)
        except Exception as error:
            log.exception("a turn broke", asset=slot.key.id)
            self._broke(slot, brief(error))
        self._left -= 1
        if not self._left:
            self._over.set()

    def _broke(self, slot: Slot, error: LehrError | str) -> None:
        governing, now = self._governance.sequence, self._runtime.clock.now()
        slot.state, effects = broken(
            slot.state, slot.key, governing=governing, now=now, cause=_CAUSE, error=error
        )
        self._rest(slot, effects)

    async def _steps(self, slot: Slot, event: Event) -> None:
        while True:
            slot.state, effects = step(slot.state, event)
            self._viewer.entered(slot)
            match effects[-1]:
                case RunDiff(target=target):
                    event, _read = await self._neighbours.compare(slot.lane, target)
                case Look(operation=operation):
                    event = await slot.lane.status(operation)
                case RunChecks(view=view, diff=diff):
                    reader = Looking(view, self._governance, self._neighbours, self._runtime.store.records)
                    verdicts = await ask_all(self._checks, view, diff, reader)
                    looked_at = tuple(reader.looked_at.items())
                    self._checked[slot.key.id] = Checked(verdicts, "", looked_at)
                    return
                case Rest():
                    self._rest(slot, effects)
                    return
                case Again():
                    return
                case unforeseen:
                    raise AssertionError(f"no turn of a plan asks for {unforeseen}")

    def _rest(self, slot: Slot, effects: tuple[Effect, ...]) -> None:
        commit, rest = effects
        assert isinstance(commit, Commit)
        assert isinstance(rest, Rest)
        [decision] = [write.decision for write in commit.writes if isinstance(write, Record)]
        slot.waits = rest.wait_for
        self._ended[slot.key.id] = _Ended(decision, rest.wait_for)
        if slot.departed and slot.state.left:
            del self._slots[slot.key.id]

    # --- who may go ------------------------------------------------------------------

    def _admit(self, slots: list[Slot]) -> None:
        """End the turns whose checks have answered, by id."""
        supposed = Supposed(
            self._governance, self._runtime.store.records, _EPOCH, self._digest, self._may_be_pushing
        )
        for slot in slots:
            waiting = [item for item in self._checked[slot.key.id].verdicts if not item.allow]
            slot.waits = tuple(dict.fromkeys(id for item in waiting for id in item.wait_for))
        for slot in slots:
            try:
                self._end(slot, supposed)
            except LehrError as error:
                self._broke(slot, error)

    def _end(self, slot: Slot, supposed: Supposed) -> None:
        checked = self._checked[slot.key.id]
        operation = self._runtime.chance.identifier(self._runtime.clock.now())
        circle = self._neighbours.circle(slot, checked.verdicts)
        slot.state, effects = step(slot.state, replace(checked, operation_id=operation, circle=circle))
        asked = effects[-1]
        if isinstance(asked, AskAdmission):
            refused = supposed.admit(asked.admit)
            if refused is None:
                slot.state, _start = step(slot.state, Admitted(asked.admit.operation))
                assert asked.admit.decision is not None
                self._ended[slot.key.id] = _Ended(asked.admit.decision)
                return
            slot.state, effects = step(slot.state, NotAdmitted(refused))
        self._rest(slot, effects)

    def _digest(self, id: AssetId) -> Digest | None:
        asset = self._intent.asset(AssetKey(self._runtime.partition, id), self._governance.sequence)
        return None if asset is None else asset.digest

    def _may_be_pushing(self, id: AssetId) -> bool:
        slot = self._slots.get(id)
        return slot is not None and id not in self._ended and slot.may_be_pushing


class _PatientLane(Lane[Slot]):
    """A lane that asks the plugin once for each diff, however many ask: nothing is changed meanwhile."""

    def __init__(
        self, plugin: AssetPlugin, clock: Clock, turn: Callable[[Slot], Coroutine[Any, Any, None]]
    ) -> None:
        super().__init__(plugin, clock, turn)
        self._asked: dict[Target, asyncio.Future[Diffed | DiffFailed]] = {}

    async def diff(self, target: Target, asset: Asset | None, read: RecordingReader) -> Diffed | DiffFailed:
        asked = self._asked.get(target)
        if asked is None:
            asked = self._asked[target] = asyncio.get_running_loop().create_future()
            asked.set_result(await super().diff(target, asset, read))
        return await asked


_FATES = {
    Status.CONVERGED: Fate.AS_INTENDED,
    Status.TURNED_DOWN: Fate.AS_INTENDED,
    Status.ORPHANED: Fate.ORPHANED,
    Status.PUSHING: Fate.PUSHED,
    Status.WAITING: Fate.WAITS,
    Status.HELD: Fate.HELD,
    Status.RETRYING: Fate.NOT_KNOWN,
    Status.STALLED: Fate.NOT_KNOWN,
    Status.UNKNOWN: Fate.NOT_KNOWN,
}


def _planned(slot: Slot, ended: _Ended) -> Planned:
    decision, condition = ended.decision, ended.decision.condition
    fate = Fate.APPROVAL if condition.reason == Reason.APPROVAL_NEEDED else _FATES[condition.status]
    return Planned(
        slot.key.id,
        slot.type,
        decision.goal,
        decision.content,
        fate,
        condition.reason,
        condition.message,
        condition.unblock,
        decision.diff,
        ended.wait_for,
        decision.verdicts,
    )
