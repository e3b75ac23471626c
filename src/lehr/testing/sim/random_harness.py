"""Everything in a random history, and the control plane at work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.base.errors import TransientError
from lehr.checks import TYPES
from lehr.control.messages import AnyRequest, Controlling, Lift, Refresh, Retry
from lehr.model.control import Control
from lehr.model.reason import Reason
from lehr.model.selector import parse_selector
from lehr.model.writes import Write
from lehr.sdk.check import CheckPlugin
from lehr.testing.sim.capacity import Capacity
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import GARBLED
from lehr.testing.sim.harness import Harness
from lehr.testing.sim.intent import GUARDED, IDS, UNGUARDED, Intent
from lehr.testing.sim.liveness import LivenessChecker
from lehr.testing.sim.monitor_judge import MonitorJudge
from lehr.testing.sim.pace import Pace
from lehr.testing.sim.production import TRAITS
from lehr.testing.sim.profile import profile
from lehr.testing.sim.source import files
from lehr.testing.sim.standstill import complaints
from lehr.testing.sim.things import THINGS
from lehr.testing.world import PARTITION, Crash, registry

Step = Callable[["RandomHarness"], object]
"""One event; its result is awaited if possible."""

_LONG_SECONDS = 30.0
"""After so long, whatever is wrong has been forgotten: no queue and no wait of a moment lasts so long."""


class RandomHarness(Harness):
    """The setting of a history.

    Use: make it, and within the virtual loop `open` it, before anything else.

    Attributes:
        seed: determines everything that happens.
        pace: of the store.
        offset: seconds by which the wall clock was moved.
        seen: the last diff of each asset that a person has looked at.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        """The harness of the history of `seed`, which keeps its state in `folder`."""
        self.seed, dice = seed, Dice(seed)
        self.profile = chosen = profile(dice)
        self.commits, self.looks = chosen.commits, chosen.looks
        self.pace = Pace(seed)
        traits = replace(TRAITS, fencing=chosen.fencing, pushes=chosen.pushes, turns=4, resync=chosen.resync)
        super().__init__(folder, PARTITION, registry(TYPES), traits, (THINGS,), dice)
        self.production.naming = self.pace.naming
        self.production.connecting = self.pace.connecting
        self.production.seconds = dice.pick((0.0, 1.0, 5.0))
        if dice.happens(0.4):  # so that much happens while turns look at production
            self.production.look_slowly(IDS, 4.0)
        self.intent = Intent(dice, self.registry, lambda id: self.witness.assets().get(id))
        self.intent.guard = GUARDED if chosen.guarded else UNGUARDED
        self.production.garble = self.repository.garble = GARBLED
        given = lambda: [process.metrics.given for process in self.processes]  # noqa: E731
        self.witness.admissions.monitors = MonitorJudge(given, lambda: self.clock.monotonic())
        self.offset = 0.0
        self.seen: dict[str, Digest] = {}

    async def open(self) -> None:
        """Begin: a source is written, and a control plane started."""
        self.liveness = LivenessChecker(self.witness, self.production, self.registry, self.clock)
        self.intent.governing.now = self.clock.now
        self.edit()
        await self.begin()

    def checks(self) -> Sequence[CheckPlugin]:
        """As `Harness.checks`, and one that limits pushes."""
        return [*super().checks(), Capacity()]

    def read_delays(self) -> tuple[float, float]:
        """As `Harness.read_delays`."""
        return self.pace.delays()

    def hang(self) -> float:
        """As `Harness.hang`."""
        return self.pace.hang(self.clock.monotonic())

    def deposed(self) -> None:
        """As `Harness.deposed`."""
        self.witness.reached.update(("lease lost",))

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """As `Harness.committed`."""
        for write, answer in zip(writes, answers, strict=True):
            self.liveness.committed(write, answer)
            self.witness.committed([write], [answer])

    def broken(self) -> bool:
        """Whether a rule was broken."""
        return bool(self.witness.violations or self.production.broken)

    # --- the control plane -------------------------------------------------------------

    async def begin(self, *, out_of_order: bool = False) -> None:
        """Start a control plane; keep trying while the store is out of order."""
        while True:
            process = self.add_process(self.dice.number(0, 1_000_000))
            process.store.out_of_order = out_of_order
            if await self.try_start(process):
                return
            await self.clock.sleep(1.0)
            out_of_order = out_of_order and self.dice.happens(0.7)

    async def alive(self, step: Step) -> None:
        """Take a step; if the control plane dies of it, start another."""
        try:
            done = step(self)
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

    async def store_answers(self) -> None:
        """Let time pass until the store answers, and let it not hang again for a while."""
        seconds = self.hang()
        if seconds:
            await self.pass_time(seconds, seconds)
        self.pace.cancel_hangs_soon_after(self.clock.monotonic())

    async def quiet_period(self) -> None:
        """Let nothing happen, with all faults as they are, and find assets that are stuck."""
        process = self.process
        if self.profile.jumps:
            return  # then the end of things cannot be seen from outside
        process.store.out_of_order = False
        await self.store_answers()
        self.trace.note("phase", "nothing happens for a while")
        await self.pass_time(5.0, 20.0)
        found = complaints(self)
        if found:
            await process.pass_time(_LONG_SECONDS)
            self.witness.violations += sorted(found & complaints(self))

    # --- what many do ------------------------------------------------------------------

    def fault(self, text: str) -> None:
        """Note that something goes wrong from now on."""
        self.trace.note("fault", text)

    async def kill(self, when: str = "") -> None:
        """Kill the control plane; another one begins."""
        self.fault(f"{self.process.name} is killed{when}")
        await self.restart()

    def jump(self, seconds: float) -> None:
        """Move the wall clock."""
        self.offset += seconds
        self.witness.jumped = True
        self.clock.jump(seconds)

    def change_by_hand(self, id: str, value: str = "by hand") -> None:
        """A person changes production, and the plugin notices."""
        self.trace.note("drift", f"{id} is changed by hand")
        self.production.put(id, value)
        self.process.hint(id)

    def hint_all(self) -> None:
        """The plugin reports that anything may have changed."""
        for id in IDS:
            self.process.hint(id)

    def renew(self, *ids: str) -> None:
        """Give the things `ids` other values, and write that into the source."""
        self.intent.renew(*ids)
        self.edit()

    def edit(self) -> None:
        """Write the intent into the source."""
        if self.intent.guard is not UNGUARDED and self.witness.incarnations:
            newest = max(self.witness.incarnations)
            self.intent.acknowledged = self.dice.pick((None, newest, newest, max(1, newest - 1)))
        self.intent.remember()
        contents = self.intent.files()
        self.witness.publications.let_go |= self.intent.let_go
        declared = {str(asset.id): str(asset.digest) for asset in self.intent.assets()}
        revision = files(contents).revision.revision
        self.witness.publications.revisions[revision] = declared
        self.witness.publications.guards[revision] = (
            None if self.intent.guard is UNGUARDED else self.intent.acknowledged or 0
        )
        self.repository.announcing = not self.dice.happens(0.1)
        described = "; ".join(f"{id}: {spec}" for id, spec in self.intent.things.items())
        self.repository.edit(
            contents, f"{described}; governed by {', '.join(self.intent.governing.assets) or 'nothing'}"
        )
        self.repository.announcing = True

    def publish(self) -> None:
        """The source is edited."""
        self.intent.change()
        self.edit()

    async def command(self, request: AnyRequest) -> None:
        """A person gives a command to the control plane."""
        if isinstance(request, Retry):
            self.liveness.retries.pardon()
        began, edits = self.clock.now(), len(self.repository.past)
        before = self.controls()
        answer = await self.process.command(request)
        if answer.ok and isinstance(request, Lift):
            self.witness.promises.lifted(request, before, began)
        if answer.ok and isinstance(request, Refresh):
            self.witness.promises.refreshed(answer.content["sources"], self.repository.past[edits - 1 :])
        if answer.ok and isinstance(request, Controlling):
            self.witness.promises.promised(request, answer.content["id"])
        if answer.ok and isinstance(request, Retry):
            asked = parse_selector(request.selector)
            for id in IDS:
                last = self.witness.last(id)
                if last is not None and asked.matches(last):
                    self.liveness.asked_again[id] = began

    def waits_for_approval(self, id: str) -> Digest | None:
        """The diff of an asset that a person has to approve; None for none."""
        decision = self.witness.decisions.get(id)
        if decision is None or decision.diff is None:
            return None
        waits = decision.condition.reason in (Reason.APPROVAL_NEEDED, Reason.APPROVAL_MISSING)
        return decision.diff.digest() if waits else None

    def controls(self) -> list[Control]:
        """Controls that people have set and not lifted, in this order."""
        return list(self.witness.controls.values())
