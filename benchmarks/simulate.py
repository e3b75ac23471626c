"""Virtual time against real time: how fast the program runs in simulation.

The real Enforcer, checks, committer and SQLite store under virtual time; only production is
simulated. Every virtual hour each asset is looked at 100 times and pushed once, for changes of
intent or because somebody changed production by hand; a tenth of that many faults befall pushes,
looks, and the control plane itself, which is killed and started again. At the end everything must
have converged. SIZE is the number of assets (1,000); they are played for two virtual hours. Then four
times as many are played for as many turns: a turn must not take longer because there are more assets.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import perf_counter, process_time  # by name: under virtual time, `time` refuses
from typing import Any

import msgspec
import structlog

from benchmarks import figures
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import TransientError
from lehr.checks import CHECKS, TYPES
from lehr.model.addons import DEPENDS_ON, DependsOn
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Status
from lehr.model.diff import Diff, Goal, Target
from lehr.model.incarnation import Candidate
from lehr.model.operation import Outcome, Result
from lehr.model.writes import Publish
from lehr.sdk.plugin import Push, Reader, Traits
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, thing
from tests.world import Plane, World, WorldPlugin

HOUR = 3600.0
HOURS = 2.0
LARGER = 4
TURNS = 100
"""Turns of each asset in a virtual hour."""

KILLS = 0.02
"""Of all faults, how many are kills of the control plane, which ails all assets at once."""

PUBLISHED = 8
"""Assets that change together, in one incarnation."""

TRAITS = Traits(
    goals=frozenset({Goal.FENCED, Goal.ABSENT}),
    # The delay between two turns is from half of it to the whole.
    resync=HOUR / TURNS / 0.75,
)


class Faults(World):
    """Production in which the next look at an asset may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.unseen: dict[str, int] = {}

    def plugin(self, clock: Clock, traits: Traits | None = None) -> WorldPlugin:
        return Faulty(self, clock, traits)


class Faulty(WorldPlugin):
    """Serves things in `Faults`."""

    world: Faults

    def diff(self, target: Target, read: Reader) -> Coroutine[Any, Any, Diff]:
        if self.world.unseen.get(target.id):
            self.world.unseen[target.id] -= 1
            raise TransientError("no connection")
        return super().diff(target, read)


class Day:
    """What happens to `size` assets.

    Attributes:
        turns, faults, incarnations: how many there were, once all had converged for the first time.
        seconds, processor: what they took, on the wall and of the processor.
    """

    def __init__(self, folder: Path, size: int, hours: float, seed: int = 1) -> None:
        self.turns = 0
        self.faults = 0
        self.seconds = 0.0
        self.processor = 0.0
        self.incarnations = 0
        self._folder = folder
        self._size = size
        self._hours = hours
        self._seed = seed
        self._chance = Chance(seed)
        self.world = Faults()
        self._values = [0] * size

    def play(self) -> float:
        """Play it all. Returns the virtual seconds that it took."""
        return run(self._main, seed=self._seed)

    async def _main(self) -> float:
        clock = VirtualClock()
        await self._begin(clock)
        await self._plane.publish(*(self._asset(number) for number in range(self._size)))
        await self._plane.settle()
        began, used, self.turns = perf_counter(), process_time(), -self._plane.enforcer.turns
        self.world.pushes.clear()
        since = clock.monotonic()
        # Half of the changes are published, the others are made by hand; the rest are faults.
        changes = self._size / PUBLISHED / 2
        drifts = self._size / 2
        faults = self._size / 10
        kinds: list[tuple[float, Callable[[], object]]] = [
            (changes, self._change),
            (drifts, self._drift),
            (faults, self._fault),
        ]
        per_hour = sum(rate for rate, _ in kinds)
        while clock.monotonic() - since < self._hours * HOUR:
            await clock.sleep(self._chance.uniform(0.0, 2 * HOUR / per_hour))
            await self._happen(kinds, self._chance.uniform(0.0, per_hour), clock)
        await self._heal()
        await self._plane.settle(HOUR)
        self.seconds = perf_counter() - began
        self.processor = process_time() - used
        virtual = clock.monotonic() - since
        self._judge()
        await self._end()
        return virtual

    async def _happen(
        self, kinds: list[tuple[float, Callable[[], object]]], drawn: float, clock: Clock
    ) -> None:
        for rate, kind in kinds:
            if drawn <= rate:
                done = kind()
                if asyncio.iscoroutine(done):
                    await done
                return
            drawn -= rate

    # --- the control plane ---------------------------------------------------------

    async def _begin(self, clock: Clock) -> None:
        checks = [check() for check in CHECKS]
        self._clock = clock
        self._plane = Plane(
            self._folder, self.world, clock, checks=checks, types=TYPES, traits=TRAITS, seed=self.faults
        )
        await self._plane.start()

    async def _end(self) -> None:
        self.turns += self._plane.enforcer.turns
        await self._plane.kill()

    # --- what happens --------------------------------------------------------------

    async def _change(self) -> None:
        """Publish some changes, as the pipeline does: in O(changed)."""
        plane, changed = self._plane, dict.fromkeys(self._some() for _ in range(PUBLISHED))
        newest = plane.store.intent.newest(PARTITION)
        assert newest is not None
        for number in changed:
            self._values[number] += 1
        assets = tuple(self._asset(number) for number in changed)
        candidate = Candidate(PARTITION, newest.sequence, (), newest.generators, assets, ())
        mentions = {asset.id: tuple(plane.registry.mentions(asset)) for asset in assets}
        types = tuple(name for name, item in plane.registry.types.items() if item.governs)
        publish = Publish(candidate, mentions, types, self._clock.now())
        await plane.committer.ask(publish)
        plane.enforcer.notify_published(newest.sequence + 1)
        self.incarnations += 1

    def _asset(self, number: int) -> Asset:
        # Every tenth depends on the one before.
        addons = {DEPENDS_ON: DependsOn([_id(number - 1)])} if number % 10 == 9 else {}
        return thing(_id(number), f"v{self._values[number]}", addons)

    def _drift(self) -> None:
        """Somebody changes production by hand; every other time the plugin notices."""
        id = _id(self._some())
        self.world.values[id] = "by hand"
        if self._chance.uniform(0.0, 1.0) < 0.5:
            self._plane.plugin.hints.put_nowait(AssetKey(PARTITION, AssetId(id)))

    async def _fault(self) -> None:
        self.faults += 1
        id = _id(self._some())
        drawn = self._chance.uniform(0.0, 1.0)
        if drawn < KILLS:
            await self._end()
            await self._begin(self._clock)
        elif drawn < 0.3:
            self.world.unseen[id] = 2
        else:
            self._break(id, Outcome(Result.FAILED, "no connection") if drawn < 0.6 else None)

    def _break(self, id: str, outcome: Outcome | None) -> None:
        """Something changes an asset, and its next two pushes fail, or nobody knows how they end."""
        left = 2

        def behave(target: Target, push: Push) -> Outcome | None:
            nonlocal left
            left -= 1
            if left < 0:
                return None
            if outcome is None:
                raise ConnectionError("lost")
            return outcome

        self.world.behave[id] = behave
        self.world.values[id] = "broken"
        self._plane.plugin.hints.put_nowait(AssetKey(PARTITION, AssetId(id)))

    async def _heal(self) -> None:
        self.world.behave.clear()
        self.world.unseen.clear()
        await self._plane.enforcer.sweep()

    def _some(self) -> int:
        return min(int(self._chance.uniform(0, self._size)), self._size - 1)

    # --- the end -------------------------------------------------------------------

    def _judge(self) -> None:
        for number, value in enumerate(self._values):
            id = _id(number)
            found = self.world.values[id]
            assert found == f"v{value}", f"{id} is {found} in production, not v{value}"
            condition = self._plane.condition(id)
            assert condition.status is Status.CONVERGED, f"{id} is {condition}"
        assert not self.world.two_at_once, "two pushes of one asset at once"


def _id(number: int) -> str:
    return f"thing-{number}"


class Played(msgspec.Struct):
    """What came of a simulation; counts are those of one virtual hour."""

    ratio: float
    processor_ratio: float
    turns: int
    pushes: int
    faults: int
    incarnations: int
    turns_per_second: int
    turns_per_processor_second: int


def play(size: int, hours: float) -> Played:
    """Play `hours` virtual hours over `size` assets in a folder where commits cost no disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        day = Day(Path(folder), size, hours)
        virtual = day.play()
    per_hour = HOUR / virtual
    return Played(
        ratio=virtual / day.seconds,
        processor_ratio=round(virtual / day.processor),
        turns=round(day.turns * per_hour),
        pushes=round(sum(day.world.pushes.values()) * per_hour),
        faults=round(day.faults * per_hour),
        incarnations=round(day.incarnations * per_hour),
        turns_per_second=round(day.turns / day.seconds),
        turns_per_processor_second=round(day.turns / day.processor),
    )


def main() -> None:
    """Print the figures."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    size = figures.size(1_000)
    played = play(size, HOURS)
    figures.report(
        "simulate",
        played.ratio,
        "virtual s / s",
        size,
        virtual_hours=HOURS,
        per_virtual_hour={
            name: getattr(played, name) for name in ("turns", "pushes", "faults", "incarnations")
        },
        turns_per_second=played.turns_per_second,
        virtual_per_processor_second=played.processor_ratio,
    )
    more = play(LARGER * size, HOURS / LARGER)
    figures.report(
        "growth",
        played.turns_per_processor_second / more.turns_per_processor_second,
        "processor time of a turn / of a turn",
        LARGER * size,
        compared_with_size=size,
        turns_per_second=more.turns_per_second,
    )


if __name__ == "__main__":
    main()
