"""Simulated production, of assets of any type, that misbehaves as instructed.

`Production` is the same for all observers; `SimulatedPlugin` is one control plane's way to it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError, WaitingError
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.diff import Change, Diff, Effects, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.outputs import OutputNames
from lehr.sdk.plugin import AssetPlugin, Fencing, Push, Reader, Traits
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.trace import Trace

PUSH_TIMEOUT = 20.0
LOOK_TIMEOUT = 5.0
TRAITS = Traits(
    goals=frozenset({Goal.FENCED, Goal.ABSENT}), diff_timeout=LOOK_TIMEOUT, push_timeout=PUSH_TIMEOUT
)
"""Of a plugin, unless a run differs in some."""

OUTPUTS = OutputNames(stable=frozenset({"name"}), changing=frozenset({"neighbours"}))
"""Of everything in simulated production: the name that it made, and how much there is."""

_NOBODY = "by-hand"
_PART_SECONDS = 1.0
_SIGHTS = 16
MOST_LOOKS = 100
"""Looks at an asset within a second, by its own turns and those of its dependents."""


class SimulatedType(msgspec.Struct, frozen=True):
    """Production of one asset type.

    Attributes:
        intended: production for a target that should be PRESENT; plain data.
        effects: of going to `intended` from `observed`, which may both be None for absent:
            `effects(target, read, intended, observed)`.
        connected: other assets with whose names a target is made, where production connects them.
    """

    type: str
    intended: Callable[[Target, Reader], Any]
    effects: Callable[[Target, Reader, Any, Any], Effects] = lambda target, read, intended, observed: (
        Effects()
    )
    connected: Callable[[Target, Reader], Iterable[AssetId]] = lambda target, read: ()


def plain(type: str) -> SimulatedType:
    """Production that holds the asset's payload unchanged, without effects on others."""
    return SimulatedType(type, _payload)


def _payload(target: Target, read: Reader) -> Any:
    asset = read.asset(target.id)
    if asset is None:
        raise StalledError(f"the incarnation has no asset {target.id}")
    return asset.document()["payload"]


class Sight(msgspec.Struct, frozen=True):
    """Production's content from a moment on, in seconds of the loop."""

    since: float
    value: Any


class Production:
    """Everything that the control planes under test manage.

    Attributes:
        values: what there is, by asset id; `put` and `take` change it.
        applied: how often each (asset id, goal) was carried out; the summary of what was done.
        seconds: how long a push takes; pushing: ... of one asset, by its id.
        looking: how long a look takes at most, by asset id.
        steady: True if a look takes just so long, and a push that was overtaken always stops.
        push_faults, look_faults: what goes wrong now, by asset id.
        blind: looks at an asset fail while production does not hold another one, by asset id.
        asked: when each asset was last looked at, with or without an answer, in the event loop's seconds.
        mute: ids whose pushes have no known status.
        hidden: seconds after which a change can be seen, by asset id.
        returning: values that return without a push, by asset id, and when, in the event loop's
            seconds.
        unreachable: True while no control plane can reach it.
        running: operations under way, by id.
        found_running: ids of those that were under way when a process of a later lease last asked about them.
        detached: ids of those that nothing can stop.
        closed: operations that a provider which keeps late writers out has reported ended, and lets
            begin no more.
        fencing: what keeps a late writer out.
        garble: is added to its messages: it may be text that cannot be encoded.
        naming: True if it makes names of its own: what a push has made is found only by its name, which is
            the asset's handle, or by the push's id.
        names: of all values, by asset id.
        connecting: True if what an asset reads is also its connection to another one's name, an output.
        connections: the names that each value was made with, by asset id and that of the other.
        connecting_to: those that each push makes it with, by the push's id.
        strangers: how many things exist that Lehr does not manage.
    """

    def __init__(self, kinds: Iterable[SimulatedType], dice: Dice, trace: Trace, fencing: Fencing) -> None:
        """Production of `kinds`; `dice` decides everything left open."""
        self.kinds: Mapping[str, SimulatedType] = {kind.type: kind for kind in kinds}
        self.fencing = fencing
        self.dice = dice
        self.trace = trace
        self.begins: Callable[[Target, Operation], None] = lambda target, operation: None
        self.looked: Callable[[Target, Diff], None] = lambda target, diff: None
        self.carries: Callable[[Target, Operation, Any], None] = lambda target, operation, value: None
        self.values: dict[str, Any] = {}
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
        self.hidden: dict[str, float] = {}
        self.returning: dict[str, Sight] = {}
        self.unreachable = False
        self.garble = ""
        self.naming = False
        self.names: dict[str, str] = {}
        self.connecting = False
        self.connections: dict[str, dict[str, str]] = {}
        self.connecting_to: dict[str, dict[str, str]] = {}
        self.strangers = 0
        self.running: dict[str, Operation] = {}
        self.found_running: set[str] = set()
        self.detached: set[str] = set()
        self.broken: list[str] = []
        self.closed: set[str] = set()
        self._looks: dict[str, deque[float]] = {}
        self._sights: dict[str, deque[Sight]] = {}
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

    # --- what there is -------------------------------------------------------------

    def put(self, id: str, value: Any, maker: str = _NOBODY) -> None:
        """Make production hold `value`. `maker`: the push that does, if one does."""
        self._remember(id)
        self.values[id] = value
        self.names.setdefault(id, f"{id}#{maker}")

    def take(self, id: str) -> None:
        """Make production hold nothing."""
        self._remember(id)
        self.values.pop(id, None)
        self.names.pop(id, None)
        self.connections.pop(id, None)

    def name_seen(self, target: Target) -> str:
        """The name of what a look for `target` finds; empty if it finds nothing."""
        name = self.names.get(target.id, "")
        found = name == target.handle or name.endswith((f"#{_NOBODY}", f"#{target.lost}"))
        return name if found or not self.naming else ""

    def break_down(self, id: str, seconds: float) -> None:
        """Production crashes, and restarts itself after `seconds`."""
        loop = asyncio.get_running_loop()
        back, name = Sight(loop.time() + seconds, self.values.get(id)), self.names.get(id)
        connections = self.connections.get(id)
        self.take(id)
        self.returning[id] = back

        def come_back() -> None:
            if self.returning.get(id) is back:
                self.put(id, back.value)
                if name is not None:
                    self.names[id] = name
                if connections is not None:
                    self.connections[id] = connections
                self.trace.note("recovery", f"{id} = {_show(back.value)}, restarted by production")

        loop.call_later(seconds, come_back, context=contextvars.Context())

    def recovery(self, id: str, intended: Any) -> float | None:
        """Seconds until production holds `intended` without a push; None if it needs a push."""
        back = self.returning.get(id)
        if back is None or back.value != intended:
            return None
        return back.since - asyncio.get_running_loop().time()

    def _remember(self, id: str) -> None:
        self.returning.pop(id, None)
        sights = self._sights.setdefault(id, deque(maxlen=_SIGHTS))
        sights.append(Sight(asyncio.get_running_loop().time(), self.values.get(id)))

    def seen(self, id: str) -> Any:
        """The result of a look now: past values, where changes show late."""
        delay = self.hidden.get(id)
        if delay is not None:
            now = asyncio.get_running_loop().time()
            for sight in self._sights.get(id, ()):
                if sight.since + delay > now:
                    return sight.value
        return self.values.get(id)

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
        self.trace.note("push", f"{target.id} = {'nothing' if value is None else _show(value)}")
        if value is not None and (connections := self.connecting_to.get(operation.id)) is not None:
            self.connections[target.id] = connections
            if connections:
                self.trace.note("push", f"{target.id} is connected to {', '.join(connections.values())}")
        return True

    def is_connected(self, asset: Asset) -> bool:
        """Whether an asset was made with the names of what it reads, if production connects assets."""
        wanted = {id: self.names.get(id) for id in asset.document()["payload"]["reads"]}
        return not self.connecting or self.connections.get(asset.id, {}) == wanted

    def outputs(self, id: str, observed: Any) -> dict[str, Any]:
        """The outputs of what a look has observed."""
        name = self.names.get(id)
        neighbours = len(self.values) + self.strangers
        return {} if observed is None or name is None else {"name": name, "neighbours": neighbours}

    def named(self, target: Target, outcome: Outcome) -> Outcome:
        """`outcome`, with the name of what is there now."""
        name = self.names.get(target.id)
        if not self.naming or name is None or not isinstance(outcome, Outcome):
            return outcome
        return replace(outcome, handle=name)

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
        await self._look(fault)
        if (other := production.blind.get(target.id)) is not None and other not in production.values:
            raise TransientError(blinded_by(other))
        kind = production.kinds[target.type]
        intended, name = _intended(kind, target, read), production.name_seen(target)
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

    async def _look(self, fault: LookFault | None) -> None:
        match fault:
            case LookFault.TRANSIENT:
                raise TransientError("no connection", why=self.production.garble)
            case LookFault.STALL:
                raise StalledError("this cannot be compared", fix="fix the access rights")
            case LookFault.WAIT:
                raise WaitingError("busy", until=self._clock.now() + 5.0)
            case LookFault.PAST:
                raise WaitingError("busy", until=self._clock.now() - 5.0)
            case LookFault.RAISE:
                raise ValueError("a mistake in the plugin" + self.production.garble)
            case LookFault.HANG:
                await asyncio.Event().wait()
            case LookFault.SLOW:
                await self._clock.sleep(self.production.dice.seconds(0.0, LOOK_TIMEOUT * 0.9))

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
        value = _intended(kind, target, read)  # may raise: nothing has begun yet
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


def blinded_by(other: str) -> str:
    """The error of a look that fails because `other` is missing."""
    return f"it is reached through {other}, which is not there"


def _intended(kind: SimulatedType, target: Target, read: Reader) -> Any:
    """Intended production for the goal of `target`; None for nothing."""
    if target.goal is Goal.ABSENT:
        return None
    value = kind.intended(target, read)
    return value if target.goal is Goal.PRESENT else {str(target.goal): value}


def compare(intended: Any, observed: Any, path: str = "") -> list[Change]:
    """How two plain values differ, leaf by leaf."""
    if isinstance(intended, dict) and isinstance(observed, dict):
        keys = sorted(intended.keys() | observed.keys())
        pairs = ((f"{path}/{key}", intended.get(key), observed.get(key)) for key in keys)
        return [change for place, one, other in pairs for change in compare(one, other, place)]
    return [] if intended == observed else [Change(path.removeprefix("/") or "value", intended, observed)]


def half(value: Any, before: Any) -> Any:
    """The value when a change from `before` to `value` broke off in the middle."""
    if isinstance(value, dict) and isinstance(before, dict) and len(value) > 1:
        new = sorted(value)[: len(value) // 2]
        return {**before, **{key: value[key] for key in new}}
    return f"half of {value}" if value is not None else before


def on_one_line(value: Any) -> str:
    """A value of production on one line."""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


def _show(value: Any) -> str:
    text = on_one_line(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
