"""Faults in a random history: production, source, store, network, clocks and processes."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.control.messages import Pin
from lehr.model.reason import Reason
from lehr.model.writes import Publish, Write
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import PASSING_LOOKS, PASSING_PUSHES, LookFault, PushFault
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.lull import Lull
from lehr.testing.sim.people import People
from lehr.testing.sim.scene import Scene, Step
from lehr.testing.world import Crash


class Trouble:
    """Trouble, on a scene."""

    def __init__(self, scene: Scene, people: People, lull: Lull) -> None:
        self._scene = scene
        self._people = people
        self._lull = lull
        self._dice = scene.dice
        self._gentle = scene.manners.gentle

    def steps(self) -> Sequence[Step]:
        """Everything that may go wrong, each as often as it is likely."""
        steps: list[Step] = [
            *[self._push_fault] * 3,
            *[self._drift] * 3,
            self._drift_and_govern,
            self._look_fault,
            self._blind,
            self._mute,
            self._heal,
            self._hint,
            self._break_watch,
            self._slow_or_fast,
            self._cut_off,
            self._lose_source,
            self._store_trouble,
            self._flaky_store,
            self._unreadable,
            self._misread,
            self._fail_publication,
            self._lag,
            self._kill,
            self._kill_in_a_turndown,
            self._kill_twice_in_a_push,
            self._die_at_commit,
            self._hold,
        ]
        manners = self._scene.manners
        if manners.jumps:
            steps += [self._jump, self._contradict]
        if not manners.gentle:
            steps.append(self._hide)
        if manners.fencing is Fencing.NATIVE:
            steps += [self._take_over] * 2
        return steps

    def _note(self, text: str) -> None:
        self._scene.trace.note("fault", text)

    # --- production ----------------------------------------------------------------------

    def _push_fault(self) -> None:
        id = self._dice.pick(IDS)
        fault = self._dice.pick(PASSING_PUSHES if self._gentle else tuple(PushFault))
        self._note(f"pushes of {id}: {fault}")
        self._scene.production.push_faults[id] = fault

    def _look_fault(self) -> None:
        id = self._dice.pick(IDS)
        fault = self._dice.pick(PASSING_LOOKS if self._gentle else tuple(LookFault))
        self._note(f"looks at {id}: {fault}")
        self._scene.production.look_faults[id] = fault

    async def _blind(self) -> None:
        """An asset is reached through another one, which is then taken away."""
        things = self._scene.intent.things
        pairs = [(id, ahead) for id, spec in things.items() for ahead in sorted(spec.names())]
        if not pairs:
            return
        id, ahead = self._dice.pick(pairs)
        production = self._scene.production
        self._note(f"{id} is reached through {ahead}, which is taken away")
        production.blind[id] = ahead
        production.take(ahead)
        self._scene.process.hint(id)
        await self._scene.pass_time(0.0, 60.0)
        self._scene.process.hint(ahead)
        await self._lull.pass_by()

    def _mute(self) -> None:
        id = self._dice.pick(IDS)
        self._note(f"{id} is mute")
        self._scene.production.mute.add(id)

    def _hide(self) -> None:
        id = self._dice.pick(IDS)
        self._note(f"changes of {id} show late")
        self._scene.production.hidden[id] = self._dice.seconds(0.1, 3.0)

    def _heal(self) -> None:
        self._note("production is healthy again")
        self._scene.production.heal()

    async def _cut_off(self) -> None:
        """The network between control plane and production."""
        self._note("production cannot be reached")
        self._scene.production.unreachable = True
        try:
            await self._scene.pass_time(0.0, 20.0)
        finally:
            self._scene.production.unreachable = False

    def _drift(self) -> None:
        """Production is changed by hand; the plugin may notice, or notice twice, or not."""
        scene, id = self._scene, self._dice.pick(IDS)
        if self._dice.happens(0.3):
            scene.production.take(id)
        elif id in scene.production.values:
            by_hand = [f"by hand {self._dice.number(0, 99)}", str(self._dice.number(0, 99))]
            if "?" not in scene.production.values.values():
                by_hand.append("?")  # of two that cannot be measured, neither may go first
            scene.production.put(id, self._dice.pick(by_hand))
        hints = 1 if self._gentle else self._dice.number(0, 2)
        scene.trace.note("drift", f"{id} is changed by hand; {hints} hints")
        for _ in range(hints):
            scene.process.hint(id)

    async def _drift_and_govern(self) -> None:
        """While assets are looked at, they are governed otherwise."""
        self._drift()
        await self._scene.pass_time(0.0, 3.0)
        self._scene.intent.govern()
        self._scene.edit()

    def _hint(self) -> None:
        self._scene.process.hint(self._dice.pick(IDS))

    def _break_watch(self) -> None:
        self._note("the watch of production breaks")
        self._scene.process.break_watch()

    def _slow_or_fast(self) -> None:
        production = self._scene.production
        production.seconds = self._dice.pick((0.0, 1.0, 5.0, 18.0))
        if self._dice.happens(0.5):
            production.look_slowly(IDS, self._dice.pick((0.0, 4.0)))

    # --- source, store and clocks --------------------------------------------------------

    async def _lose_source(self) -> None:
        self._note("the source cannot be read")
        self._scene.repository.unreadable = True
        try:
            await self._scene.pass_time(0.0, 20.0)
        finally:
            self._scene.repository.unreadable = False
            self._scene.repository.tell()

    def _store_trouble(self) -> None:
        store = self._scene.process.store
        store.out_of_order = not store.out_of_order
        self._note(f"the store is {'out of' if store.out_of_order else 'in'} order")

    async def _flaky_store(self) -> None:
        self._note("now and then, a commit fails")
        store = self._scene.process.store
        store.fails = lambda writes: self._dice.happens(0.4)
        if self._dice.happens(0.5):
            store.gets_to = lambda: self._dice.number(0, 12)
        try:
            await self._scene.pass_time(0.0, 20.0)
        finally:
            store.fails = lambda writes: False
            store.gets_to = lambda: None

    async def _fail_publication(self) -> None:
        """The next publication fails when all of it has been carried out; then it is another one."""
        self._note("the next publication cannot be written")
        store = self._scene.process.store

        def fails(writes: Sequence[Write]) -> bool:
            publishes = any(isinstance(write, Publish) for write in writes)
            if publishes:
                store.fails = lambda writes: False
            return publishes

        statements = self._dice.number(8, 26)
        store.fails, store.gets_to = fails, lambda: statements
        self._scene.publish()
        try:
            await self._scene.pass_time(0.0, 5.0)
        finally:
            store.fails, store.gets_to = lambda writes: False, lambda: None
            if self._dice.happens(0.5):
                self._scene.intent.take_back()
                self._scene.intent.renew(self._dice.pick(list(self._scene.intent.things)))
                self._scene.edit()
            else:
                self._scene.publish()

    async def _misread(self) -> None:
        self._note("now and then, a read of the store fails")
        store = self._scene.process.store
        probability = self._dice.pick((0.02, 0.1, 0.3))
        named = [id for id, spec in self._scene.intent.things.items() for id in sorted(spec.names())]
        if named and self._dice.happens(0.5):
            self._scene.intent.turn_down(self._dice.pick(named))
            self._scene.edit()
        store.misreads = lambda: self._dice.happens(probability)
        try:
            await self._scene.pass_time(0.0, 20.0)
        finally:
            store.misreads = lambda: False

    async def _unreadable(self) -> None:
        self._note("the store cannot be read")
        store = self._scene.process.store
        store.unreadable = True
        try:
            await self._scene.pass_time(0.0, 3.0)
        finally:
            store.unreadable = False

    async def _lag(self) -> None:
        self._note("what is read of the store lags behind")
        store = self._scene.process.store
        store.lag()
        try:
            if self._dice.happens(0.5):
                await self._people.set_control()
            await self._scene.pass_time(0.0, 10.0)
        finally:
            store.catch_up()

    def _jump(self) -> None:
        seconds = self._dice.seconds(-300.0, 300.0) * self._dice.pick((1, 1, 300))
        self._note(f"the wall clock jumps by {seconds:.0f} s")
        self._scene.offset += seconds
        self._scene.witness.jumped = True
        self._scene.clock.jump(seconds)

    async def _contradict(self) -> None:
        """A person changes their mind about a pin after the clock went back: the last word counts."""
        scene = self._scene
        newest = max(scene.witness.incarnations, default=0)
        if newest < 2:
            return
        id = self._dice.pick(IDS)
        first, last = self._dice.number(1, newest - 1), newest
        if self._dice.happens(0.5):
            first, last = last, first
        await scene.command(Pin(selector=id, reason="because", seconds=None, incarnation=first))
        self._note("the wall clock goes back")
        scene.offset -= 200.0
        scene.witness.jumped = True
        scene.clock.jump(-200.0)
        await scene.command(Pin(selector=id, reason="on second thought", seconds=None, incarnation=last))

    # --- processes -----------------------------------------------------------------------

    def _kill(self) -> None:
        self._note(f"{self._scene.process.name} is killed")
        raise Crash

    async def _kill_in_a_turndown(self) -> None:
        """Whatever the progress of a turndown, it continues in time when the process is another one."""
        stages = (Reason.TURNDOWN_STANDS, Reason.PUSHING, Reason.STILL_REFERENCED)
        leaving = [
            id
            for id, decision in self._scene.witness.decisions.items()
            if decision.condition.reason in stages
            and (last := self._scene.witness.last(id)) is not None
            and self._scene.witness.turndown(last) is not None
        ]
        if not leaving:
            return
        for _ in range(self._dice.number(1, 3)):
            self._note(f"{self._scene.process.name} is killed in a turndown")
            await self._scene.restart()
            await self._scene.pass_time(0.0, 15.0)
        await self._lull.pass_by()

    async def _kill_twice_in_a_push(self) -> None:
        """The end of a push is unknown, and two processes find that out, one after the other."""
        production = self._scene.production
        running = sorted(operation.asset for operation in production.running.values())
        if not running:
            return
        id = self._dice.pick(running)
        production.mute.add(id)
        try:
            for _ in range(2):
                self._note(f"{self._scene.process.name} is killed in a push of {id}")
                await self._scene.restart()
                await self._scene.pass_time(0.0, 10.0)
        finally:
            production.mute.discard(id)
        await self._lull.pass_by()

    def _die_at_commit(self) -> None:
        process = self._scene.process
        process.store.dies = self._dice.pick(("before", "within", "after"))
        self._note(f"{process.name} dies {process.store.dies} its next commit")

    async def _hold(self) -> None:
        """Stop the process for a time."""
        process = self._scene.process
        process.hold()
        try:
            await self._scene.pass_time(0.0, 40.0)
        finally:
            process.release()

    async def _take_over(self) -> None:
        """The process is stopped and thought dead; when it continues, another one has taken over."""
        late = self._scene.process
        late.hold()
        await self._scene.begin(out_of_order=late.store.out_of_order)
        self._scene.aside.append(late)
        try:
            await self._scene.pass_time(0.0, 20.0)
        finally:
            late.store.out_of_order = False  # or it would not find out for as long as that lasts
            late.release()
