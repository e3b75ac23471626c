"""One run of a scenario, with a fault or without: people, control planes and time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lehr.base.errors import LehrError
from lehr.control.messages import AnyRequest, Approve, Retry
from lehr.model.diff import Goal, Target
from lehr.model.operation import Operation
from lehr.model.types import Registry
from lehr.model.writes import Write
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.harness import Harness
from lehr.testing.sim.plans.oracles import differences, strays, unlike
from lehr.testing.sim.plans.plan import Fault, FaultPlan, Reference, Rest
from lehr.testing.sim.plans.saboteur import (
    SabotagedProduction,
    SabotagedRepository,
    Saboteur,
)
from lehr.testing.sim.plans.scenario import Drift, Edit, Order, Scenario, Step
from lehr.testing.sim.plans.scenario_witness import ScenarioWitness
from lehr.testing.sim.process import Process
from lehr.testing.sim.production import TRAITS
from lehr.testing.sim.source import files
from lehr.testing.virtual import run
from lehr.testing.world import Crash

SEED = 1
"""Of every run: any difference from the reference is then the fault's effect."""

_TRAITS = replace(TRAITS, goals=TRAITS.goals | {Goal.DRAINED}, pushes=4, turns=8, resync=60.0)
_PUSH_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_DOWN_SECONDS = 1.0
_HELD_SECONDS = 20.0
_DEPOSED_SECONDS = 60.0
_HELP_SECONDS = 40.0
_LONGEST_REST = 400.0
_STAYS_SECONDS = 65.0
"""Longer than a resync: every asset is looked at once more."""


class _Slow(Dice):
    """Whatever may take some time takes the longest: a push that runs on outlives its limit."""

    def seconds(self, low: float, high: float) -> float:
        """The longest."""
        return high


class PlanHarness(Harness):
    """Plays a scenario once.

    Attributes:
        alarms: problems, one line each.
        rests: state of everything after each step.
    """

    poll = 10.0
    witnesses = ScenarioWitness
    productions = SabotagedProduction
    repositories = SabotagedRepository
    witness: ScenarioWitness
    production: SabotagedProduction
    repository: SabotagedRepository

    def __init__(
        self,
        scenario: Scenario,
        registry: Registry,
        folder: Path,
        plan: FaultPlan | None = None,
        reference: Reference | None = None,
        fencing: Fencing = Fencing.NATIVE,
    ) -> None:
        """Without a reference, this run is one, with a provider of this `fencing`."""
        traits = replace(_TRAITS, fencing=fencing if reference is None else reference.fencing)
        super().__init__(folder, scenario.partition, registry, traits, scenario.kinds, _Slow(SEED))
        self.scenario = scenario
        self.alarms: list[str] = []
        self.rests: list[Rest] = []
        self.reference = reference
        self._saboteur = Saboteur(plan, self.trace, self.witness, self.production)
        self._saboteur.replace = self._replace
        self.production.saboteur = self.repository.saboteur = self._saboteur
        self.production.seconds = _PUSH_SECONDS
        self._replacing: asyncio.Task[None] | None = None
        self._approved: set[str] = set()

    def play(self) -> None:
        """PlanHarness it to its end, or until something is wrong."""
        try:
            run(self._main, seed=SEED)
        except Exception as error:
            self.alarms.append(f"the run broke: {type(error).__name__}: {error}")
        self.alarms[:0] = dict.fromkeys([*self.witness.violations, *self.production.broken])

    def as_reference(self) -> Reference:
        """The basis of comparison for other runs of the scenario, after `play`."""
        seconds = self.trace.events[-1].at
        points, way = tuple(self._saboteur.points), self._way()
        declared = {name: item or {} for name, item in self.witness.publications.revisions.items()}
        return Reference(points, tuple(self.rests), way, declared, seconds, self.traits.fencing)

    def _way(self) -> dict[str, tuple[Any, ...]]:
        return {id: tuple(values) for id, values in sorted(self._saboteur.way.items())}

    async def _main(self) -> None:
        await self._declare()
        for number, step in enumerate(self.scenario.steps):
            self._saboteur.step = number
            self.trace.note("step", f"{number}: {step.what}")
            await self._take(step)
            if not await self._come_to_rest(number):
                break
        else:
            await self.clock.sleep(_STAYS_SECONDS)
            self._judge()
        await self._alive()
        await self.close()

    async def _declare(self) -> None:
        """Each revision's declarations, from a build of its own; the reference knows it for all runs."""
        revisions = self.witness.publications.revisions
        if self.reference is not None:
            revisions.update(self.reference.declared)
        else:
            for snapshot in (files(step.files) for step in self.scenario.steps if isinstance(step, Edit)):
                revisions[snapshot.revision.revision] = await self.declared(snapshot)
        # Looks take time, so that much happens while turns are under way.
        ids = {id for declared in revisions.values() for id in declared or ()}
        self.production.looking = dict.fromkeys(ids, _LOOK_SECONDS)

    def begins(self, target: Target, operation: Operation) -> None:
        """As `Harness.begins`, and a point."""
        super().begins(target, operation)
        self._saboteur.begins(target, operation)

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """As `Harness.committed`, and a point."""
        revisions = self.witness.publications.revisions
        for broken, whole in self._saboteur.revisions.items():
            # Damage is refused, unless all the same is declared: half of a comment is missing.
            revisions.setdefault(broken, revisions[whole])
        super().committed(writes, answers)
        self._saboteur.committed()

    # --- control planes --------------------------------------------------------------------

    async def _begin(self) -> None:
        """Start a control plane, however often it takes."""
        while True:
            process = self.add_process(len(self.processes))
            self._saboteur.attach(process)
            if await self.try_start(process):
                return
            await self.clock.sleep(_DOWN_SECONDS)

    async def _alive(self) -> Process:
        """A control plane that is there; another one, if the last has died."""
        if self._replacing is not None:
            task, self._replacing = self._replacing, None
            await task
        if self.process.dead:
            self.trace.note("process", f"{self.process.name} has died")
            await self.process.kill()
            await self.clock.sleep(_DOWN_SECONDS)
            await self._begin()
        return self.process

    def _replace(self, held: bool) -> None:
        self._replacing = asyncio.get_running_loop().create_task(self._replaced(held), name="replacing")

    async def _replaced(self, held: bool) -> None:
        """Another control plane comes; the first must find out, and end."""
        first = self.process
        await self._begin()
        if held:
            await self.clock.sleep(_HELD_SECONDS)
            first.release()
        try:
            async with asyncio.timeout(_DEPOSED_SECONDS):
                await first.store.died.wait()
        except TimeoutError:
            self.alarms.append(f"I5: {first.name} continues although another one has taken over")
        await first.kill()

    # --- people --------------------------------------------------------------------------------

    async def _take(self, step: Step) -> None:
        match step:
            case Edit():
                self.repository.edit(step.files, step.what)
                if not self.processes:
                    await self._begin()
            case Order():
                for request in step.requests:
                    await self._order(request)
            case Drift():
                self._drift(step)

    async def _order(self, request: AnyRequest) -> None:
        """Give a command; without an answer, give it again."""
        answer = None
        for _try in range(5):
            process = await self._alive()
            try:
                answer = await process.command(request)
                if answer.ok:
                    break
            except (Crash, LehrError) as error:
                self.trace.note("person", f"no answer: {type(error).__name__}")
            await self.clock.sleep(_DOWN_SECONDS)
        if isinstance(request, Approve):
            self._approved.add(request.selector)
        if self.reference is None and (answer is None or not answer.ok):
            self.alarms.append(f"the scenario's command {request} is refused: {answer and answer.message}")

    def _drift(self, step: Drift) -> None:
        self.trace.note("drift", step.what)
        if step.value is None:
            self.production.take(step.id)
        else:
            self.production.put(step.id, step.value)
        self._saboteur.went(step.id, step.value)
        self._saboteur.event(f"hint about {step.id}", (step.id,), lambda: self.process.hint(step.id))

    async def _help(self, expected: Rest) -> None:
        """Do what `unblock` asks people for, where the reference is further."""
        for id, condition in sorted(self.witness.conditions.items()):
            if expected.conditions.get(id) == (condition.status, condition.reason):
                continue
            if "lehr retry" in condition.unblock:
                await self._order(Retry(selector=id))
            elif "lehr approve" in condition.unblock and id in self._approved:
                await self._order(Approve(selector=id, reason="seen before"))

    # --- rest ----------------------------------------------------------------------------------

    async def _come_to_rest(self, number: int) -> bool:
        """Wait until everything is as after this step of the reference. False if it never is."""
        expected = None if self.reference is None else self.reference.rests[number]
        began = helped = self.clock.monotonic()
        while (waited := self.clock.monotonic() - began) < _LONGEST_REST:
            # Not in step with timers of the program, so that nothing falls on the same instant.
            if await self._hurried(0.23 if waited < _HELP_SECONDS else 2.3):
                return True
            process = await self._alive()
            newest = self.repository.newest.revision.revision
            if process.enforcer.at_rest and self.witness.revision == newest:
                found = self._rest()
                if expected is None or found == expected:
                    self.rests.append(found)
                    self._saboteur.rested()
                    return True
                if self.clock.monotonic() - helped > _HELP_SECONDS:
                    helped = self.clock.monotonic()
                    await self._help(expected)
        self.alarms.append(f"after step {number} ({self.scenario.steps[number].what}) it never settled")
        self.alarms += [] if expected is None else unlike(expected, self._rest(), self.witness.conditions)
        return False

    async def _hurried(self, seconds: float) -> bool:
        """Let time pass. True immediately if the next step should come early."""
        hurry = self._saboteur.hurry
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await hurry.wait()
        hurried = hurry.is_set()
        hurry.clear()
        return hurried

    def _rest(self) -> Rest:
        return Rest(
            dict(self.production.values),
            self.witness.entries(),
            self.witness.all_conditions(),
            self.witness.incarnation,
            tuple(self.witness.open),
        )

    def _judge(self) -> None:
        """At the end: the state is that of the reference, and so is the way to it."""
        stored = self._stored()
        if stored != self._rest():
            self.alarms.append("I12: the store does not hold what was written")
            self.alarms += unlike(self._rest(), stored, {})
        if self.reference is None:
            return
        self.alarms += unlike(self.reference.rests[-1], self._rest(), self.witness.conditions)
        plan = self._saboteur.plan
        compared = strays if plan is not None and plan.fault is Fault.EARLY else differences
        self.alarms += compared(self.reference.way, self._way())
        if plan is not None and not self._saboteur.struck:
            self.alarms.append(f"the run never reached {plan.name}")

    def _stored(self) -> Rest:
        store, partition = self.process.store, self.partition
        newest = store.intent.newest(partition)
        return Rest(
            dict(self.production.values),
            {item.asset: (item.content_digest, item.goal) for item in store.records.ledgers(partition)},
            {
                item.asset: (item.condition.status, item.condition.reason)
                for item in store.records.standings(partition)
            },
            "" if newest is None else newest.digest,
            tuple(item.asset for item in store.records.open_operations(partition)),
        )
