"""The simulated world, and the real control planes in it: a source, production, a store, people's words.

A driver decides what happens: `lehr.testing.sim.random_harness` by chance, `script_harness` by a
script, `plans.plan_harness` by a scenario with one fault. The harness outlives every control plane;
a `Process` is one run of the program, which may die, be killed, held and released at any moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from lehr.base.diagnostics import errors
from lehr.base.errors import LehrError
from lehr.checks import CHECKS
from lehr.model.asset import Partition
from lehr.model.diff import Target
from lehr.model.operation import Operation
from lehr.model.types import Registry
from lehr.model.writes import Write
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin, Fencing, Traits
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.metrics import MetricWorld
from lehr.testing.sim.process import Process
from lehr.testing.sim.production import Production, SimulatedPlugin
from lehr.testing.sim.simulated_type import SimulatedType
from lehr.testing.sim.source import Files, Repository
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.witness import Witness
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import Crash

OWNER = "here"
"""Of the leases of all processes on one machine, of which the state folder's lock lets one run."""


class Harness:
    """A world and its control planes.

    Attributes:
        trace: what happened.
        processes: all control planes there were, oldest first.
        lost: assets that stay in trouble at the end.
        metrics: answers that monitors get.
        owner: of the machine that enforces, or is to.
        commits, looks: seconds that a commit, or a look at the source, takes at most.
        title: what control planes are called in the trace, before their number.
        poll: seconds between two checks at the source.
    """

    title: ClassVar[str] = "process"
    poll: ClassVar[float] = 60.0
    witnesses: ClassVar[type[Witness]] = Witness
    productions: ClassVar[type[Production]] = Production
    repositories: ClassVar[type[Repository]] = Repository
    commits = looks = 0.0

    def __init__(
        self,
        folder: Path,
        partition: Partition,
        registry: Registry,
        traits: Traits,
        kinds: Sequence[SimulatedType],
        dice: Dice,
    ) -> None:
        """A world that keeps its state in `folder`, with nothing in it yet.

        Args:
            traits: of the plugin, and so of production.
            kinds: of production.
            dice: decide what production leaves to chance.
        """
        self.folder = folder
        self.partition = partition
        self.registry = registry
        self.traits = traits
        self.dice = dice
        self.trace = Trace()
        self.witness = self.witnesses(registry, self.trace)
        self.witness.monotonic = lambda: self.clock.monotonic()
        self.witness.fenced = traits.fencing is Fencing.NATIVE
        self.production = self.productions(kinds, dice, self.trace, traits.fencing)
        self.production.begins = self.begins
        self.repository = self.repositories(self.trace)
        self.metrics = MetricWorld()
        self.processes: list[Process] = []
        self.lost: frozenset[str] = frozenset()
        self.owner = OWNER

    @cached_property
    def clock(self) -> VirtualClock:
        """The clock of the virtual loop, which must run."""
        return VirtualClock()

    # --- what control planes ask of their world --------------------------------------------

    def checks(self) -> Sequence[CheckPlugin]:
        """The checks of a new control plane."""
        return [check() for check in CHECKS]

    def served(self, plugin: SimulatedPlugin) -> AssetPlugin:
        """The plugin that a new control plane calls in place of `plugin`."""
        return plugin

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """These writes have become durable."""
        self.witness.committed(writes, answers)

    def begins(self, target: Target, operation: Operation) -> None:
        """Production begins to carry out a push."""
        self.witness.begins(target, operation)

    def deposed(self) -> None:
        """A control plane ends because another one has taken over."""

    def delays(self, most: float) -> tuple[float, float]:
        """Seconds before and after something that takes at most `most`."""
        return (self.dice.seconds(0.0, most / 2), self.dice.seconds(0.0, most / 2)) if most else (0.0, 0.0)

    def read_delays(self) -> tuple[float, float]:
        """Seconds before and after a read of the store."""
        return 0.0, 0.0

    def hang(self) -> float:
        """Seconds until the store answers; 0 if it does not hang."""
        return 0.0

    # --- control planes --------------------------------------------------------------------

    @property
    def process(self) -> Process:
        """The newest control plane."""
        return self.processes[-1]

    @property
    def running(self) -> list[Process]:
        """Control planes that are not dead."""
        return [process for process in self.processes if not process.dead]

    def add_process(self, seed: int) -> Process:
        """Another control plane, not started yet; `seed` is for its jitter and identifiers."""
        self.processes.append(Process(self, f"{self.title} {len(self.processes) + 1}", seed, self.owner))
        return self.process

    async def try_start(self, process: Process) -> bool:
        """Start a control plane. False if it has ended instead."""
        try:
            await process.start()
        except Crash:
            await process.kill()
        except LehrError:
            pass  # it has ended on its own
        return not process.gone

    async def close(self) -> None:
        """End every control plane."""
        for process in self.processes:
            if not process.gone:
                await process.kill()

    async def declared(self, snapshot: Files) -> dict[str, str] | None:
        """Digests of what a revision declares, from a clean build; None if it is not whole."""
        built = await InlineGeneration(self.registry, self.clock).generate(snapshot)
        if errors(built.diagnostics) or not built.assets:
            return None
        return {str(asset.id): str(asset.digest) for asset in built.assets.values()}
