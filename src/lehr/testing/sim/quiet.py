"""The quiet phase of a random history: whatever can recover must come to rest."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.control.messages import Retry
from lehr.model.control import Control, ControlKind
from lehr.model.writes import RecordAttempt, Write
from lehr.testing.sim.faults import LASTING_PUSHES, LookFault
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.people import People
from lehr.testing.sim.scene import Scene
from lehr.testing.sim.verdict import judge

MOST_LOST = 2
"""Assets that may stay in trouble: fewer than the places of the limit that all share."""

_LIFTS = 3
"""How often people lift controls: the store may not have taken them up, and expired ones are refused."""

_LOOK_SECONDS = 17.0
_STAYS_SECONDS = 60.0
"""How long everything must stay as it should, once it is so."""


class Quiet:
    """No more faults in the healthy core, and people who look after what waits for one."""

    def __init__(self, scene: Scene, people: People) -> None:
        self._scene = scene
        self._people = people
        self._dice = scene.dice

    async def pass_by(self) -> None:
        """Let it be, until all is as it should be or must long have been."""
        scene, gentle = self._scene, self._scene.manners.gentle
        await self._heal()
        scene.intent.calm()
        renewed = not gentle and self._dice.happens(0.5)
        if renewed:
            scene.intent.renew(*scene.intent.things)
        if untold := self._dice.happens(0.3):
            self._publish_untold()
        scene.edit()  # and no look at it is requested: the source is followed
        await scene.alive(lambda: scene.process.pass_time(2.0))
        if untold:  # the next notification is not the next
            if self._dice.happens(0.5):
                scene.intent.take_back()
                renewed = False
            else:
                scene.intent.renew(self._dice.pick(list(scene.intent.things)))
            scene.edit()
            await scene.alive(lambda: scene.process.pass_time(2.0))
        for _ in range(_LIFTS):
            for control in self._standing():
                await self._people.lift(control)
        if not gentle:
            await self._retry(renewed)
        began = scene.clock.monotonic()
        while scene.clock.monotonic() < began + self._seconds:
            await scene.clock.sleep(_LOOK_SECONDS)
            await self._people.approve()
            if not judge(scene):
                break
        if not gentle:
            await self._drift_unseen()
        await scene.clock.sleep(_STAYS_SECONDS)
        scene.commits = 0.0  # or another turn begins while the last is written down
        await self._come_to_rest()

    @property
    def _seconds(self) -> float:
        """Seconds after which everything must have converged."""
        manners = self._scene.manners
        if manners.gentle:
            return 1500.0  # without a retry: the longest backoff has to pass
        return 400.0 + 3 * manners.resync + (600.0 if manners.jumps else 0.0)

    async def _heal(self) -> None:
        scene = self._scene
        self._choose_lost()
        said = ", ".join(sorted(scene.lost))
        scene.trace.note("phase", f"all is well from here on{f', but for {said}' if said else ''}")
        scene.production.heal(scene.lost)
        scene.production.seconds = 1.0
        scene.clock.jump(-scene.offset)
        for process in (*scene.aside, scene.process):
            process.store.out_of_order = False
            process.store.dies = None
        await scene.alive(lambda: scene.process.pass_time(5.0))

    def _standing(self) -> list[Control]:
        """Anything that would hold assets for ever."""
        jumps = self._scene.manners.jumps
        held = [item for item in self._scene.controls() if item.kind is not ControlKind.APPROVAL]
        return [item for item in held if item.expires_at is None or jumps]

    def _choose_lost(self) -> None:
        """Some assets may stay in trouble for ever: they must delay no other (I9)."""
        if self._dice.happens(0.5):
            return
        production = self._scene.production
        for _ in range(self._dice.number(1, MOST_LOST)):
            id = self._dice.pick(IDS)
            if self._dice.happens(0.5):
                production.push_faults[id] = self._dice.pick(LASTING_PUSHES)
            else:
                production.look_faults[id] = self._dice.pick(tuple(LookFault))
            self._scene.lost |= {id}

    async def _retry(self, renewed: bool) -> None:
        """A stalled asset gets a retry, or newer content, where possible."""
        scene = self._scene
        gone = [id for id in IDS if id not in scene.intent.things]
        self._hint_all()
        if self._dice.happens(0.5):
            await scene.clock.sleep(0.2)
        await scene.command(Retry(selector=",".join(gone or IDS) if renewed else "all"))
        self._hint_all()

    def _hint_all(self) -> None:
        """Before a retry and on its heels, which must not take its place."""
        for id in IDS:
            self._scene.process.hint(id)

    def _publish_untold(self) -> None:
        """The next publication is not announced, because the store fails just then."""
        self._scene.intent.renew(self._dice.pick(list(self._scene.intent.things)))
        store = self._scene.process.store

        def fails(writes: Sequence[Write]) -> bool:
            told = any(isinstance(write, RecordAttempt) for write in writes)
            if told:
                store.fails = lambda writes: False
            return told

        self._scene.trace.note("fault", "the store fails once, after the next publication")
        store.fails = fails

    async def _drift_unseen(self) -> None:
        """Production is changed, and not noticed before the resync."""
        scene = self._scene
        steady = [
            id
            for id, spec in scene.intent.things.items()
            if spec.turndown is None and not spec.destroys and id not in scene.lost
        ]
        if steady:
            id = self._dice.pick(steady)
            scene.trace.note("drift", f"{id} is changed by hand, and nobody notices")
            scene.production.put(id, "by hand, unseen")
            await scene.clock.sleep(scene.manners.resync + _STAYS_SECONDS)

    async def _come_to_rest(self) -> None:
        """A resync may be under way, and another begin while the last turns are written down."""
        process = self._scene.process
        for _ in range(100):
            if process.enforcer.at_rest:
                await process.plane.committer.flush()
                if process.enforcer.at_rest:
                    break
            await self._scene.clock.sleep(0.5)
