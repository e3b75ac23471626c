"""What a run would do if a workspace were published now: the first turn of every asset, without its push.

The plan starts like a new process (`recover`), from the incarnation that publishing the workspace would
create. Turns are those of `lehr.enforce`. Requests for admission are answered in the order of ids; each
counts the shares of limits that earlier ones would take. The plugins' limits on concurrent pushes, and
claims made by others since validation, are not considered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.dry_run.candidate import CandidateIntent, PublishedIntent
from lehr.dry_run.comparisons import Comparisons
from lehr.dry_run.intent_changes import IntentChanges, intent_changes
from lehr.dry_run.memories import Memories, no_memories
from lehr.dry_run.planned import Planned, PlannedResult, result_of
from lehr.dry_run.supposed import Supposed
from lehr.dry_run.texts import has_texts, texts_of
from lehr.enforce.conclude import broke
from lehr.enforce.cycles import cycle
from lehr.enforce.governance import AsOf, load
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.lane import Lane
from lehr.enforce.lookups import Lookups
from lehr.enforce.memory import NO_MEMORY
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.plugin_errors import one_line
from lehr.enforce.recovery import Recovered, Recovery, recover
from lehr.enforce.slot import Slot
from lehr.enforce.state import (
    Admitted,
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
    NotAdmitted,
    Rest,
    RunChecks,
    RunDiff,
    View,
)
from lehr.enforce.step import step
from lehr.enforce.turn_checks import TurnCheckReader, ask_all, waits_for
from lehr.enforce.unserved import Unserved
from lehr.enforce.viewer import Viewer
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Decision
from lehr.model.diff import Target
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.model.writes import RecordDecision
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin, TextChange
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Records, Store

log = Log()

_EPOCH = 0
"""Epoch of a lease that is never taken."""

_CAUSE = "plan"


class _Overlay(NamedTuple):
    """The part of a store that `lehr.enforce.governance.load` reads."""

    intent: CandidateIntent | PublishedIntent
    records: Records


class _Ended(NamedTuple):
    decision: Decision
    wait_for: tuple[AssetId, ...] = ()


class Planner:
    """Plans a whole workspace, once."""

    def __init__(
        self,
        runtime: Runtime,
        candidate: CandidateIntent | PublishedIntent,
        plugins: Sequence[AssetPlugin],
        checks: Sequence[CheckPlugin],
        memories: Memories = no_memories,
        comparisons: Comparisons | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        """Plan the effects of publishing `candidate`.

        Args:
            runtime: its store, with published intent and records, is only read.
            memories: those of a running process, of the assets that are planned; by default none, as after a
                start.
            comparisons: shared with other plans of the same moment; None to share none.
            recovery: what `recover` found in `candidate` at this moment; None to read it.
        """
        overlay = cast(Store, _Overlay(candidate, runtime.store.records))
        self._runtime = runtime = replace(runtime, store=overlay)
        self._newest = candidate.newest
        self._checks = checks
        self._lookups = Lookups(runtime)
        self._slots: dict[AssetId, Slot] = {}
        self._unserved = _PatientLane(Unserved(), runtime.clock, self._turn, comparisons)
        self._lanes: dict[str, Lane[Slot]] = {}
        for plugin in plugins:
            lane = _PatientLane(plugin, runtime.clock, self._turn, comparisons)
            self._lanes.update(dict.fromkeys(plugin.types, lane))
        self._neighbours = Neighbours(runtime, self._lookups, self._slots, self._lanes)
        self._viewer = Viewer(runtime, self._lookups, frozenset(self._lanes), self._neighbours.needing)
        self._governance = load(runtime.store, runtime.registry, candidate.newest, runtime.clock.now())
        self._left = 0
        self._over = asyncio.Event()
        self._begun: set[AssetId] = set()
        self._checked: dict[AssetId, Checked] = {}
        self._purposes: dict[AssetId, Purpose] = {}
        self._ended: dict[AssetId, _Ended] = {}
        self._missing: dict[AssetId, RecordingReader] = {}
        self._memories = memories
        left = recovered(runtime) if recovery is None else recovery
        self._neighbours.continue_from(left)
        for item in left.assets:
            self._add(item)

    def _add(self, item: Recovered) -> None:
        lane = self._lanes.get(item.type, self._unserved)
        slot = Slot(AssetKey(self._runtime.partition, item.id), item.type, item.digest, lane)
        # Forget earlier decisions, so that each turn reports its decision even if it has not changed.
        slot.state = replace(
            item.state, condition_key=None, next_at=None, trouble=NO_MEMORY.trouble, contest=NO_MEMORY.contest
        )
        slot.successor, slot.damage, slot.governance = item.successor, item.damage, self._governance
        self._slots[item.id] = slot

    async def plan(self, most: int | None = None) -> list[Planned]:
        """The plan for each asset, by id. Assets without production are left out.

        Raises:
            LehrError: more than `most` are selected.
        """
        slots = [slot for slot in self._among() if await self._selects(slot)]
        if most is not None and len(slots) > most:
            raise _too_many(len(slots), most)
        for slot in slots:
            memory = self._memories(slot.key.id)
            slot.state = replace(slot.state, trouble=memory.trouble, contest=memory.contest)
        try:
            # Unfinished pushes, and assets that have left intent, are examined first: others may wait for
            # them.
            await self._turns([slot for slot in slots if slot.may_be_pushing or slot.departed])
            # Then those whose outputs others may need.
            await self._turns([slot for slot in slots if self._is_new(slot) and self._has_outputs(slot)])
            await self._turns([slot for slot in slots if self._is_new(slot)])
        finally:
            for lane in (*self._lanes.values(), self._unserved):
                await lane.stop()
        self._admit([slot for slot in slots if slot.key.id in self._checked])
        planned = [self._planned(slot) for slot in slots]
        pushed = {item.id for item in planned if item.result is PlannedResult.PUSHED}
        return [_with_hint(item, pushed) for item in planned]

    async def texts(self, planned: Planned) -> Sequence[TextChange]:
        """The texts that a push of an asset would change, after `plan`: nothing keeps them.

        They are read now, so they may be newer than the diff.
        """
        slot = self._slots.get(planned.id)
        if slot is None or planned.diff is None or planned.diff.empty or not has_texts(slot.lane.plugin):
            return ()
        key, content, goal = slot.key, planned.content, planned.goal
        target = slot.state.identified(Target(key.partition, key.id, slot.type, content, goal))
        as_of = AsOf(self._governance, self._runtime.clock.now())
        _asset, read = await self._lookups.run(lambda: self._neighbours.begun(target, as_of))
        return await texts_of(slot.lane.plugin, target, read, planned.diff)

    async def intent_changes(self, planned: Planned) -> IntentChanges:
        """The changes of intent since the asset was in place last; none where texts show what changes."""
        slot = self._slots.get(planned.id)
        if slot is None or not planned.since or has_texts(slot.lane.plugin):
            return IntentChanges()
        ledger = slot.state.ledger
        assert ledger is not None
        key = AssetKey(self._runtime.partition, planned.id)
        known, registry = self._lookups, self._runtime.registry
        try:
            return await known.run(
                lambda: intent_changes(known, registry, key, ledger.content, planned.content)
            )
        except LehrError:
            return IntentChanges()  # damaged, which turns of it report

    def _among(self) -> list[Slot]:
        """By id, those that may be selected."""
        only = self._runtime.only
        if only is not None and only.is_one_id:
            found = self._slots.get(AssetId(only.ids[0]))
            return [] if found is None else [found]
        return [slot for _id, slot in sorted(self._slots.items())]

    async def _selects(self, slot: Slot) -> bool:
        only = self._runtime.only
        if only is None or not only.may_select(slot.key.id, slot.type) or slot.damage is not None:
            return only is None or only.may_select(slot.key.id, slot.type)
        newest = (await self._view(slot)).newest
        return newest is None or only.matches(newest)

    async def _turns(self, slots: list[Slot]) -> None:
        """Run the turns of `slots` until their checks have answered, or they rest."""
        self._begun.update(slot.key.id for slot in slots)
        while slots:
            self._left = len(slots)
            self._over = asyncio.Event()
            for slot in slots:
                slot.lane.add(slot, urgent=False)
            await self._over.wait()
            slots = [slot for id in tuple(self._missing) if self._knows_more(slot := self._slots[id])]

    def _is_new(self, slot: Slot) -> bool:
        return slot.key.id not in self._begun

    def _has_outputs(self, slot: Slot) -> bool:
        return slot.type in slot.lane.plugin.outputs

    def _knows_more(self, slot: Slot) -> bool:
        """Whether outputs that a turn has missed were found since, in another turn; it is then repeated."""
        if not self._missing[slot.key.id].out_of_date:
            return False
        del self._missing[slot.key.id], self._ended[slot.key.id]
        slot.state = replace(slot.state, condition_key=None)
        return True

    def _planned(self, slot: Slot) -> Planned:
        ended, ledger = self._ended[slot.key.id], slot.state.ledger
        decision, condition = ended.decision, ended.decision.condition
        was_in_place = ledger is not None and ledger.goal is decision.goal
        return Planned(
            slot.key.id,
            slot.type,
            decision.goal,
            decision.content,
            result_of(condition),
            condition.reason,
            condition.message,
            condition.unblock,
            decision.diff,
            ended.wait_for,
            decision.verdicts,
            self._purposes.get(slot.key.id, ""),
            f"{ledger.partition}@{ledger.content}" if ledger is not None and was_in_place else "",
        )

    # --- one turn ----------------------------------------------------------------

    async def _turn(self, slot: Slot) -> None:
        """Run the turn of `slot` until its checks have answered, or it rests."""
        try:
            if slot.damage is not None:
                slot.state = replace(slot.state, operation=None, ledger=None)
                raise slot.damage
            while slot.key.id not in self._ended and slot.key.id not in self._checked:
                await self._steps(slot, Begin(await self._view(slot)))
        except LehrError as error:
            self._broke(slot, error)
        except Exception as error:
            log.exception("a turn failed", asset=slot.key.id)
            self._broke(slot, one_line(error))
        self._left -= 1
        if not self._left:
            self._over.set()

    async def _view(self, slot: Slot) -> View:
        return await self._lookups.run(lambda: self._viewer.view(slot, self._governance, _CAUSE, _EPOCH))

    def _as_of(self, slot: Slot) -> AsOf:
        assert slot.state.turn is not None
        return AsOf(self._governance, slot.state.turn.view.now)

    def _broke(self, slot: Slot, error: LehrError | str) -> None:
        governing, now = self._governance.sequence, self._runtime.clock.now()
        slot.state, effects = step(slot.state, broke(slot.key, governing, now, _CAUSE, error))
        self._rest(slot, effects)

    async def _steps(self, slot: Slot, event: Event) -> None:
        while True:
            slot.state, effects = step(slot.state, event)
            self._viewer.entered(slot)
            match effects[-1]:
                case RunDiff(target=target):
                    assert slot.state.turn is not None
                    known = slot.state.turn.view.known(target)
                    event, read = await self._neighbours.compare(
                        slot.lane, target, self._as_of(slot), known=known, routine=True
                    )
                    if isinstance(event, DiffFailed) and event.awaits:
                        self._missing[slot.key.id] = read
                        event = replace(event, cycle=cycle(self._slots, slot, event.awaits))
                case AskStatus(operation=operation):
                    event = await slot.lane.status(operation)
                case RunChecks(view=view, diff=diff, purpose=purpose):
                    self._purposes[slot.key.id] = purpose
                    metrics = self._runtime.metrics
                    reader = TurnCheckReader(view, self._governance, self._neighbours, metrics=metrics)
                    verdicts = await ask_all(self._checks, view, diff, purpose, reader)
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
        *commits, rest = effects
        assert isinstance(rest, Rest)
        writes = [write for commit in commits if isinstance(commit, Commit) for write in commit.writes]
        [decision] = [write.decision for write in writes if isinstance(write, RecordDecision)]
        slot.waits = rest.wait_for
        self._ended[slot.key.id] = _Ended(decision, rest.wait_for)
        if slot.departed and slot.state.left:
            del self._slots[slot.key.id]
            self._neighbours.let_go(slot)

    # --- who may go ------------------------------------------------------------------

    def _admit(self, slots: list[Slot]) -> None:
        """End the turns whose checks have answered, by id."""
        supposed = Supposed(
            self._governance, self._runtime.store.records, _EPOCH, self._digest, self._may_be_pushing
        )
        for slot in slots:
            slot.waits = waits_for(self._checked[slot.key.id].verdicts)
        for slot in slots:
            try:
                self._end(slot, supposed)
            except LehrError as error:
                self._broke(slot, error)

    def _end(self, slot: Slot, supposed: Supposed) -> None:
        checked = self._checked[slot.key.id]
        operation = f"planned-{slot.key.id}"  # the same in every plan, so that plans can be compared
        chain = cycle(self._slots, slot, waits_for(checked.verdicts))
        slot.state, effects = step(slot.state, replace(checked, operation_id=operation, cycle=chain))
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
        asset = self._lookups.asset(AssetKey(self._runtime.partition, id), self._governance.sequence)
        return None if asset is None else asset.digest

    def _may_be_pushing(self, id: AssetId) -> bool:
        slot = self._slots.get(id)
        return slot is not None and id not in self._ended and slot.may_be_pushing


class _PatientLane(Lane[Slot]):
    """A lane that asks the plugin for each diff only once, because a plan changes nothing."""

    def __init__(
        self,
        plugin: AssetPlugin,
        clock: Clock,
        turn: Callable[[Slot], Coroutine[Any, Any, None]],
        comparisons: Comparisons | None,
    ) -> None:
        super().__init__(plugin, clock, turn)
        self._comparisons = comparisons
        self._asked: dict[Target, asyncio.Future[Diffed | DiffFailed]] = {}

    async def diff(
        self, target: Target, asset: Asset | None, read: RecordingReader, *, routine: bool = False
    ) -> Diffed | DiffFailed:
        asked = self._asked.get(target)
        if asked is None:
            asked = self._asked[target] = asyncio.get_running_loop().create_future()
            found = await self._compared(target, asset, read, routine)
            if isinstance(found, DiffFailed) and found.awaits:
                del self._asked[target]  # a later turn of the plan may find what is missing
            asked.set_result(found)
        return await asked

    async def _compared(
        self, target: Target, asset: Asset | None, read: RecordingReader, routine: bool
    ) -> Diffed | DiffFailed:
        """As `diff`, unless another plan has compared the same."""
        if self._comparisons is None:
            return await super().diff(target, asset, read, routine=routine)
        with contextlib.suppress(LehrError):  # of an asset that cannot be read, which the plugin reports
            known = await self._comparisons.find(target, asset, read)
            if known is not None:
                return known
        found = await super().diff(target, asset, read, routine=routine)
        self._comparisons.keep(target, asset, read, found)
        return found


def recovered(runtime: Runtime) -> Recovery:
    """The unfinished work from which plans start. Reads everything; plans of one moment can share it."""
    return recover(runtime.store.intent, runtime.store.records, runtime.registry, runtime.partition)


def _too_many(selected: int, most: int) -> LehrError:
    return LehrError(
        f"the selector selects {selected:,} assets",
        code="DRY107",
        why=f"a plan has at most {most:,}",
        fix="use a narrower selector",
    )


def _with_hint(planned: Planned, pushed: Collection[AssetId]) -> Planned:
    """`planned`, and when the outputs that it needs will be known."""
    coming = [id for id in planned.wait_for if id in pushed]
    if planned.reason != Reason.OUTPUT_UNKNOWN or not coming:
        return planned
    return replace(planned, message=f"{planned.message}; it will be after the push of {', '.join(coming)}")
