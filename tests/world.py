"""A world of things: simulated production behind a plugin, to run the real Enforcer against.

`World` is the production of `test.Thing`, and obeys, fails or forgets as instructed. `Plane` is a control
plane over it: the real store, committer and Enforcer, which may be killed at any moment and started
again over the same file.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.digest import Digest
from lehr.enforce.committer import Committer
from lehr.enforce.enforcer import Enforcer
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.control import Control
from lehr.model.decision import Condition
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, Target
from lehr.model.incarnation import Candidate, Incarnation
from lehr.model.operation import DONE, Operation, Outcome, Progress
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.model.writes import LiftControl, Publish, SetControl, Write
from lehr.sdk.check import CheckPlugin
from lehr.sdk.claims import Claims
from lehr.sdk.metrics import NO_METRICS, Metrics
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Store
from lehr.store.sqlite import SqliteStore
from lehr.testing.slow import Slow
from lehr.testing.world import PARTITION, THING, Crash, Thing, registry

Behaviour = Callable[[Target, Push], Outcome | None]
"""Decides the result of a push; None lets it succeed. May raise."""


class World:
    """Simulated production.

    Attributes:
        values: what production holds, by asset id.
        pushes: how often each (asset id, value or goal) was carried out.
        seconds: how long a push takes.
        looking: how long a diff takes, by asset id.
        behave: results of the next pushes, by asset id.
        forgetful: ids whose production takes no notice of pushes that end well.
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.pushes: Counter[tuple[str, str]] = Counter()
        self.order: list[str] = []
        self.seconds = 1.0
        self.looking: dict[str, float] = {}
        self.behave: dict[str, Behaviour] = {}
        self.forgetful: set[str] = set()
        self.running: set[str] = set()
        self.most_at_once = 0
        self.two_at_once: list[str] = []

    def plugin(self, clock: Clock, traits: Traits | None = None) -> WorldPlugin:
        """Each control plane has its own plugin; production is shared."""
        return WorldPlugin(self, clock, traits)


def _intended(payload: Thing, goal: Goal, read: Reader) -> str | None:
    """What production should hold."""
    if goal is Goal.ABSENT:
        return None
    value = "+".join([payload.value, *(read.payload(AssetId(id), Thing).value for id in payload.reads)])
    return f"fenced {value}" if goal is Goal.FENCED else value


def _effects(intended: str | None, observed: str | None, payload: Thing, goal: Goal) -> Effects:
    if payload.versioned:
        return Effects(version_from=observed, version_to=intended)
    capacity: int | None = None
    if "?" not in (intended, observed):
        capacity = _number(intended) - _number(observed)
    return Effects(capacity, destructive=payload.destroys and goal is Goal.PRESENT)


def _number(value: str | None) -> int:
    return int(value) if value is not None and value.isdigit() else 0


class WorldPlugin(AssetPlugin):
    """Serves `test.Thing` in a `World`."""

    types = (THING,)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}), resync=60.0)

    def __init__(self, world: World, clock: Clock, traits: Traits | None = None) -> None:
        self.world = world
        self.clock = clock
        self.hints: asyncio.Queue[AssetKey] = asyncio.Queue()
        self.superseded: list[str] = []
        if traits is not None:
            self.traits = traits  # type: ignore[misc]

    async def diff(self, target: Target, read: Reader) -> Diff:
        if (seconds := self.world.looking.get(target.id)) is not None:
            await self.clock.sleep(seconds)
        payload = read.payload(target.id, Thing)
        intended = _intended(payload, target.goal, read)
        observed = self.world.values.get(target.id)
        effects = _effects(intended, observed, payload, target.goal)
        if intended == observed:
            return NO_DIFF if effects == NO_DIFF.effects else Diff((), effects)
        return Diff((Change("value", intended, observed),), effects)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        world = self.world
        if target.id in world.running:
            world.two_at_once.append(target.id)
        world.running.add(target.id)
        world.most_at_once = max(world.most_at_once, len(world.running))
        try:
            await self._work(push)
            behave = world.behave.get(target.id)
            outcome = behave(target, push) if behave is not None else None
            if outcome is not None:
                return outcome
            self._apply(target, read)
            return DONE
        finally:
            world.running.discard(target.id)

    async def _work(self, push: Push) -> None:
        waited, seconds = 0.0, self.world.seconds
        while waited < seconds:
            if push.superseded:
                self.superseded.append(push.operation.asset)
                return
            pause = min(1.0, seconds - waited)
            await self.clock.sleep(pause)
            waited += pause

    def _apply(self, target: Target, read: Reader) -> None:
        intended = _intended(read.payload(target.id, Thing), target.goal, read)
        self.world.pushes[target.id, intended or "absent"] += 1
        self.world.order.append(target.id)
        if target.id in self.world.forgetful:
            return
        if intended is None:
            self.world.values.pop(target.id, None)
        else:
            self.world.values[target.id] = intended

    async def status(self, operation: Operation) -> Progress:
        return Progress.RUNNING if operation.asset in self.world.running else Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        while True:
            yield await self.hints.get()


class CrashingStore:
    """A store that dies at one of its commits, before or after it is durable.

    Attributes:
        commits: how many there were.
        written: kinds of the writes of each commit.
    """

    def __init__(self, store: Store, at: int | None = None, *, after: bool = False) -> None:
        """Die at commit number `at`, counted from 0."""
        self._store = store
        self._at = at
        self._after = after
        self.commits = 0
        self.written: list[tuple[str, ...]] = []

    @property
    def intent(self) -> Any:
        return self._store.intent

    @property
    def records(self) -> Any:
        return self._store.records

    def commit(self, writes: Sequence[Write]) -> list[Any]:
        number = self.commits
        self.commits += 1
        self.written.append(tuple(type(write).__name__ for write in writes))
        if number == self._at and not self._after:
            raise Crash
        answers = self._store.commit(writes)
        if number == self._at:
            raise Crash
        return answers

    def close(self) -> None:
        self._store.close()


class Plane:
    """A control plane over a world. `start`, then `publish`, `settle`, `kill`, as often as needed."""

    def __init__(
        self,
        folder: Path,
        world: World,
        clock: Clock,
        *,
        checks: Sequence[CheckPlugin] = (),
        types: Iterable[AssetType] = (),
        plugins: Sequence[AssetPlugin] = (),
        traits: Traits | None = None,
        seed: int = 0,
        wrap: Callable[[Store], Store] = lambda store: store,
        claims: Claims | None = None,
        only: Selector | None = None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self.world = world
        self.clock = clock
        self.registry = registry(types)
        self.store: Store = wrap(SqliteStore(folder / "state.sqlite"))
        self.plugin = world.plugin(clock, traits)
        self.chance = Chance(seed)
        self.committer = Committer(self.store, Inline(), clock)
        runtime = Runtime(
            PARTITION, self.store, self.registry, clock, self.chance, Slow(clock), only, metrics
        )
        self.enforcer = Enforcer(runtime, self.committer, [self.plugin, *plugins], checks, claims)
        self._committing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; raises `Crash` if the store dies in between."""
        self._committing = asyncio.create_task(self.committer.run(), name="committer")
        await self.or_crash(self.enforcer.start("test"))

    async def publish(self, *assets: Asset, tell: bool = True) -> Incarnation:
        """Make `assets` the whole of intent, and notify the Enforcer (`tell`)."""
        newest = self.store.intent.newest(PARTITION)
        base = newest.sequence if newest else 0
        heads = {head.id: head.digest for head in self.store.intent.heads(PARTITION)}
        upserts = tuple(asset for asset in assets if heads.get(asset.id) != asset.digest)
        intended = {asset.id for asset in assets}
        removals = tuple(id for id in heads if id not in intended)
        candidate = Candidate(PARTITION, base, (), Digest("test"), upserts, removals)
        if newest is not None and candidate.changes_nothing:
            return newest
        write = Publish(
            candidate,
            {asset.id: tuple(self.registry.mentions(asset)) for asset in upserts},
            tuple(name for name, item in self.registry.types.items() if item.governs),
            self.clock.now(),
            {asset.id: self.registry.claims(asset) for asset in upserts},
        )
        [incarnation] = await self.or_crash(self.committer.ask(write))
        assert isinstance(incarnation, Incarnation)
        if tell:
            self.enforcer.notify_published(incarnation.sequence)
        return incarnation

    async def control(self, control: Control) -> None:
        """Set a control."""
        await self.or_crash(self.committer.ask(SetControl(control)))
        await self.enforcer.controls_changed(control.selector, control.kind)

    async def lift(self, control: Control) -> None:
        """Lift it."""
        await self.or_crash(self.committer.ask(LiftControl(PARTITION, control.id, self.clock.now())))
        await self.enforcer.controls_changed(control.selector, f"{control.kind} lifted")

    async def settle(self, seconds: float = 3600.0) -> None:
        """Wait until nothing is left to do.

        Raises:
            TimeoutError: something still was after `seconds`.
        """
        await self.or_crash(self._settled(seconds))

    async def _settled(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while self.enforcer.unsettled or not self.enforcer.at_rest:
                await self.enforcer.changed()
        await self.committer.flush()

    async def or_crash(self, work: Any) -> Any:
        """Result of `work`; raises `Crash` as soon as the store dies in between."""
        assert self._committing is not None
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, self._committing), return_when=asyncio.FIRST_COMPLETED)
        if self._committing.done():
            task.cancel()
            await asyncio.wait((task,))
            self._committing.result()
        return task.result()

    async def kill(self) -> None:
        """End immediately, as a killed process: nothing more is written."""
        if self._committing is not None:
            self._committing.cancel()
            with contextlib.suppress(asyncio.CancelledError, Crash):
                await self._committing
        await self.enforcer.stop()
        self.store.close()

    def condition(self, id: str) -> Condition:
        """Status of an asset, as the store has it."""
        standing = self.store.records.standing(AssetKey(PARTITION, AssetId(id)))
        assert standing is not None, f"{id} had no turn yet"
        return standing.condition
