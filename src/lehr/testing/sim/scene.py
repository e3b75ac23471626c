"""Everything in a random history, and the control plane at work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from lehr.base.errors import LehrError, TransientError
from lehr.checks import CHECKS, TYPES
from lehr.control.messages import AnyRequest, Controlling, Lift, Retry
from lehr.model.control import Control
from lehr.model.diff import Goal
from lehr.model.selector import parse_selector
from lehr.model.writes import Write
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import Fencing, Traits
from lehr.testing.sim.capacity import Capacity
from lehr.testing.sim.conduct import Conduct
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import GARBLED
from lehr.testing.sim.intent import GUARDED, IDS, UNGUARDED, Intent
from lehr.testing.sim.manners import manners
from lehr.testing.sim.process import Process, Site
from lehr.testing.sim.production import LOOK_TIMEOUT, PUSH_TIMEOUT, Production
from lehr.testing.sim.source import Repository, files
from lehr.testing.sim.things import THINGS
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.witness import Witness
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, Crash, registry

Step = Callable[[], object]
"""One event; its result is awaited if possible."""


class Scene:
    """The setting of a history.

    Use: make it, and within the virtual loop `open` it, before anything else.

    Attributes:
        trace: what happened, for debugging.
        process: the newest control plane; aside: those in whose place another one has come.
        lost: assets that stay in trouble in the quiet phase.
        offset: seconds by which the wall clock was moved.
        commits, looks: seconds that a commit, or a look at the source, takes at most.
    """

    process: Process

    def __init__(self, seed: int, folder: Path) -> None:
        """The scene of the history of `seed`, which keeps its state in `folder`."""
        self.trace = Trace()
        self.dice = dice = Dice(seed)
        self.manners = manners(dice)
        self.commits, self.looks = self.manners.commits, self.manners.looks
        known = registry(TYPES)
        self.witness = Witness(known, self.trace)
        self.witness.fenced = self.manners.fencing is Fencing.NATIVE
        self.production = Production((THINGS,), dice, self.trace, self.manners.fencing)
        self.production.begins = self.witness.begins
        self.production.seconds = dice.pick((0.0, 1.0, 5.0))
        if dice.happens(0.4):  # so that much happens while turns look at production
            self.production.look_slowly(IDS, 4.0)
        self.intent = Intent(dice, known, lambda id: self.witness.assets().get(id))
        self.intent.guard = GUARDED if self.manners.guarded else UNGUARDED
        self.repository = Repository(self.trace)
        self.production.garble = self.repository.garble = GARBLED
        self.aside: list[Process] = []
        self.lost: frozenset[str] = frozenset()
        self.offset = 0.0
        self._folder = folder
        self._started = 0

    async def open(self) -> None:
        """Begin: a source is written, and a control plane started."""
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
            commits=lambda: self._delays(self.commits),
            looks=lambda: self._delays(self.looks),
        )
        self.intent.governing.now = self.clock.now
        self.edit()
        await self.begin()

    def _delays(self, most: float) -> tuple[float, float]:
        return (self.dice.seconds(0.0, most / 2), self.dice.seconds(0.0, most / 2)) if most else (0.0, 0.0)

    async def close(self) -> None:
        """End every control plane."""
        for process in (*self.aside, self.process):
            await process.kill()

    def _checks(self) -> Sequence[CheckPlugin]:
        return [*(check() for check in CHECKS), Capacity()]

    def _committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        for write, answer in zip(writes, answers, strict=True):
            self.conduct.committed(write, answer)
            self.witness.committed([write], [answer])

    # --- the control plane -------------------------------------------------------------

    async def begin(self, *, out_of_order: bool = False) -> None:
        """Start a control plane; keep trying while the store is out of order."""
        while True:
            self._started += 1
            process = Process(self.site, f"process {self._started}", self.dice.number(0, 1_000_000))
            process.store.out_of_order = out_of_order
            try:
                await process.start()
                self.process = process
                return
            except Crash:
                await process.kill()
            except LehrError:
                pass  # it has ended on its own
            await self.clock.sleep(1.0)
            out_of_order = out_of_order and self.dice.happens(0.7)

    async def alive(self, step: Step) -> None:
        """Take a step; if the control plane dies of it, start another."""
        try:
            done = step()
            if isinstance(done, Awaitable):
                await done
        except TransientError:
            self.trace.note("person", "refused: the store is out of order")
        except Crash:
            self.trace.note("process", f"{self.process.name} has died")
            await self.restart()

    async def restart(self) -> None:
        """The control plane is gone; another one begins, immediately or some time later."""
        out_of_order = self.process.store.out_of_order
        await self.process.kill()
        if self.dice.happens(0.5):
            await self.clock.sleep(self.dice.seconds(0.0, 60.0))
        await self.begin(out_of_order=out_of_order)

    async def pass_time(self, low: float, high: float) -> None:
        """Let between `low` and `high` seconds pass.

        Raises:
            Crash: the control plane died in between.
        """
        await self.process.pass_time(self.dice.seconds(low, high))

    # --- what many do ------------------------------------------------------------------

    def edit(self) -> None:
        """Write the intent into the source."""
        if self.intent.guard is not UNGUARDED and self.witness.incarnations:
            newest = max(self.witness.incarnations)
            self.intent.acknowledged = self.dice.pick((None, newest, newest, max(1, newest - 1)))
        self.intent.remember()
        contents = self.intent.files()
        self.witness.let_go |= self.intent.let_go
        declared = {str(asset.id): str(asset.digest) for asset in self.intent.assets()}
        revision = files(contents).revision.revision
        self.witness.revisions[revision] = declared
        self.witness.guards[revision] = (
            None if self.intent.guard is UNGUARDED else self.intent.acknowledged or 0
        )
        self.repository.telling = not self.dice.happens(0.1)
        said = "; ".join(f"{id}: {spec}" for id, spec in self.intent.things.items())
        self.repository.edit(
            contents, f"{said}; governed by {', '.join(self.intent.governing.assets) or 'nothing'}"
        )
        self.repository.telling = True

    def publish(self) -> None:
        """The source is edited."""
        self.intent.change()
        self.edit()

    async def command(self, request: AnyRequest) -> None:
        """A person gives a command to the control plane."""
        if isinstance(request, Retry):
            self.conduct.retried()
        began = self.clock.now()
        before = self.controls()
        answer = await self.process.command(request)
        if answer.ok and isinstance(request, Lift):
            self.witness.lifted(request, before, began)
        if answer.ok and isinstance(request, Controlling):
            self.witness.promised(request, answer.content["id"])
        if answer.ok and isinstance(request, Retry):
            asked = parse_selector(request.selector)
            for id in IDS:
                last = self.witness.last(id)
                if last is not None and asked.matches(last):
                    self.conduct.asked_again[id] = began

    def controls(self) -> list[Control]:
        """Controls that people have set and not lifted, in this order."""
        return list(self.witness.controls.values())
