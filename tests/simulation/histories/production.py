"""Production that misbehaves: pushes, diffs and answers that go wrong in every way there is."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError, WaitingError
from lehr.model.asset import AssetId, AssetKey
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.sdk.plugin import Push, Reader, Traits
from lehr.testing.world import PARTITION, World, WorldPlugin
from tests.simulation.histories.dice import Dice

PUSH_TIMEOUT = 20.0
DIFF_TIMEOUT = 5.0


class PushFault(enum.StrEnum):
    """What becomes of a push.

    LOST is applied and never answers for it; IDLE ends well and changes nothing; DETACHED goes on
    by itself, whatever becomes of the coroutine and of the control plane.
    """

    FAIL = "fail"
    WAIT = "wait"
    RAISE = "raise"
    HANG = "hang"
    LOST = "lost"
    NONSENSE = "nonsense"
    DETACHED = "detached"
    STALL = "stall"
    IDLE = "idle"


PASSING = tuple(fault for fault in PushFault if fault not in (PushFault.STALL, PushFault.IDLE))
"""Faults that need neither a person nor new intent once they are over."""


class DiffFault(enum.StrEnum):
    """What becomes of a look at production."""

    TRANSIENT = "transient"
    RAISE = "raise"
    HANG = "hang"
    SLOW = "slow"
    NONSENSE = "nonsense"
    STALL = "stall"


PASSING_LOOKS = tuple(fault for fault in DiffFault if fault is not DiffFault.STALL)


class HostileWorld(World):
    """Production with faults, by asset id, as long as they are set.

    Attributes:
        push_faults, diff_faults: what goes wrong now.
        mute: ids of which nothing can be told of a push.
        jobs: pushes that go on by themselves.
    """

    def __init__(self, dice: Dice, begins: Callable[[Target, Operation], None]) -> None:
        """`begins` is called when a push begins."""
        super().__init__()
        self.dice = dice
        self.begins = begins
        self.push_faults: dict[str, PushFault] = {}
        self.diff_faults: dict[str, DiffFault] = {}
        self.mute: set[str] = set()
        self.jobs: set[str] = set()

    def plugin(self, clock: Clock, traits: Traits | None = None) -> HostilePlugin:
        return HostilePlugin(self, clock, traits)

    def heal(self) -> None:
        """No more faults."""
        self.push_faults.clear()
        self.diff_faults.clear()
        self.mute.clear()


class HostilePlugin(WorldPlugin):
    """Serves things in a `HostileWorld`."""

    world: HostileWorld

    async def diff(self, target: Target, read: Reader) -> Diff:
        match self.world.diff_faults.get(target.id):
            case DiffFault.TRANSIENT:
                raise TransientError("no connection")
            case DiffFault.RAISE:
                raise ValueError("a mistake in the plugin")
            case DiffFault.HANG:
                await self.clock.sleep(10 * DIFF_TIMEOUT)
            case DiffFault.SLOW:
                await self.clock.sleep(self.world.dice.seconds(0.0, DIFF_TIMEOUT * 0.9))
            case DiffFault.NONSENSE:
                return "no diff at all"  # type: ignore[return-value]
            case DiffFault.STALL:
                raise StalledError("this cannot be compared", fix="mend the access rights")
        return await super().diff(target, read)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        world, fault = self.world, self.world.push_faults.get(target.id)
        world.begins(target, push.operation)
        if target.id in world.running:
            world.two_at_once.append(target.id)
        world.running.add(target.id)
        if fault is PushFault.DETACHED:
            return await self._detached(target, read)
        try:
            await self._work(push)
            if push.superseded and world.dice.happens(0.7):
                return Outcome(Result.FAILED, "superseded")
            return await self._come_to(fault, target, read)
        finally:
            world.running.discard(target.id)

    async def _come_to(self, fault: PushFault | None, target: Target, read: Reader) -> Outcome:
        match fault:
            case PushFault.FAIL:
                return Outcome(Result.FAILED, "no connection")
            case PushFault.WAIT:
                raise WaitingError("busy", until=self.clock.now() + 5.0)
            case PushFault.STALL:
                return Outcome(Result.STALLED, "it refuses")
            case PushFault.RAISE:
                raise ValueError("a mistake in the plugin")
            case PushFault.HANG:
                await self.clock.sleep(10 * PUSH_TIMEOUT)
            case PushFault.LOST:
                self._apply(target, read)
                raise ConnectionError("lost")
            case PushFault.NONSENSE:
                return "no outcome at all"  # type: ignore[return-value]
            case PushFault.IDLE:
                return DONE
        self._apply(target, read)
        return DONE

    async def _detached(self, target: Target, read: Reader) -> Outcome:
        world, loop = self.world, asyncio.get_running_loop()
        ended = loop.create_future()
        world.jobs.add(target.id)

        def end() -> None:
            self._apply(target, read)
            world.jobs.discard(target.id)
            world.running.discard(target.id)
            if not ended.done():
                ended.set_result(None)

        loop.call_later(world.dice.seconds(0.0, 2 * PUSH_TIMEOUT), end)
        await ended
        return DONE

    async def status(self, operation: Operation) -> Progress:
        if operation.asset in self.world.mute:
            raise TransientError("no connection")
        return await super().status(operation)

    def hint(self, id: str) -> None:
        """Say that something may have changed."""
        self.hints.put_nowait(AssetKey(PARTITION, AssetId(id)))


def traits(resync: float, pushes: int) -> Traits:
    return Traits(
        goals=frozenset({Goal.FENCED, Goal.ABSENT}),
        pushes=pushes,
        turns=4,
        diff_timeout=DIFF_TIMEOUT,
        push_timeout=PUSH_TIMEOUT,
        resync=resync,
    )
