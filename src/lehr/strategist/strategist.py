"""The loop that carries out rollouts: look, decide, write, and look again when something has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial

from msgspec.structs import replace

from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.enforce.committer import Committer
from lehr.enforce.enforcer import Enforcer
from lehr.enforce.governance import Governance
from lehr.model.asset import AssetId
from lehr.model.evidence import Ended, Looked
from lehr.model.writes import LeaseLostError, Refused, WriteReleases
from lehr.rollouts.course import Course
from lehr.rollouts.figures import RolloutFigures, RolloutState, figures_of
from lehr.rollouts.plan import Step, plan
from lehr.rollouts.policy import Policy
from lehr.rollouts.verdicts import Verdicts
from lehr.sdk.runtime import Runtime
from lehr.strategist.courses import Courses
from lehr.strategist.forecasts import ForecastKeeper
from lehr.strategist.measurements import Measurements
from lehr.strategist.releasing import write_of
from lehr.strategist.roster import Roster
from lehr.strategist.selections import AskedSelections, earliest

log = Log()

_SOON = 0.1
"""Seconds between something that may matter and the next step: much often changes together."""

_REST = 4.0
"""The loop rests for so many times as long as it took to decide. Commits do not count: they only wait."""

_LONGEST_REST = 15.0
"""Seconds: after a store that hung for a minute, rollouts need not rest for four more."""

_RETRY = 5.0


class Strategist:
    """Releases what the policies in force allow, while this process has the lease.

    It may be stopped at any moment: everything that it decides from is in the store.

    Attributes:
        figures: the rollouts of each policy in force, as of the last look at it.
    """

    def __init__(self, runtime: Runtime, committer: Committer, enforcer: Enforcer) -> None:
        self._runtime = runtime
        self._committer = committer
        self._enforcer = enforcer
        self._roster = Roster(runtime.store, runtime.registry, runtime.partition, runtime.calendars)
        self._courses = Courses()
        self._forecasts = ForecastKeeper(runtime, self._roster.contents)
        self.figures: dict[AssetId, RolloutFigures] = {}
        self._looked: dict[AssetId, tuple[str, float]] = {}
        self._woken = asyncio.Event()
        self._deciding = 0.0
        self._troubled: set[AssetId] = set()
        self._selections = AskedSelections(runtime.clock, runtime.selections, self.wake)
        self._measurements = Measurements(runtime.metrics, self.wake)
        self._verdicts = Verdicts()

    def wake(self) -> None:
        """A person's command was written."""
        self._woken.set()

    async def run(self) -> None:
        """Carry out rollouts until the lease is lost. Failures are logged, and steps tried again."""
        try:
            await self._run()
        finally:
            await self._selections.close()
            await self._measurements.close()

    async def _run(self) -> None:
        clock = self._runtime.clock
        while True:
            seen, self._deciding = self._seen(), 0.0
            try:
                again_in = await self._step_all()
            except LeaseLostError:
                return  # which the committer reports
            if self._policies():
                await clock.sleep(self._rest())
            await self._wait(seen, again_in)

    def _rest(self) -> float:
        """Seconds in which nothing is decided."""
        deciding = self._deciding - self._forecasts.take_seconds()
        return min(max(_SOON, _REST * deciding), _LONGEST_REST)

    def _policies(self) -> Sequence[Policy]:
        governance = self._enforcer.governance
        return () if governance is None else governance.policies.items

    def _seen(self) -> tuple[int, ...]:
        """Equal for two moments if nothing has happened in between that a step could depend on."""
        governance = self._enforcer.governance
        if governance is None:
            return ()
        turns = self._enforcer.turns if governance.policies else 0
        return governance.sequence, governance.controls_version, governance.releases.version, turns

    async def _wait(self, seen: tuple[int, ...], again_in: float | None) -> None:
        """Wait until something has changed since `seen`, or the time has come."""
        if self._seen() == seen and not self._woken.is_set():
            waits: list[Coroutine[None, None, object]] = [self._enforcer.changed(), self._woken.wait()]
            if again_in is not None:
                waits.append(self._runtime.clock.sleep(max(0.0, again_in)))
            tasks = [asyncio.create_task(item) for item in waits]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
        self._woken.clear()

    async def _step_all(self) -> float | None:
        """Steps of all policies. Returns the seconds until the next that time alone brings."""
        in_force = {policy.id for policy in self._policies()}
        self.figures = {id: found for id, found in self.figures.items() if id in in_force}
        found = [await self._tried(policy) for policy in self._policies()]
        return min((seconds for seconds in found if seconds is not None), default=None)

    async def _tried(self, policy: Policy) -> float | None:
        try:
            again_in = await self._step(policy)
        except LeaseLostError:
            raise
        except (LehrError, ValueError) as error:
            if policy.id not in self._troubled:
                log.warning("a rollout waits; retrying", policy=policy.id, error=str(error))
            self._troubled.add(policy.id)
            if isinstance(error, ValueError):
                self._hold(policy.id)
            return _RETRY
        except Exception:
            log.exception("a step of a rollout failed; retrying", policy=policy.id)
            return _RETRY
        self._troubled.discard(policy.id)
        return again_in

    def _hold(self, policy: AssetId) -> None:
        """The target selection of a policy cannot be used."""
        known = self.figures.get(policy, RolloutFigures(policy=policy, state=RolloutState.HOLDING))
        self.figures[policy] = replace(known, state=RolloutState.HOLDING)

    async def _step(self, policy: Policy) -> float | None:
        """Steps of one policy, until there is nothing to write."""
        while True:
            governance = self._enforcer.governance
            if governance is None or policy not in governance.policies.items:
                return 0.0
            step, write = await self._decided(policy, governance)
            if write is None:
                self._measurements.follow(policy.id, step.rollout, step.seen.asks)
                return earliest(step.again_in, self._selections.ask(policy, step.question))
            [refused] = await self._committer.ask(write)
            if not isinstance(refused, Refused):
                # At once: whatever fails from here on, the time until this look never counts twice.
                self._measurements.forget(policy.id)
                if any(isinstance(fact, Looked) for fact in step.facts):
                    self._looked[policy.id] = step.rollout, self._runtime.clock.monotonic()
            await self._enforcer.releases_changed()
            if isinstance(refused, Refused):
                # Releases or policies have changed since: decide again.
                await self._runtime.clock.sleep(_SOON)

    async def _decided(self, policy: Policy, governance: Governance) -> tuple[Step, WriteReleases | None]:
        clock = self._runtime.clock
        began = clock.monotonic()
        try:
            return await self._runtime.reading.run(self.decide, policy, governance)
        finally:
            self._deciding += clock.monotonic() - began

    def decide(self, policy: Policy, governance: Governance) -> tuple[Step, WriteReleases | None]:
        """The next step of a policy, and the write that carries it out. Blocks.

        Raises:
            LehrError: the store cannot be read.
            ValueError: the target selection has no answer.
        """
        runtime = self._runtime
        self._courses.read(runtime.store.records, runtime.partition)
        course, now = self._courses.of(policy.id), runtime.clock.now()
        members = self._roster.taking_part(policy, course.running, governance, now)
        running = "" if course.running is None else course.running.id
        of, looked = self._looked.get(policy.id, ("", 0.0))
        step = plan(
            policy.payload,
            course,
            members,
            governance.sequence,
            now,
            since_look=runtime.clock.monotonic() - looked if of == running else None,
            new_id=runtime.chance.identifier(now),
            answer=self._selections.answer(policy.id),
            findings=self._measurements.findings(policy.id, running),
            verdicts=self._verdicts,
        )
        if not step.writes:
            self.figures[policy.id] = figures_of(policy.id, course, members, step)
            return step, None
        step = self._with_forecast(step, policy, course, governance, now)
        write = write_of(
            step,
            policy,
            governance,
            self._roster.content,
            runtime.partition,
            now,
            self._courses.seen,
            lambda: runtime.chance.identifier(now),
        )
        return step, write

    def _with_forecast(
        self,
        step: Step,
        policy: Policy,
        course: Course,
        governance: Governance,
        now: float,
    ) -> Step:
        """A step, with the forecast of its rollout: made at the first look, it delays no release."""
        looks = any(isinstance(fact, Looked) for fact in step.facts)
        if course.running is None or not looks or any(isinstance(fact, Ended) for fact in step.facts):
            return step
        members = partial(self._roster.members, policy, course.running, governance, now)
        found = self._forecasts.forecast(
            policy, course, members, self._courses.validated(policy.id), governance, now
        )
        return step if found is None else replace(step, facts=(*step.facts, found))
