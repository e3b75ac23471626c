"""One run of the program in a simulated world: it may die, be killed, held and released at any moment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from lehr.base.chance import Chance
from lehr.base.errors import LehrError
from lehr.checks.push_times import push_times
from lehr.control.messages import AnyRequest, CommandResult
from lehr.control.parts import Parts
from lehr.control.plane import ControlPlane
from lehr.control.server import CarryOut
from lehr.enforce.enforcer import Enforcer
from lehr.model.asset import AssetId, AssetKey
from lehr.model.decision import Condition
from lehr.model.writes import LeaseLostError, Write
from lehr.monitoring.looks import Looks
from lehr.testing.sim.generation import InlineGeneration
from lehr.testing.sim.metrics import SOURCE, SimulatedMetrics
from lehr.testing.sim.production import SimulatedPlugin
from lehr.testing.sim.source import SimulatedSource
from lehr.testing.sim.store import SimulatedStore
from lehr.testing.slow import Slow
from lehr.testing.virtual import Host, VirtualLoop
from lehr.testing.world import Crash

if TYPE_CHECKING:
    from lehr.testing.sim.harness import Harness

T = TypeVar("T")


class _Inbox:
    """`lehr.control.parts.Listener` that hands commands over without a socket, as text all the same."""

    def __init__(self, carry_out: CarryOut) -> None:
        self._carry_out = carry_out

    async def take(self, request: AnyRequest, actor: str) -> CommandResult:
        answer = await self._carry_out(request, actor)
        return msgspec.json.decode(msgspec.json.encode(answer), type=CommandResult)

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
        metrics: answers its monitors.
        committing: carries out its commits.
        store_reading: carries out its reads of the store.
        gone: True once it has been killed, or could not start.
    """

    def __init__(self, harness: Harness, name: str, seed: int, owner: str) -> None:
        """A process that is not started yet.

        Args:
            seed: for its jitter and identifiers.
            owner: of its lease.
        """
        self.harness = harness
        self.gone = False
        self.name = name
        self.owner = owner
        self.host = Host(name)
        self.store = SimulatedStore(harness.folder / "state.sqlite", self._committed)
        self.store.read_by_watchers = partial(harness.witness.feed.committed, harness.partition)
        self.store.broken = harness.production.broken
        self.store.newest_epoch = lambda: harness.witness.lease.epoch
        self.plugin = SimulatedPlugin(harness.production, harness.clock, harness.traits)
        self.plugin.epoch = lambda: self.store.epoch
        self.generation = InlineGeneration(harness.registry, harness.clock)
        self.metrics = SimulatedMetrics(harness.metrics, harness.clock)
        self.committing = Slow(harness.clock, lambda: harness.delays(harness.commits), harness.hang)
        self.store_reading = Slow(harness.clock, harness.read_delays, harness.hang)
        self._inbox: _Inbox | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self.plane = ControlPlane(self._parts(seed), harness.partition)

    def _parts(self, seed: int) -> Parts:
        harness = self.harness

        def listen(carry_out: CarryOut) -> _Inbox:
            self._inbox = _Inbox(carry_out)
            return self._inbox

        return Parts(
            listen=listen,
            store=self.store,
            source=SimulatedSource(harness.repository, harness.clock, harness.poll),
            generation=self.generation,
            clean_generation=lambda: InlineGeneration(harness.registry, harness.clock),
            registry=harness.registry,
            plugins=[harness.served(self.plugin)],
            checks=harness.checks(),
            calendars=push_times,
            clock=harness.clock,
            chance=Chance(seed),
            blocking=self.committing,
            reading=Slow(harness.clock, lambda: harness.delays(harness.looks)),
            store_reading=self.store_reading,
            owner=self.owner,
            metrics=Looks({SOURCE: self.metrics}, harness.clock),
        )

    def _committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """Have writes judged. An error of a judge is reported: the program would only retry its commit."""
        try:
            self.harness.committed(writes, answers)
        except Exception as error:
            self.harness.witness.broken("I8", f"a judge broke: {type(error).__name__}: {error}")

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
        self.harness.trace.note("process", f"{self.name} starts")
        try:
            await self.run(self.plane.start())
        except LehrError as error:
            self.harness.trace.note("process", f"{self.name} cannot start: {error}")
            await self.kill()
            raise
        self._tasks.append(self.host.run_on(self._serve(), "serve"))

    async def _serve(self) -> None:
        """A process whose store is broken, or in whose place another one has come, ends."""
        try:
            await self.plane.serve()
        except Crash:
            pass
        except LehrError as error:
            if isinstance(error, LeaseLostError):
                self.harness.deposed()
            self.harness.trace.note("process", f"{self.name} ends: {error}")
            self.store.died.set()
        except Exception as error:
            self.harness.production.broken.append(f"I8: the program broke: {type(error).__name__}: {error}")
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
        loop = self._loop()
        self.gone = True
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
        self.harness.trace.note("process", f"{self.name} is gone")

    def hold(self) -> None:
        """Stop it where it is, as SIGSTOP does."""
        self.harness.trace.note("process", f"{self.name} is stopped")
        self._loop().hold(self.host)

    def release(self) -> None:
        """Let it continue, as SIGCONT does."""
        self.harness.trace.note("process", f"{self.name} continues")
        self._loop().release(self.host)

    def _loop(self) -> VirtualLoop:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return loop

    # --- people and plugins ------------------------------------------------------------

    async def command(self, request: AnyRequest, actor: str = "ana") -> CommandResult:
        """Give it a command, and return the answer.

        Raises:
            Crash: it died of it.
        """
        assert self._inbox is not None
        self.harness.trace.note("person", f"{actor}: {_command_text(request)}")
        answer = await self.run(self._inbox.take(request, actor))
        if not answer.ok:
            self.harness.trace.note("person", f"refused: {answer.message}")
        return answer

    def hint(self, id: str) -> None:
        """The plugin reports that something may have changed."""
        self.plugin.hints.put_nowait(AssetKey(self.harness.partition, AssetId(id)))

    def condition(self, id: str) -> Condition | None:
        """Status of an asset, as the store has it; None if it had no turn yet."""
        found = self.store.records.standing(AssetKey(self.harness.partition, AssetId(id)))
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


def _command_text(request: AnyRequest) -> str:
    values = msgspec.to_builtins(request)
    command = values.pop("command")
    return " ".join([command, *(f"{name}={value}" for name, value in values.items())])
