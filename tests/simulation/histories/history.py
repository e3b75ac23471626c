"""One random history: intent, production, people and machines misbehave, and then leave it be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from lehr.base.errors import TransientError
from lehr.checks import CHECKS, TYPES
from lehr.enforce.step import RETRY
from lehr.model.asset import AssetId, AssetKey
from lehr.model.control import Control, ControlKind
from lehr.model.selector import Selector
from lehr.store import Store
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, Crash, Plane, registry
from tests.simulation.histories.capacity import Capacity
from tests.simulation.histories.dice import Dice
from tests.simulation.histories.intent import IDS, Intent
from tests.simulation.histories.production import (
    PASSING,
    PASSING_LOOKS,
    DiffFault,
    HostileWorld,
    PushFault,
    traits,
)
from tests.simulation.histories.verdict import judge
from tests.simulation.histories.witness import WatchedStore, Witness

NEVER = 1e7
"""A resync so long that every turn must come from an event."""


class Manners(msgspec.Struct, frozen=True):
    """How a history behaves, chosen by its seed.

    Attributes:
        gentle: nothing happens that only a person or the resync can notice or mend, so that
            everything must converge by events alone.
        resync: of the plugin, in seconds.
        jumps: the wall clock jumps.
        pushes: of the plugin, at once.
        steps: how many things happen.
    """

    gentle: bool
    resync: float
    jumps: bool
    pushes: int
    steps: int


def manners(dice: Dice) -> Manners:
    gentle = dice.happens(0.5)
    return Manners(
        gentle,
        NEVER if gentle else dice.pick((20.0, 60.0, 200.0)),
        not gentle and dice.happens(0.3),
        dice.pick((1, 2, 8)),
        dice.number(15, 60),
    )


class History:
    """Plays one history.

    Attributes:
        story: what happened, one line for each step, for whoever has to find out why.
        violations: of rules.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.story: list[str] = []
        self._dice = Dice(seed)
        self._folder = folder
        self.manners = manners(self._dice)
        self.witness = Witness(registry(TYPES))
        self.world = HostileWorld(self._dice, self.witness.begins)
        self.world.seconds = self._dice.pick((0.0, 1.0, 5.0))
        if self._dice.happens(0.4):  # so that much happens while turns look at production
            self.world.looking = {id: self._dice.seconds(0.0, 4.0) for id in IDS}
        self.intent = Intent(self._dice)
        self._planes = 0
        self._controls = 0
        self._offset = 0.0

    @property
    def violations(self) -> list[str]:
        return self.witness.violations

    def play(self) -> None:
        """Play it to its end, and judge what has become of everything."""
        run(self._main, seed=self.seed)

    async def _main(self) -> None:
        self.clock = VirtualClock()
        await self._begin()
        steps = self._steps()
        for _ in range(self.manners.steps):
            step = self._dice.pick(steps)
            await self._alive(step)
            await self._alive(lambda: self._pass(self._dice.pick((0.0, 0.1, 1.0, 5.0, 30.0))))
        await self._calm_down()
        await judge(self)
        await self.plane.kill()

    # --- processes -------------------------------------------------------------------

    async def _begin(self) -> None:
        """Start a control plane; keep trying while the store is out of order."""
        out_of_order = self._planes > 0 and self.store.out_of_order
        while True:
            self._planes += 1
            self.plane = Plane(
                self._folder,
                self.world,
                self.clock,
                checks=[*(check() for check in CHECKS), Capacity()],
                types=TYPES,
                traits=traits(self.manners.resync, self.manners.pushes),
                seed=self._dice.number(0, 1_000_000),
                wrap=self._watched,
            )
            self.store.out_of_order = out_of_order
            try:
                await self.plane.start()
                return
            except (Crash, TransientError):
                await self.plane.kill()
                await self.clock.sleep(1.0)
                out_of_order = out_of_order and self._dice.happens(0.7)

    def _watched(self, store: Store) -> Store:
        self.store = WatchedStore(store, self.witness)
        return self.store

    async def _alive(self, step: Callable[[], object]) -> None:
        """Take a step; if the control plane dies of it, start another."""
        try:
            done = step()
            if asyncio.iscoroutine(done):
                await done
        except TransientError:
            self._tell("refused: the store is out of order")
        except Crash:
            self._tell("died at a commit")
            await self._restart()

    async def _pass(self, seconds: float) -> None:
        """Let time pass. If the control plane dies meanwhile, it is noticed at once."""
        await self.plane.or_crash(self.clock.sleep(seconds))

    async def _restart(self) -> None:
        await self.plane.kill()
        if self._dice.happens(0.5):
            await self.clock.sleep(self._dice.seconds(0.0, 60.0))
        await self._begin()

    def _tell(self, what: str) -> None:
        self.story.append(f"{self.clock.monotonic():8.1f} {what}")

    # --- what happens -----------------------------------------------------------------

    def _steps(self) -> list[Callable[[], object]]:
        steps: list[Callable[[], object]] = [
            *[self._publish] * 5,
            *[self._push_fault] * 3,
            *[self._drift] * 3,
            self._diff_fault,
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
            self._kill,
            self._die_at_commit,
            self._slow_or_fast,
        ]
        if self.manners.jumps:
            steps.append(self._jump)
        return steps

    async def _publish(self) -> None:
        self.intent.change()
        await self._publish_intent()

    async def _publish_intent(self) -> None:
        assets = self.intent.assets()
        self._tell("publish " + ", ".join(f"{id}={spec}" for id, spec in self.intent.things.items()))
        self._tell("  governed by " + ", ".join(self.intent.governing))
        await self.plane.publish(*assets, tell=not self._dice.happens(0.1))

    def _push_fault(self) -> None:
        id, fault = (
            self._dice.pick(IDS),
            self._dice.pick(PASSING if self.manners.gentle else tuple(PushFault)),
        )
        self._tell(f"pushes of {id}: {fault}")
        self.world.push_faults[id] = fault

    def _diff_fault(self) -> None:
        faults = PASSING_LOOKS if self.manners.gentle else tuple(DiffFault)
        id, fault = self._dice.pick(IDS), self._dice.pick(faults)
        self._tell(f"diffs of {id}: {fault}")
        self.world.diff_faults[id] = fault

    def _mute(self) -> None:
        id = self._dice.pick(IDS)
        self._tell(f"{id} is mute")
        self.world.mute.add(id)

    def _heal(self) -> None:
        self._tell("production is healthy")
        self.world.heal()

    def _drift(self) -> None:
        """Somebody changes production by hand; the plugin may notice, or notice twice, or not."""
        id = self._dice.pick(IDS)
        if self._dice.happens(0.3):
            self.world.values.pop(id, None)
        elif id in self.world.values:
            self.world.values[id] = f"by hand {self._dice.number(0, 99)}"
        hints = 1 if self.manners.gentle else self._dice.number(0, 2)
        self._tell(f"drift of {id}, {hints} hints")
        for _ in range(hints):
            self._hint_at(id)

    def _hint(self) -> None:
        self._hint_at(self._dice.pick(IDS))

    def _hint_at(self, id: str) -> None:
        self.plane.plugin.hints.put_nowait(AssetKey(PARTITION, AssetId(id)))

    def _slow_or_fast(self) -> None:
        self.world.seconds = self._dice.pick((0.0, 1.0, 5.0, 18.0))

    def _retry(self) -> None:
        self.plane.enforcer.wake(AssetId(self._dice.pick(IDS)), RETRY)

    def _jump(self) -> None:
        seconds = self._dice.seconds(-300.0, 300.0)
        self._tell(f"the wall clock jumps by {seconds:g}")
        self._offset += seconds
        self.witness.jumped = True
        self.clock.jump(seconds)

    async def _set_control(self) -> None:
        kind = self._dice.pick((ControlKind.PAUSE, ControlKind.FREEZE, ControlKind.PIN, ControlKind.PIN))
        newest = max(self.witness.incarnations, default=0)
        if not newest:
            return
        expires = self.clock.now() + self._dice.seconds(5.0, 120.0) if self._dice.happens(0.5) else None
        await self._control(
            kind,
            Selector(all=True) if self._dice.happens(0.1) else Selector(ids=(self._dice.pick(IDS),)),
            expires_at=expires,
            incarnation=self._dice.number(1, newest) if kind is ControlKind.PIN else None,
        )

    async def _control(self, kind: ControlKind, selector: Selector, **fields: object) -> None:
        self._controls += 1
        control = Control(
            id=f"{self._controls:04}",
            kind=kind,
            partition=PARTITION,
            selector=selector,
            reason="because",
            actor="ana",
            at=self.clock.now(),
            **fields,  # type: ignore[arg-type]
        )
        self._tell(f"{kind} {control.id} of {selector}: {fields}")
        await self.plane.control(control)

    async def _lift_control(self) -> None:
        standing = sorted(self.witness.controls.values(), key=lambda item: item.id)
        if standing:
            await self._lift(self._dice.pick(standing))

    async def _lift(self, control: Control) -> None:
        self._tell(f"lift {control.kind} {control.id}")
        await self.plane.lift(control)

    async def _approve(self) -> None:
        """Approve what waits for it."""
        for id, decision in sorted(self.witness.decisions.items()):
            waits = decision.condition.reason in ("ApprovalNeeded", "ApprovalMissing")
            if waits and decision.diff is not None:
                expires = self.clock.now() + 60.0 if self._dice.happens(0.5) else None
                await self._control(
                    ControlKind.APPROVAL,
                    Selector(ids=(id,)),
                    expires_at=expires,
                    diff_digest=decision.diff.digest(),
                )

    def _store_trouble(self) -> None:
        self.store.out_of_order = not self.store.out_of_order
        self._tell(f"store out of order: {self.store.out_of_order}")

    async def _unreadable(self) -> None:
        seconds = self._dice.seconds(0.0, 3.0)
        self._tell(f"store unreadable for {seconds:g} s")
        store = self.store
        store.unreadable = True
        try:
            await self._pass(seconds)
        finally:
            store.unreadable = False

    async def _kill(self) -> None:
        self._tell("killed")
        raise Crash

    def _die_at_commit(self) -> None:
        self.store.dies = self._dice.pick(("before", "after"))
        self._tell(f"dies {self.store.dies} the next commit")

    # --- the quiet phase ---------------------------------------------------------------

    async def _calm_down(self) -> None:
        """No more faults, and a person who looks after what waits for one."""
        self._tell("--- all is well from here on")
        self.world.heal()
        self.world.seconds = 1.0
        self.clock.jump(-self._offset)
        self.store.out_of_order = False
        self.store.dies = None
        await self._alive(lambda: self._pass(5.0))
        self.intent.calm()
        await self._publish_intent()
        for control in sorted(self.witness.controls.values(), key=lambda item: item.id):
            if control.kind is not ControlKind.APPROVAL and control.expires_at is None:
                await self._lift(control)
        if not self.manners.gentle:
            for id in IDS:
                self.plane.enforcer.wake(AssetId(id), RETRY)
        rounds = 5
        for _ in range(rounds):
            await self.clock.sleep(self.quiet / rounds)
            await self._approve()
        await self.clock.sleep(60.0)
        await self.plane.committer.flush()

    @property
    def quiet(self) -> float:
        """Seconds after which everything must have converged."""
        if self.manners.gentle:
            return 1500.0  # nobody asks for a retry: the longest backoff has to pass
        return 400.0 + 3 * self.manners.resync + (600.0 if self.manners.jumps else 0.0)
