"""Simulated production, of assets of any type, that misbehaves as instructed.

`Production` is the same for all observers; `SimulatedPlugin` is one control plane's way to it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.errors import TransientError, WaitingError
from lehr.model.asset import AssetId, AssetKey
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.outputs import OutputNames
from lehr.sdk.plugin import AssetPlugin, Fencing, Push, Reader, Traits
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.holdings import Holdings
from lehr.testing.sim.look_faults import LOOK_TIMEOUT, blinded_by, suffer
from lehr.testing.sim.plain_values import compare, half, shortened
from lehr.testing.sim.simulated_type import SimulatedType
from lehr.testing.sim.trace import Trace

PUSH_TIMEOUT = 20.0
TRAITS = Traits(
    goals=frozenset({Goal.FENCED, Goal.ABSENT}), diff_timeout=LOOK_TIMEOUT, push_timeout=PUSH_TIMEOUT
)
"""Of a plugin, unless a run differs in some."""

OUTPUTS = OutputNames(stable=frozenset({"name"}), changing=frozenset({"neighbours"}))
"""Of everything in simulated production: the name that it made, and how much there is."""

_PART_SECONDS = 1.0
MOST_LOOKS = 100
"""Looks at an asset within a second, by its own turns and those of its dependents."""


class Production(Holdings):
    """Everything that the control planes under test manage.

    Attributes:
        applied: how often each (asset id, goal) was carried out; the summary of what was done.
        seconds: how long a push takes; pushing: ... of one asset, by its id.
        looking: how long a look takes at most, by asset id.
        steady: True if a look takes just so long, and a push that was overtaken always stops.
        push_faults, look_faults: what goes wrong now, by asset id.
        blind: looks at an asset fail while production does not hold another one, by asset id.
        asked: when each asset was last looked at, with or without an answer, in the event loop's seconds.
        mute: ids whose pushes have no known status.
        unreachable: True while no control plane can reach it.
        running: operations under way, by id.
        found_running: ids of those that were under way when a process of a later lease last asked about them.
        detached: ids of those that nothing can stop.
        closed: operations that a provider which keeps late writers out has reported ended, and lets
            begin no more.
        fencing: what keeps a late writer out.
        garble: is added to its messages: it may be text that cannot be encoded.
        connecting_to: the connections that each push makes, by the push's id.
    """

    def __init__(self, kinds: Iterable[SimulatedType], dice: Dice, trace: Trace, fencing: Fencing) -> None:
        """Production of `kinds`; `dice` decides everything left open."""
        super().__init__(trace)
        self.kinds: Mapping[str, SimulatedType] = {kind.type: kind for kind in kinds}
        self.fencing = fencing
        self.dice = dice
        self.begins: Callable[[Target, Operation], None] = lambda target, operation: None
        self.looked: Callable[[Target, Diff], None] = lambda target, diff: None
        self.carries: Callable[[Target, Operation, Any], None] = lambda target, operation, value: None
        self.applied: Counter[tuple[str, str]] = Counter()
        self.seconds = 1.0
        self.pushing: dict[str, float] = {}
        self.looking: dict[str, float] = {}
        self.steady = False
        self.push_faults: dict[str, PushFault] = {}
        self.look_faults: dict[str, LookFault] = {}
        self.blind: dict[str, str] = {}
        self.asked: dict[str, float] = {}
        self.mute: set[str] = set()
        self.unreachable = False
        self.garble = ""
        self.connecting_to: dict[str, dict[str, str]] = {}
        self.running: dict[str, Operation] = {}
        self.found_running: set[str] = set()
        self.detached: set[str] = set()
        self.broken: list[str] = []
        self.closed: set[str] = set()
        self._looks: dict[str, deque[float]] = {}
        self._epochs: dict[str, int] = {}

    def heal(self, but: frozenset[str] = frozenset()) -> None:
        """Nothing goes wrong any more, except with the assets `but`."""
        for faults in (self.push_faults, self.look_faults, self.hidden, self.blind):
            for id in faults.keys() - but:
                del faults[id]
        self.mute &= but
        self.unreachable = False

    def ask(self, id: str) -> None:
        """An asset is looked at: never so often that it is a load (I9)."""
        now = asyncio.get_running_loop().time()
        self.asked[id] = now
        looks = self._looks.setdefault(id, deque(maxlen=MOST_LOOKS))
        if len(looks) == MOST_LOOKS and now - looks[0] < 1.0:
            self.broken.append(f"I9: {id} is looked at {MOST_LOOKS} times within a second")
            looks.clear()
        looks.append(now)

    def look_slowly(self, ids: Iterable[str], seconds: float) -> None:
        """From now on, looks at each of `ids` take up to some time of its own, at most `seconds`."""
        self.looking = {id: self.dice.seconds(0.0, seconds) for id in ids} if seconds else {}

    # --- pushes ----------------------------------------------------------------------

    def begin(self, target: Target, operation: Operation) -> bool:
        """A push begins. False if the provider refuses its writer as one of the past."""
        if self.fencing is Fencing.NATIVE:
            if operation.id in self.closed or operation.epoch < self._epochs.get(target.id, 0):
                self.trace.note("push", f"{target.id}: push is refused, a newer writer was here")
                return False
            self._epochs[target.id] = operation.epoch
        self.begins(target, operation)
        others = [other.id for other in self.running.values() if other.asset == target.id]
        if others and self.fencing is Fencing.NONE:
            self.broken.append(f"I5: two pushes at once of {target.id}")
        self.running[operation.id] = operation
        goal = "" if target.goal is Goal.PRESENT else f" as {target.goal}"
        self.trace.note("push", f"{target.id}: push to @{target.incarnation}{goal} begins")
        return True

    def apply(self, target: Target, operation: Operation, value: Any, based_on: Any) -> bool:
        """Carry a push out. False if the provider refuses it."""
        late = self.fencing is Fencing.NATIVE and operation.epoch < self._epochs.get(target.id, 0)
        moved = self.fencing is Fencing.COMPARE_AND_SWAP and self.values.get(target.id) != based_on
        if late or moved:
            self.trace.note("push", f"{target.id}: push is refused, production has changed")
            return False
        self.applied[target.id, str(target.goal)] += 1
        if value is None:
            self.take(target.id)
        else:
            if self.names.get(target.id) and not self.name_seen(target):
                self.broken.append(f"I12: {target.id} is made again, and there already")
            self.put(target.id, value, operation.id)
        self.trace.note("push", f"{target.id} = {'nothing' if value is None else shortened(value)}")
        if value is not None and (connections := self.connecting_to.get(operation.id)) is not None:
            self.connections[target.id] = connections
            if connections:
                self.trace.note("push", f"{target.id} is connected to {', '.join(connections.values())}")
        return True

    def end(self, operation: Operation) -> None:
        """A push has ended, however."""
        self.running.pop(operation.id, None)


class SimulatedPlugin(AssetPlugin):
    """Serves every kind of a `Production`, for one control plane.

    Attributes:
        hints: keys of what may have changed; None breaks the watch. Hints that arrive before it is
            watched again wait there.
        epoch: of the last lease of its control plane.
    """

    def __init__(self, production: Production, clock: Clock, traits: Traits) -> None:
        self.types = tuple(production.kinds)  # type: ignore[misc]
        self.outputs = dict.fromkeys(production.kinds, OUTPUTS)  # type: ignore[misc]
        self.traits = traits  # type: ignore[misc]
        self.production = production
        self.hints: asyncio.Queue[AssetKey | None] = asyncio.Queue()
        self.epoch: Callable[[], int] = lambda: 0
        self._clock = clock

    # --- looking ---------------------------------------------------------------------

    async def diff(self, target: Target, read: Reader) -> Diff:
        production = self.production
        production.ask(target.id)
        self._reach()
        seconds = production.looking.get(target.id, 0.0)
        if not production.steady:
            # Some looks are over before another one, at the same or something else, has begun to answer.
            seconds = production.dice.seconds(0.0, seconds) * production.dice.pick((0.05, 1.0))
        if seconds:
            await self._clock.sleep(seconds / 2)
        fault = production.look_faults.get(target.id)
        if fault is LookFault.NONSENSE:
            return "no diff at all"  # type: ignore[return-value]
        await suffer(fault, self._clock, production.dice, production.garble)
        if (other := production.blind.get(target.id)) is not None and other not in production.values:
            raise TransientError(blinded_by(other))
        kind = production.kinds[target.type]
        intended, name = kind.wanted(target, read), production.name_seen(target)
        observed = production.seen(target.id) if name or not production.naming else None
        if seconds:
            await self._clock.sleep(seconds / 2)  # what was seen is old when it is reported
        wanted, found = self._connections(kind, target, read), production.connections.get(target.id, {})
        changes = tuple(compare(intended, observed))
        if observed is not None and target.goal is Goal.PRESENT and production.connecting:
            changes += tuple(compare(wanted, found, "connections"))
        effects = kind.effects(target, read, intended, observed)
        diff = Diff(changes, effects, production.recovery(target.id, intended) if changes else None)
        if production.naming and name and name != target.handle:
            diff = replace(diff, handle=name)
        if production.connecting:
            # A careless plugin: it returns outputs also of what is gone.
            gone = {"name": "gone"} if target.goal is Goal.ABSENT else {}
            diff = replace(diff, outputs=production.outputs(target.id, observed) or gone)
        production.looked(target, diff)
        return diff

    def _connections(self, kind: SimulatedType, target: Target, read: Reader) -> dict[str, str]:
        """The names that a target is made with."""
        if not self.production.connecting or target.goal is not Goal.PRESENT:
            return {}
        others = kind.connected(target, read)
        names: dict[str, str] = {id: read.output(id, "name") for id in others}
        for id in names:
            read.output(AssetId(id), "neighbours")  # which changes often and is not used
        return names

    def _reach(self) -> None:
        if self.production.unreachable:
            raise TransientError("production cannot be reached", why="no route to host")

    async def status(self, operation: Operation) -> Progress:
        self._reach()
        self.production.asked[operation.asset] = asyncio.get_running_loop().time()
        if operation.asset in self.production.mute:
            raise TransientError("no connection")
        running = operation.id in self.production.running
        if operation.epoch < self.epoch():  # The process that began it decides nothing any more.
            change = self.production.found_running.add if running else self.production.found_running.discard
            change(operation.id)
        if running:
            return Progress.RUNNING
        if self.production.fencing is Fencing.NATIVE:
            self.production.closed.add(operation.id)
        return Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        while (key := await self.hints.get()) is not None:
            yield key
        raise ConnectionError("the watch broke")

    # --- pushing ---------------------------------------------------------------------

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        production, operation = self.production, push.operation
        self._reach()
        kind = production.kinds[target.type]
        value = kind.wanted(target, read)  # may raise: nothing has begun yet
        connections = self._connections(kind, target, read)
        if not production.begin(target, operation):
            return Outcome(Result.FAILED, "a newer control plane has taken over")
        production.connecting_to[operation.id] = connections
        production.carries(target, operation, value)
        based_on = production.values.get(target.id)
        fault = production.push_faults.get(target.id)
        if fault is PushFault.DETACHED:
            return await self._detached(target, operation, value, based_on)
        try:
            await self._work(target.id, push)
            if push.superseded and (production.steady or production.dice.happens(0.7)):
                return Outcome(Result.FAILED, "superseded")
            outcome = await self._come_to(fault, target, operation, value, based_on)
            return production.named(target, outcome)
        finally:
            production.end(operation)

    async def _work(self, id: str, push: Push) -> None:
        waited, seconds = 0.0, self.production.pushing.get(id, self.production.seconds)
        while waited < seconds and not push.superseded:
            pause = min(_PART_SECONDS, seconds - waited)
            await self._clock.sleep(pause)
            waited += pause

    async def _come_to(
        self, fault: PushFault | None, target: Target, operation: Operation, value: Any, based_on: Any
    ) -> Outcome:
        production = self.production
        if fault is not None:
            production.trace.note("fault", f"{target.id}: push fault: {fault}")
        if fault in _ANSWERS:
            answer = _ANSWERS[fault]
            return replace(answer, message=answer.message + production.garble) if answer.message else answer
        match fault:
            case PushFault.WAIT:
                raise WaitingError("busy", until=self._clock.now() + 5.0)
            case PushFault.RAISE:
                raise ValueError("a mistake in the plugin" + production.garble)
            case PushFault.NONSENSE:
                nonsense = ("no outcome at all", Outcome("marvellous"))  # type: ignore[arg-type]
                return production.dice.pick(nonsense)  # type: ignore[return-value]
            case PushFault.HANG:
                production.detached.add(operation.id)
                await self._clock.sleep(10 * PUSH_TIMEOUT)
            case PushFault.PARTIAL:
                production.apply(target, operation, half(value, based_on), based_on)
                return Outcome(Result.FAILED, "the connection broke in the middle")
        if not production.apply(target, operation, value, based_on):
            return Outcome(Result.FAILED, "production has changed during the push")
        if fault is PushFault.APPLIED:
            return Outcome(Result.FAILED, "no answer in time")
        if fault is PushFault.LOST:
            raise ConnectionError("lost")
        return DONE

    async def _detached(self, target: Target, operation: Operation, value: Any, based_on: Any) -> Outcome:
        production, loop = self.production, asyncio.get_running_loop()
        ended: asyncio.Future[Outcome] = loop.create_future()
        production.detached.add(operation.id)
        production.trace.note("fault", f"{target.id}: push continues detached")

        def end() -> None:
            applied = production.apply(target, operation, value, based_on)
            production.end(operation)
            if not ended.done():
                outcome = DONE if applied else Outcome(Result.FAILED, "refused")
                ended.set_result(production.named(target, outcome))

        # In no control plane's context: it continues while that one is held, and when it is dead.
        seconds = production.dice.seconds(0.0, 2 * PUSH_TIMEOUT)
        loop.call_later(seconds, end, context=contextvars.Context())
        return await ended


_ANSWERS = {
    PushFault.FAIL: Outcome(Result.FAILED, "no connection"),
    PushFault.STALL: Outcome(Result.STALLED, "it refuses"),
    PushFault.IDLE: DONE,
}
"""Faults that change nothing, and their messages."""
