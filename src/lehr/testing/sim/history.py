"""One random history: intent, production, people and machines misbehave, and then leave it be.

In the first phase anything may happen, and every write and push is judged as it comes (safety). In the
second, faults stay only where they can harm nothing else, and everything else must come to rest
within a bounded time (liveness).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lehr.base.digest import Digest
from lehr.base.errors import LehrError, TransientError
from lehr.checks import CHECKS, TYPES
from lehr.control.messages import (
    AnyRequest,
    Approve,
    Controlling,
    Freeze,
    Lift,
    Pause,
    Pin,
    PruneHistory,
    Refresh,
    Retry,
)
from lehr.model.asset import AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.diff import Goal
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import Fencing, Traits
from lehr.store.writes import RecordAttempt, Write
from lehr.testing.sim import edits
from lehr.testing.sim.capacity import Capacity
from lehr.testing.sim.conduct import Conduct
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import (
    LASTING_PUSHES,
    PASSING_LOOKS,
    PASSING_PUSHES,
    LookFault,
    PushFault,
)
from lehr.testing.sim.intent import IDS, Intent
from lehr.testing.sim.process import Process, Site
from lehr.testing.sim.production import LOOK_TIMEOUT, PUSH_TIMEOUT, Production
from lehr.testing.sim.source import Repository, files
from lehr.testing.sim.things import THINGS
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.verdict import judge, whole
from lehr.testing.sim.witness import Witness
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, Crash, registry

NEVER = 1e7
"""A resync so long that every turn must come from an event."""

LEAST_EVENTS = 200
"""A history goes on until so much has happened; its quiet phase adds to that."""

MOST_LOST = 2
"""Assets that may stay in trouble: fewer than the places of the limit that all share."""

_LOOK_SECONDS = 17.0
_STAYS_SECONDS = 60.0
"""How long everything must stay as it should, once it is so."""

_LONGEST = 100_000.0
"""Seconds after which a history must be over."""

Step = Callable[[], object]


class Manners(msgspec.Struct, frozen=True):
    """How a history behaves, chosen by its seed.

    Attributes:
        gentle: nothing happens that only a person or the resync can notice or mend, so that
            everything must converge by events alone.
        resync: of the plugin, in seconds.
        jumps: the wall clock jumps.
        fencing: of the provider. Only where it keeps late writers out may two control planes be
            at work; elsewhere the lock of the state folder sees to it that there is one.
        pushes: of the plugin, at once.
        steps: how many things are done, at least.
    """

    gentle: bool
    resync: float
    jumps: bool
    fencing: Fencing
    pushes: int
    steps: int


def manners(dice: Dice) -> Manners:
    """How the history of these dice behaves."""
    gentle = dice.happens(0.5)
    return Manners(
        gentle,
        NEVER if gentle else dice.pick((20.0, 60.0, 200.0)),
        not gentle and dice.happens(0.3),
        dice.pick(tuple(Fencing)),
        dice.pick((1, 2, 8)),
        dice.number(20, 45),
    )


class History:
    """Plays one history.

    Attributes:
        trace: what happened, for whoever has to find out why.
        violations: of rules.
        lost: assets that stay in trouble in the quiet phase.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.trace = Trace()
        self.manners = manners(dice := Dice(seed))
        self._dice = dice
        known = registry(TYPES)
        self.witness = Witness(known, self.trace)
        self.witness.fenced = self.manners.fencing is Fencing.NATIVE
        self.production = Production((THINGS,), dice, self.trace, self.manners.fencing)
        self.production.begins = self.witness.begins
        self.production.seconds = dice.pick((0.0, 1.0, 5.0))
        if dice.happens(0.4):  # so that much happens while turns look at production
            self.production.looking = {id: dice.seconds(0.0, 4.0) for id in IDS}
        self.intent = Intent(dice, known, lambda id: self.witness.assets().get(id))
        self.repository = Repository(self.trace)
        self.aside: list[Process] = []
        self._folder = folder
        self.lost: frozenset[str] = frozenset()
        self.taken = 0
        self._seen: dict[str, Digest] = {}
        self._started = 0
        self._offset = 0.0

    @property
    def violations(self) -> list[str]:
        """Rules that were broken, one line each, with the rule's id."""
        return [*self.witness.violations, *self.production.broken]

    def play(self) -> None:
        """Play it to its end, and judge what has become of everything."""
        run(self._bounded, seed=self.seed)

    async def _bounded(self) -> None:
        async with asyncio.timeout(_LONGEST):
            await self._main()

    async def _main(self) -> None:
        self.clock = VirtualClock()
        self.conduct = Conduct(self.witness, self.production, registry(TYPES), self.clock)
        self.site = Site(
            self._folder,
            PARTITION,
            registry(TYPES),
            self._checks,
            Traits(
                fencing=self.manners.fencing,
                goals=frozenset({Goal.FENCED, Goal.ABSENT}),
                pushes=self.manners.pushes,
                turns=4,
                diff_timeout=LOOK_TIMEOUT,
                push_timeout=PUSH_TIMEOUT,
                resync=self.manners.resync,
            ),
            self.production,
            self.repository,
            self.clock,
            self.trace,
            self._committed,
            deposed=lambda name: self.witness.reached.update(("lease lost",)),
            poll=60.0,
        )
        self._edit()
        await self._begin()
        steps = self._steps()
        while self.taken < self.manners.steps or len(self.trace.events) < LEAST_EVENTS:
            self.taken += 1
            step = self._dice.pick(steps)
            await self._alive(step)
            await self._alive(lambda: self.process.pass_time(self._dice.pick((0.0, 0.1, 1.0, 5.0, 30.0))))
        await self._calm_down()
        self.witness.violations += [*judge(self), *whole(self)]
        for process in (*self.aside, self.process):
            await process.kill()

    def _checks(self) -> Sequence[CheckPlugin]:
        return [*(check() for check in CHECKS), Capacity()]

    def _committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        for write, answer in zip(writes, answers, strict=True):
            self.conduct.committed(write, answer)
            self.witness.committed([write], [answer])

    # --- processes -------------------------------------------------------------------

    async def _begin(self, *, out_of_order: bool = False) -> None:
        """Start a control plane; keep trying while the store is out of order."""
        while True:
            self._started += 1
            process = Process(self.site, f"process {self._started}", self._dice.number(0, 1_000_000))
            process.store.out_of_order = out_of_order
            try:
                await process.start()
                self.process = process
                return
            except Crash:
                await process.kill()
            except LehrError:
                pass  # it has ended by itself
            await self.clock.sleep(1.0)
            out_of_order = out_of_order and self._dice.happens(0.7)

    async def _alive(self, step: Step) -> None:
        """Take a step; if the control plane dies of it, start another."""
        try:
            done = step()
            if isinstance(done, Awaitable):
                await done
        except TransientError:
            self.trace.note("person", "refused: the store is out of order")
        except Crash:
            self.trace.note("process", f"{self.process.name} has died")
            await self._restart()

    async def _restart(self) -> None:
        out_of_order = self.process.store.out_of_order
        await self.process.kill()
        if self._dice.happens(0.5):
            await self.clock.sleep(self._dice.seconds(0.0, 60.0))
        await self._begin(out_of_order=out_of_order)

    # --- what happens -----------------------------------------------------------------

    def _steps(self) -> list[Step]:
        steps: list[Step] = [
            *[self._publish] * 5,
            *[self._push_fault] * 3,
            *[self._drift] * 3,
            self._drift_and_govern,
            self._edit_one_after_the_other,
            self._edit_one_after_the_other,
            self._look_fault,
            self._mute,
            self._heal,
            self._hint,
            self._set_control,
            self._set_control,
            self._lift_control,
            self._approve,
            self._retry,
            self._store_trouble,
            self._unreadable,
            self._lag,
            self._kill,
            self._die_at_commit,
            self._slow_or_fast,
            self._break_source,
            self._break_source,
            self._lose_source,
            self._dream,
            self._refresh,
            self._flaky_store,
            self._cut_off,
            self._hold,
            self._prune,
            self._prune,
        ]
        if self.manners.jumps:
            steps.append(self._jump)
        if not self.manners.gentle:
            steps.append(self._hide)
        if self.manners.fencing is Fencing.NATIVE:
            steps += [self._take_over] * 2
        return steps

    def _publish(self) -> None:
        self.intent.change()
        self._edit()

    def _edit(self) -> None:
        """Write what the intent is into the source."""
        contents = self.intent.files()
        self.witness.let_go |= self.intent.let_go
        declared = {str(asset.id): str(asset.digest) for asset in self.intent.assets()}
        self.witness.revisions[files(contents).revision.revision] = declared
        self.repository.telling = not self._dice.happens(0.1)
        said = "; ".join(f"{id}: {spec}" for id, spec in self.intent.things.items())
        self.repository.edit(contents, f"{said}; governed by {', '.join(self.intent.governing) or 'nothing'}")
        self.repository.telling = True

    async def _break_source(self) -> None:
        """Somebody's editor, disk or script leaves a source that nobody can have meant."""
        broken = self._dice.pick(edits.BROKEN)
        contents = broken(self.intent.files(), self._dice)
        revision = files(contents).revision.revision
        lost = self.intent.files().keys() - contents.keys()
        harmless = lost and not any(f"assets/{id}.json" in lost for id in self.intent.kept())
        harmless = harmless and broken is not edits.named_but_gone
        if revision in self.witness.revisions or harmless:
            return  # somebody may have meant that
        self.witness.revisions[revision] = None
        self.repository.edit(contents, f"the source is broken: {broken.__name__}")
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 20.0))
        finally:
            self._edit()

    async def _dream(self) -> None:
        """What an incremental build remembers is wrong: it asks for a turndown."""
        never = [id for id in sorted(self.intent.things) if not self.witness.was_turned_down(id)]
        if not never:
            return
        generation = self.process.generation
        generation.dreams = AssetId(self._dice.pick(never))
        self.trace.note("fault", f"the build dreams of a turndown of {generation.dreams}")
        self._publish()
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 5.0))
        finally:
            generation.dreams = None
            before = self.intent.files()
            while self.intent.files() == before:  # what was refused is not built again
                self.intent.change()
            self._edit()

    async def _refresh(self) -> None:
        """A person does not wait for the source to be looked at."""
        self._publish()
        await self._command(Refresh())

    async def _lose_source(self) -> None:
        self.trace.note("fault", "the source cannot be read")
        self.repository.unreadable = True
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 20.0))
        finally:
            self.repository.unreadable = False
            self.repository.tell()

    def _push_fault(self) -> None:
        id = self._dice.pick(IDS)
        fault = self._dice.pick(PASSING_PUSHES if self.manners.gentle else tuple(PushFault))
        self.trace.note("fault", f"pushes of {id}: {fault}")
        self.production.push_faults[id] = fault

    def _look_fault(self) -> None:
        id = self._dice.pick(IDS)
        fault = self._dice.pick(PASSING_LOOKS if self.manners.gentle else tuple(LookFault))
        self.trace.note("fault", f"looks at {id}: {fault}")
        self.production.look_faults[id] = fault

    def _mute(self) -> None:
        id = self._dice.pick(IDS)
        self.trace.note("fault", f"{id} is mute")
        self.production.mute.add(id)

    def _hide(self) -> None:
        id = self._dice.pick(IDS)
        self.trace.note("fault", f"changes of {id} show late")
        self.production.hidden[id] = self._dice.seconds(0.1, 3.0)

    def _heal(self) -> None:
        self.trace.note("fault", "production is healthy again")
        self.production.heal()

    async def _cut_off(self) -> None:
        """The network between control plane and production."""
        self.trace.note("fault", "production cannot be reached")
        self.production.unreachable = True
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 20.0))
        finally:
            self.production.unreachable = False

    def _drift(self) -> None:
        """Somebody changes production by hand; the plugin may notice, or notice twice, or not."""
        id = self._dice.pick(IDS)
        if self._dice.happens(0.3):
            self.production.take(id)
        elif id in self.production.values:
            self.production.put(id, f"by hand {self._dice.number(0, 99)}")
        hints = 1 if self.manners.gentle else self._dice.number(0, 2)
        self.trace.note("drift", f"{id} is changed by hand; {hints} hints")
        for _ in range(hints):
            self.process.hint(id)

    async def _edit_one_after_the_other(self) -> None:
        """An asset is edited, and while that is taken up, what it depends on."""
        pairs = [(id, ahead) for id, spec in self.intent.things.items() for ahead in sorted(spec.names())]
        if not pairs:
            return
        id, ahead = self._dice.pick(pairs)
        self.intent.renew(id)
        self._edit()
        await self.process.pass_time(self._dice.seconds(0.0, 5.0))
        self.intent.renew(ahead)
        self._edit()

    async def _drift_and_govern(self) -> None:
        """While assets are looked at, they are governed otherwise."""
        self._drift()
        await self.process.pass_time(self._dice.seconds(0.0, 3.0))
        self.intent.govern()
        self._edit()

    def _hint(self) -> None:
        self.process.hint(self._dice.pick(IDS))

    def _slow_or_fast(self) -> None:
        self.production.seconds = self._dice.pick((0.0, 1.0, 5.0, 18.0))

    def _jump(self) -> None:
        seconds = self._dice.seconds(-300.0, 300.0) * self._dice.pick((1, 1, 300))
        self.trace.note("fault", f"the wall clock jumps by {seconds:.0f} s")
        self._offset += seconds
        self.witness.jumped = True
        self.clock.jump(seconds)

    async def _prune(self) -> None:
        """Somebody has the past removed, as far as nothing under way can have begun in it."""
        keep, seconds = self._dice.number(1, 4), self._dice.seconds(45.0, 150.0)
        await self._command(PruneHistory(keep=keep, seconds=seconds))

    async def _retry(self) -> None:
        await self._command(Retry(selector=self._dice.pick(IDS)))

    async def _set_control(self) -> None:
        kind = self._dice.pick((Pause, Freeze, None, None))
        newest = max(self.witness.incarnations, default=0)
        if not newest:
            return
        seconds = self._dice.seconds(5.0, 120.0) if self._dice.happens(0.5) else None
        selector = "all" if self._dice.happens(0.1) else self._dice.pick(IDS)
        if (standing := self._standing()) and self._dice.happens(0.3):
            selector = str(self._dice.pick(standing).selector)  # a further word on the same
        if kind is None:
            incarnation = self._dice.number(1, newest)
            pinning = Pin(selector=selector, reason="because", seconds=seconds, incarnation=incarnation)
            await self._command(pinning)
        else:
            await self._command(kind(selector=selector, reason="because", seconds=seconds))

    async def _lift_control(self) -> None:
        standing = self._standing()
        if standing:
            await self._lift(self._dice.pick(standing))

    def _standing(self) -> list[Control]:
        return sorted(self.witness.controls.values(), key=lambda item: item.id)

    async def _lift(self, control: Control) -> None:
        await self._command(Lift(kind=str(control.kind), selector=str(control.selector)))

    async def _approve(self) -> None:
        """Approve what waits for it."""
        for id, decision in sorted(self.witness.decisions.items()):
            waits = decision.condition.reason in ("ApprovalNeeded", "ApprovalMissing")
            if waits and decision.diff is not None:
                seconds = 60.0 if self._dice.happens(0.5) else None
                seen = self._seen.get(id)
                digest = self._seen[id] = decision.diff.digest()
                if seen is not None and self._dice.happens(0.2):
                    digest = seen  # which somebody has looked at for too long
                await self._command(Approve(selector=id, reason="seen", seconds=seconds, diff_digest=digest))

    async def _command(self, request: AnyRequest) -> None:
        if isinstance(request, Retry):
            self.conduct.retried()
        answer = await self.process.command(request)
        if answer.ok and isinstance(request, Controlling):
            self.witness.promised(request, answer.content["id"])

    # --- what happens to processes and their store ----------------------------------------

    def _store_trouble(self) -> None:
        store = self.process.store
        store.out_of_order = not store.out_of_order
        self.trace.note("fault", f"the store is {'out of' if store.out_of_order else 'in'} order")

    async def _flaky_store(self) -> None:
        self.trace.note("fault", "now and then, a commit fails")
        store = self.process.store
        store.fails = lambda writes: self._dice.happens(0.4)
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 20.0))
        finally:
            store.fails = lambda writes: False

    async def _unreadable(self) -> None:
        self.trace.note("fault", "the store cannot be read")
        store = self.process.store
        store.unreadable = True
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 3.0))
        finally:
            store.unreadable = False

    async def _lag(self) -> None:
        self.trace.note("fault", "what is read of the store lags behind")
        store = self.process.store
        store.lag()
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 10.0))
        finally:
            store.catch_up()

    def _kill(self) -> None:
        self.trace.note("fault", f"{self.process.name} is killed")
        raise Crash

    def _die_at_commit(self) -> None:
        self.process.store.dies = self._dice.pick(("before", "within", "after"))
        self.trace.note("fault", f"{self.process.name} dies {self.process.store.dies} its next commit")

    async def _hold(self) -> None:
        """Stop the process for a time."""
        self.process.hold()
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 40.0))
        finally:
            self.process.release()

    async def _take_over(self) -> None:
        """The process is stopped and thought dead; when it goes on, another one has taken over."""
        late = self.process
        late.hold()
        await self._begin(out_of_order=late.store.out_of_order)
        self.aside.append(late)
        try:
            await self.process.pass_time(self._dice.seconds(0.0, 20.0))
        finally:
            late.store.out_of_order = False  # or it would not find out for as long as that lasts
            late.release()

    # --- the quiet phase ---------------------------------------------------------------

    async def _calm_down(self) -> None:
        """No more faults in the healthy core, and a person who looks after what waits for one."""
        self._choose_lost()
        said = ", ".join(sorted(self.lost))
        self.trace.note("phase", f"all is well from here on{f', but for {said}' if said else ''}")
        self.production.heal(self.lost)
        self.production.seconds = 1.0
        self.clock.jump(-self._offset)
        for process in (*self.aside, self.process):
            process.store.out_of_order = False
            process.store.dies = None
        await self._alive(lambda: self.process.pass_time(5.0))
        self.intent.calm()
        renewed = not self.manners.gentle and self._dice.happens(0.5)
        if renewed:
            self.intent.renew(*self.intent.things)
        if self._dice.happens(0.3):
            self._publish_untold()
        self._edit()  # and nobody asks for it to be looked at: the source is followed
        await self._alive(lambda: self.process.pass_time(2.0))
        for control in self._standing():
            ends = control.expires_at is not None and not self.manners.jumps
            if control.kind is not ControlKind.APPROVAL and not ends:
                await self._lift(control)
        if not self.manners.gentle:
            gone = [id for id in IDS if id not in self.intent.things]
            # What has stalled gets a retry, or newer content, where there can be any.
            await self._command(Retry(selector=",".join(gone or IDS) if renewed else "all"))
            for id in IDS:  # and hints on its heels, which must not take its place
                self.process.hint(id)
        began = self.clock.monotonic()
        while self.clock.monotonic() < began + self.quiet:
            await self.clock.sleep(_LOOK_SECONDS)
            await self._approve()
            if not judge(self):
                break
        if not self.manners.gentle:
            await self._drift_unseen()
        await self.clock.sleep(_STAYS_SECONDS)
        await self._come_to_rest()
        await self.process.plane.committer.flush()

    def _publish_untold(self) -> None:
        """What is published next cannot be said to be, for the store fails just then."""
        store = self.process.store

        def fails(writes: Sequence[Write]) -> bool:
            told = any(isinstance(write, RecordAttempt) for write in writes)
            if told:
                store.fails = lambda writes: False
            return told

        self.trace.note("fault", "the store fails once, after the next publication")
        store.fails = fails

    async def _drift_unseen(self) -> None:
        """Production is changed, and nobody notices before the resync."""
        steady = [
            id
            for id, spec in self.intent.things.items()
            if spec.turndown is None and not spec.destroys and id not in self.lost
        ]
        if steady:
            id = self._dice.pick(steady)
            self.trace.note("drift", f"{id} is changed by hand, and nobody notices")
            self.production.put(id, "by hand, unseen")
            await self.clock.sleep(self.manners.resync + _STAYS_SECONDS)

    def _choose_lost(self) -> None:
        """Some assets may stay in trouble for ever: they must delay no other (I9)."""
        if self._dice.happens(0.5):
            return
        for _ in range(self._dice.number(1, MOST_LOST)):
            id = self._dice.pick(IDS)
            if self._dice.happens(0.5):
                self.production.push_faults[id] = self._dice.pick(LASTING_PUSHES)
            else:
                self.production.look_faults[id] = self._dice.pick(tuple(LookFault))
            self.lost |= {id}

    async def _come_to_rest(self) -> None:
        """A resync may be under way."""
        for _ in range(100):
            if self.process.enforcer.at_rest:
                break
            await self.clock.sleep(0.5)

    @property
    def quiet(self) -> float:
        """Seconds after which everything must have converged."""
        if self.manners.gentle:
            return 1500.0  # nobody asks for a retry: the longest backoff has to pass
        return 400.0 + 3 * self.manners.resync + (600.0 if self.manners.jumps else 0.0)
