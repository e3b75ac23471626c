"""Control planes in a simulated world: the real program over a simulated source, store and production.

`Site` is what outlives them all: the state file, the repository, production, the trace. `Process`
is one run of the program on it, which may die, be killed, held and released at any moment.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lehr.base.chance import Chance
from lehr.base.errors import LehrError
from lehr.control.messages import Answer, AnyRequest
from lehr.control.plane import ControlPlane, Parts
from lehr.control.server import CarryOut
from lehr.enforce.enforcer import Enforcer
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.decision import Condition
from lehr.model.types import Registry
from lehr.model.writes import LeaseLostError, Write
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import Traits
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.production import Production, SimulatedPlugin
from lehr.testing.sim.source import Repository, SimulatedSource
from lehr.testing.sim.store import SimulatedStore
from lehr.testing.sim.trace import Trace
from lehr.testing.slow import Delays, Slow, at_once
from lehr.testing.virtual import Host, VirtualClock, VirtualLoop
from lehr.testing.world import Crash

T = TypeVar("T")

Observer = Callable[[Sequence[Write], Sequence[Any]], None]


class Site(msgspec.Struct, frozen=True, eq=False):
    """The world of control planes, and what they share.

    Attributes:
        checks: makes the checks of one control plane.
        poll: seconds between two looks at the source.
        observe: called with everything that has become durable.
        deposed: called for each process that ends because another one has taken over.
        commits, looks: how long the store takes to commit, and the source to be read and judged.
    """

    folder: Path
    partition: Partition
    registry: Registry
    checks: Callable[[], Sequence[CheckPlugin]]
    traits: Traits
    production: Production
    repository: Repository
    clock: VirtualClock
    trace: Trace
    observe: Observer
    deposed: Callable[[str], None] = lambda name: None
    poll: float = 10.0
    commits: Delays = at_once
    looks: Delays = at_once


class _Inbox:
    """`lehr.control.plane.Listener` that hands commands over without a socket."""

    def __init__(self, carry_out: CarryOut) -> None:
        self.carry_out = carry_out

    async def start(self) -> None:
        """It listens always."""

    async def stop(self) -> None:
        """It listens always."""


class Process:
    """One run of the control plane.

    Attributes:
        store: to make it fail.
        plugin: to give hints to.
        generation: to let it dream.
        committing: carries out its commits.
    """

    def __init__(self, site: Site, name: str, seed: int) -> None:
        """A process that is not started yet; `seed` is for its jitter and identifiers."""
        self.site = site
        self.name = name
        self.host = Host(name)
        self.store = SimulatedStore(site.folder / "state.sqlite", site.observe)
        self.store.broken = site.production.broken
        self.plugin = SimulatedPlugin(site.production, site.clock, site.traits)
        self.generation = InlineGeneration(site.registry, site.clock)
        self.committing = Slow(site.clock, site.commits)
        self._inbox: _Inbox | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self.plane = ControlPlane(self._parts(seed), site.partition)

    def _parts(self, seed: int) -> Parts:
        site = self.site

        def listen(carry_out: CarryOut) -> _Inbox:
            self._inbox = _Inbox(carry_out)
            return self._inbox

        def generation() -> InlineGeneration:
            return InlineGeneration(site.registry, site.clock)

        return Parts(
            listen=listen,
            store=self.store,
            source=SimulatedSource(site.repository, site.clock, site.poll),
            generation=self.generation,
            clean_generation=generation,
            registry=site.registry,
            plugins=[self.plugin],
            checks=site.checks(),
            clock=site.clock,
            chance=Chance(seed),
            blocking=self.committing,
            reading=Slow(site.clock, site.looks),
        )

    @property
    def enforcer(self) -> Enforcer:
        return self.plane.enforcer

    @property
    def dead(self) -> bool:
        """True once it has died or was killed."""
        return self.store.died.is_set()

    # --- life ------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin; returns when it serves.

        Raises:
            Crash: it died in between.
            LehrError: it could not start, and has ended.
        """
        self.site.trace.note("process", f"{self.name} starts")
        try:
            await self.run(self.plane.start())
        except LehrError as error:
            self.site.trace.note("process", f"{self.name} cannot start: {error}")
            await self.kill()
            raise
        self._tasks.append(self.host.run_on(self._serve(), "serve"))

    async def _serve(self) -> None:
        """A process whose store is broken, or in whose place another one has come, ends."""
        try:
            await self.plane.serve()
        except Crash:
            pass
        except LeaseLostError as error:
            self.site.deposed(self.name)
            self.site.trace.note("process", f"{self.name} ends: {error}")
            self.store.died.set()
        except LehrError as error:
            self.site.trace.note("process", f"{self.name} ends: {error}")
            self.store.died.set()
        except Exception as error:
            self.site.production.broken.append(f"I8: the program broke: {type(error).__name__}: {error}")
            self.store.died.set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Result of `work` when this process does it.

        Raises:
            Crash: the process died before it was done.
        """
        task = self.host.run_on(work)
        death = asyncio.ensure_future(self.store.died.wait())
        try:
            await asyncio.wait((task, death), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
                raise Crash
            return task.result()
        finally:
            death.cancel()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            Crash: the process died in between.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.store.died.wait()
        if self.dead:
            raise Crash

    async def kill(self) -> None:
        """End it immediately: nothing more is written, no push of its own continues."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.store.died.set()
        loop.release(self.host)
        while tasks := [task for task in loop.tasks_of(self.host) if not task.done()]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in loop.tasks_of(self.host):
            if not task.cancelled():
                task.exception()  # its error is known
        self.store.close()
        self.site.trace.note("process", f"{self.name} is gone")

    def hold(self) -> None:
        """Stop it where it is, as SIGSTOP does."""
        self.site.trace.note("process", f"{self.name} is stopped")
        self._loop().hold(self.host)

    def release(self) -> None:
        """Let it go on, as SIGCONT does."""
        self.site.trace.note("process", f"{self.name} goes on")
        self._loop().release(self.host)

    def _loop(self) -> VirtualLoop:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return loop

    # --- people and plugins ------------------------------------------------------------

    async def command(self, request: AnyRequest, actor: str = "ana") -> Answer:
        """Give it a command, and return the answer.

        Raises:
            Crash: it died of it.
        """
        assert self._inbox is not None
        self.site.trace.note("person", f"{actor}: {_words(request)}")
        answer: Answer = await self.run(self._carried_out(self._inbox, request, actor))
        if not answer.ok:
            self.site.trace.note("person", f"refused: {answer.message}")
        return answer

    async def _carried_out(self, inbox: _Inbox, request: AnyRequest, actor: str) -> Answer:
        return await inbox.carry_out(request, actor)

    def hint(self, id: str) -> None:
        """The plugin reports that something may have changed."""
        self.plugin.hints.put_nowait(AssetKey(self.site.partition, AssetId(id)))

    def break_watch(self) -> None:
        """The plugin's connection breaks, over which it sees changes; it has to be watched again."""
        self.plugin.hints.put_nowait(None)

    def condition(self, id: str) -> Condition | None:
        """Status of an asset, as the store has it; None if it had no turn yet."""
        found = self.store.records.standing(AssetKey(self.site.partition, AssetId(id)))
        return None if found is None else found.condition

    async def settle(self, seconds: float) -> None:
        """Wait until nothing is left to do.

        Raises:
            TimeoutError: something still was after `seconds`.
            Crash: it died in between.
        """
        await self.run(self._settled(seconds))

    async def _settled(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while self.enforcer.unsettled or not self.enforcer.at_rest:
                await self.enforcer.changed()
        await self.plane.committer.flush()


def _words(request: AnyRequest) -> str:
    values = msgspec.to_builtins(request)
    command = values.pop("command")
    return " ".join([command, *(f"{name}={value}" for name, value in values.items())])


def running(processes: Iterable[Process]) -> list[Process]:
    """Those that are not dead."""
    return [process for process in processes if not process.dead]
