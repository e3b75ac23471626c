"""Counts the points that a run passes, and strikes at one of them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lehr.base.errors import TransientError
from lehr.model.diff import Goal, Target
from lehr.model.operation import Operation
from lehr.model.writes import (
    Admit,
    Adopt,
    Audit,
    Finish,
    KeepLease,
    LiftControl,
    Publish,
    Reschedule,
    SetControl,
    Write,
)
from lehr.testing.sim.plain_values import half
from lehr.testing.sim.plans.damage import damaged
from lehr.testing.sim.plans.plan import PUSH_FAULTS, Fault, FaultPlan, Point, Where
from lehr.testing.sim.plans.scenario_witness import ScenarioWitness
from lehr.testing.sim.process import Process
from lehr.testing.sim.production import Production
from lehr.testing.sim.source import Files, Repository, files
from lehr.testing.sim.trace import Trace

_LAG_SECONDS = 2.0
_LONGEST_LAG = 15.0
_AGAIN_SECONDS = 3.0
_HIDDEN_SECONDS = 4.0

_MOVES = (Publish, SetControl, LiftControl, Finish, Adopt)
_ROUTINE = (KeepLease, Reschedule, Audit)


class Saboteur:
    """Waits at every point of a run.

    Attributes:
        points: passed so far, with the state around each; only when there is no plan.
        struck: True once the fault of the plan has come.
        step: of the scenario.
        way: values that production of each asset went through, without what the fault itself left there.
        revisions: of the source that the fault has left, and which one was damaged.
        hurry: set once the next step should happen.
        replace: starts another control plane; called with whether the first is only held in the
            meantime.
    """

    def __init__(
        self, plan: FaultPlan | None, trace: Trace, witness: ScenarioWitness, production: Production
    ) -> None:
        self.plan = plan
        self.points: list[Point] = []
        self.struck = False
        self.step = 0
        self.hurry = asyncio.Event()
        self.way: dict[str, list[Any]] = {}
        self.revisions: dict[str, str] = {}
        self.replace: Callable[[bool], None] = lambda held: None
        self.production = production
        self.process: Process
        self._trace = trace
        self._witness = witness
        self._counts = dict.fromkeys(Where, 0)
        self._commit: dict[str, Any] = {}
        self._failing: str | None = None
        self._halving = False
        self._halved: tuple[str, Any] | None = None

    # --- counting ----------------------------------------------------------------------

    def _pass(self, where: Where, **fields: Any) -> Fault | None:
        """Count a point, and note it if it has `fields`; returns the fault that strikes there, if any."""
        self._counts[where] += 1
        if fields:
            self._note(where, self._state(), **fields)
        plan = self.plan
        if plan is None or self.struck or (plan.where, plan.number) != (where, self._counts[where]):
            return None
        self.struck = True
        self._trace.note("fault", plan.name)
        return plan.fault

    def _state(self) -> Any:
        return self._witness.digest(self.production.values) if self.plan is None else ""

    def _note(self, where: Where, before: Any, **fields: Any) -> None:
        if self.plan is not None:
            return
        self.points.append(
            Point(
                where=where,
                number=self._counts[where],
                step=self.step,
                at=asyncio.get_running_loop().time(),
                before=before,
                after=self._state(),
                busy=len(self.production.running),
                **fields,
            )
        )

    # --- processes and their commits ---------------------------------------------------------

    def attach(self, process: Process) -> None:
        """Watch the commits and events of `process`."""
        self.process = process
        process.store.before = lambda number, writes: self._committing(process, writes)
        enforcer = process.enforcer
        told, controls_changed = enforcer.notify_published, enforcer.controls_changed

        def announce(sequence: int = 0) -> None:
            newest = process.store.intent.newest(enforcer.partition)
            if newest is None:  # reads are stale
                self.event("publication", (), partial(told, sequence))
                return
            changes = process.store.intent.changes(newest.partition, newest.sequence - 1, newest.sequence)
            ids = tuple(change.id for change in changes)
            self.event(f"publication of {newest.name}", ids, partial(told, sequence))

        async def announce_controls(selector: Any, cause: str) -> None:
            started: list[asyncio.Task[None]] = []
            self.event(
                f"word about {selector}",
                (),
                lambda: started.append(asyncio.ensure_future(controls_changed(selector, cause))),
            )
            await asyncio.gather(*started)

        enforcer.notify_published = announce  # type: ignore[method-assign]
        enforcer.controls_changed = announce_controls  # type: ignore[method-assign]

    def _committing(self, process: Process, writes: Sequence[Write]) -> None:
        fault = self._pass(Where.COMMIT)
        if self.plan is None:
            self._commit = {"before": self._state(), **_described(writes)}
            return
        if self.plan.fault is Fault.STALE and self._counts[Where.COMMIT] == self.plan.since:
            self._trace.note("fault", f"reads find the store as it was before commit {self.plan.since}")
            process.store.lag()
            _later(_LONGEST_LAG, process.store.catch_up)
        match fault:
            case Fault.CRASH_BEFORE:
                process.store.dies = "before"
            case Fault.CRASH_AFTER:
                process.store.dies = "after"
            case Fault.STALE:
                _later(_LAG_SECONDS, process.store.catch_up)
            case Fault.SECOND:
                _later(0.0, lambda: self.replace(False))
            case Fault.HELD:
                self._hold()
            case Fault.EARLY:
                _later(0.0, self.hurry.set)

    def committed(self) -> None:
        """A commit has become durable."""
        if self.plan is None:
            self._note(Where.COMMIT, **self._commit)

    # --- production ----------------------------------------------------------------------------

    def looking(self, id: str, found: Any) -> Any:
        """A control plane looks at production of `id`, which is `found`."""
        fault = self._pass(Where.LOOK, what=f"at {id}", ids=(id,))
        if fault is Fault.FAIL:
            raise TransientError("production cannot be reached", why="no route to host")
        if fault is Fault.OUTDATED:
            return (None, *self.way.get(id, ()))[-2:][0]
        return found

    def begins(self, target: Target, operation: Operation) -> None:
        """A push begins."""
        if target.id == self._failing:
            self.production.push_faults.pop(target.id, None)
            self._failing, self._halving = None, False
        for other in self.production.running.values():
            if (other.asset, other.epoch) == (target.id, operation.epoch):
                self.production.broken.append(f"I5: one control plane pushes {target.id} twice at once")
        fault = self._pass(Where.PUSH, what=f"{target.id} to {target.goal}", ids=(target.id,))
        if fault is Fault.HELD:
            self._hold()
        elif fault is not None:
            self._failing, self._halving = target.id, fault is Fault.PARTIAL
            self.production.push_faults[target.id] = PUSH_FAULTS[fault]

    def applying(self, target: Target, value: Any, write: Callable[[], bool]) -> bool:
        """Production is about to be written, by `write`."""
        id, before = target.id, self._state()
        whole = self.production.values.get(id)
        fault = self._pass(Where.WRITE)
        if fault is Fault.CRASH_BEFORE:
            self._kill()
            return False
        applied = write()
        if applied and self._halving and id == self._failing:
            self._halved = (id, value)
        elif applied:
            self.went(id, value)
        divisible = half(value, whole) not in (value, whole)
        self._note(Where.WRITE, before, what=f"{id} to {target.goal}", ids=(id,), divisible=divisible)
        if fault is Fault.CRASH_AFTER:
            self._kill()
        if fault is Fault.HELD:
            self._hold()
        if fault is Fault.LATE:
            self.production.hidden[id] = _HIDDEN_SECONDS
            _later(_HIDDEN_SECONDS, lambda: self.production.hidden.pop(id, None))
        return applied

    def went(self, id: str, value: Any) -> None:
        """Production of `id` is `value` from now on."""
        way = self.way.setdefault(id, [])
        if (way[-1] if way else None) != value:
            way.append(value)

    def rested(self) -> None:
        """A step has settled: partial changes that remain were all there was to do."""
        if self._halved is not None:
            (id, value), self._halved = self._halved, None
            if self.production.values.get(id) == value:
                self.went(id, value)

    def _hold(self) -> None:
        """Stop the control plane where it is, and bring up another one."""
        self.process.hold()
        _later(0.0, lambda: self.replace(True))

    def _kill(self) -> None:
        """Nothing of the control plane continues from here, as with SIGKILL."""
        self.process.store.died.set()
        self.process.hold()

    # --- events and the source -----------------------------------------------------------------

    def event(self, what: str, ids: tuple[str, ...], deliver: Callable[[], None]) -> None:
        """Something wakes the control plane: `deliver` notifies it."""
        fault = self._pass(Where.EVENT, what=what, ids=ids)
        if fault is Fault.LOST:
            return
        deliver()
        if fault is Fault.DOUBLED:
            asyncio.get_running_loop().call_later(_AGAIN_SECONDS, deliver)

    def reading(self, found: Files) -> Files:
        """The source is read, and `found` is in it."""
        revision = found.revision.revision
        fault = self._pass(Where.READ, what=f"revision {revision[:12]}", revision=revision)
        if fault is None:
            return found
        if fault is Fault.UNREADABLE:
            raise TransientError("the repository cannot be read", why="no route to host")
        assert self.plan is not None
        broken = files(damaged(found.contents, self.plan))
        self.revisions[broken.revision.revision] = revision
        return broken


class SabotagedProduction(Production):
    """Production with the saboteur at every look and write."""

    saboteur: Saboteur

    def seen(self, id: str) -> Any:
        """As `Production.seen`."""
        return self.saboteur.looking(id, super().seen(id))

    def apply(self, target: Target, operation: Operation, value: Any, based_on: Any) -> bool:
        """As `Production.apply`."""
        write = super().apply
        return self.saboteur.applying(target, value, lambda: write(target, operation, value, based_on))


class SabotagedRepository(Repository):
    """A repository with the saboteur at every read and notification."""

    saboteur: Saboteur

    def read(self) -> Files:
        """As `Repository.read`."""
        return self.saboteur.reading(super().read())

    def announce(self) -> None:
        """As `Repository.announce`."""
        if self.followed:
            self.saboteur.event("word of the source", (), super().announce)


def _described(writes: Sequence[Write]) -> dict[str, Any]:
    told = [write for write in writes if not isinstance(write, _ROUTINE)]
    admitted = [write for write in told if isinstance(write, Admit)]
    return {
        "what": ", ".join(type(write).__name__ for write in told) or "nothing new",
        "ids": tuple(write.operation.asset for write in admitted),
        "moves": any(isinstance(write, _MOVES) for write in told),
        "admits": tuple(
            (write.operation.asset, write.approval or write.operation.goal is not Goal.PRESENT)
            for write in admitted
        ),
    }


def _later(seconds: float, call: Callable[[], object]) -> None:
    """Call it in no control plane's context: it continues while that one is held, and when it is dead."""
    loop = asyncio.get_running_loop()
    loop.call_later(seconds, call, context=contextvars.Context())
