"""Subjects of the rules of asset plugins."""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from lehr.base.clock import Clock, SystemClock
from lehr.base.errors import LehrError, StalledError
from lehr.model.asset import Asset
from lehr.model.diff import Diff, Goal, Target
from lehr.model.operation import Operation, Outcome, Progress, Result
from lehr.model.types import Registry
from lehr.sdk.plugin import AssetPlugin, Found, IndexedDiff, TextChange
from lehr.testing.conformance.messages import SentPlugin
from lehr.testing.conformance.rules import Rules, hold, raises
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of

T = TypeVar("T")


class Aim(NamedTuple):
    """The intended state of production."""

    asset: Asset
    goal: Goal = Goal.PRESENT


class Journey(NamedTuple):
    """A push from where an earlier one led. `start` is None for production that was disturbed."""

    start: Aim | None
    end: Aim


@dataclass
class Subject:
    """An asset plugin with its own small production, in which nothing was applied yet.

    Attributes:
        make: makes the plugin as it is shipped; called again, the plugin of a new process over the
            same production. Each rule closes what it made.
        registry: with the plugin's types.
        asset: the intended asset.
        changed: the same id and type with other content.
        disturb: changes production, applied from `asset`, behind the plugin's back.
        crash: kills what runs, applied from `asset`, as a crash would, where production starts it again
            without a push; None where nothing restarts, or where the test can kill nothing.
        observe: all of production that the plugin could touch, as a value to compare.
        talk: makes a context manager: entered, production, applied from `asset`, is up but unhealthy, and
            prints these texts one after the other wherever the plugin may look: streams, logs, answers
            to probes. Left, it is healthy again, or is after a push. None where production prints nothing.
        others: further assets that the plugin reads.
        outputs: those of `others`, by id.
        secret: a text in the intent that nothing may show; empty for none.
        troubles: each makes a context manager: entered, production cannot be read or written as
            usual (gone, in the way, not permitted, unreachable); left, all is as before.
        query: where a plugin that discovers finds what was applied; empty for none to be looked for.
        interruptions: at how many awaits of each push, evenly spread, it is interrupted; None for
            every one. For plugins whose pushes take seconds.
        linger: seconds for which the suite looks whether something still happens.
        patience: seconds in which an operation that was broken off must have ended, and production must
            have recovered from a crash.
        clock: the clock with which the suite waits.
        plugin: the latest one made. Each call of it is sent as messages.
        shown: every diff, text, message and exception that came out of the plugin.
        handle: the last one that the plugin returned, which it is given with every target.
    """

    make: Callable[[], AssetPlugin]
    registry: Registry
    asset: Asset
    changed: Asset
    disturb: Callable[[], None]
    observe: Callable[[], object]
    others: tuple[Asset, ...] = ()
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    crash: Callable[[], None] | None = None
    talk: Callable[[Sequence[bytes]], AbstractContextManager[object]] | None = None
    secret: str = ""
    troubles: tuple[Callable[[], AbstractContextManager[object]], ...] = ()
    query: tuple[str, ...] = ()
    interruptions: int | None = None
    linger: float = 0.02
    patience: float = 30.0
    clock: Clock = field(default_factory=SystemClock)
    plugin: SentPlugin = field(init=False)
    shown: list[str] = field(init=False, default_factory=list)
    handle: str = field(init=False, default="")
    _pushes: int = field(init=False, default=0)
    _lost: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.plugin = self.new_plugin()

    def new_plugin(self) -> SentPlugin:
        """The plugin of a new process."""
        return SentPlugin(self.make())

    @property
    def goals(self) -> list[Goal]:
        """Goals beyond PRESENT that the plugin knows, in the order of a turndown."""
        return [goal for goal in Goal if goal in self.plugin.traits.goals]

    def journeys(self) -> list[Journey]:
        """Pushes from nothing (or what was disturbed) to content, and from content to other content."""
        nothing = Aim(self.asset, Goal.ABSENT) if Goal.ABSENT in self.goals else None
        return [Journey(nothing, Aim(self.asset)), Journey(Aim(self.asset), Aim(self.changed))]

    def turndowns(self) -> list[Journey]:
        """Pushes from PRESENT to each goal, and back."""
        pairs = [(Aim(self.asset), Aim(self.asset, goal)) for goal in self.goals]
        return [Journey(*pair) for there in pairs for pair in (there, there[::-1])]

    def reader(self, asset: Asset) -> FixedReader:
        """Reads an incarnation in which the subject's asset is `asset`."""
        return FixedReader([asset, *self.others], self.registry, outputs=self.outputs)

    def begin(self, aim: Aim, *, superseded: bool = False) -> FixedPush:
        """A new push to `aim`, with its own operation, under a newer lease than all before."""
        self._pushes += 1
        id = f"operation-{self._pushes}"
        return push_of(target_of(*aim), id, superseded=superseded, epoch=self._pushes)

    def target(self, aim: Aim) -> Target:
        """The target of `aim`, with the handle that is known."""
        return replace(target_of(*aim), handle=self.handle)

    async def diff(self, asset: Asset, goal: Goal = Goal.PRESENT, reader: FixedReader | None = None) -> Diff:
        """The plugin's diff for `asset`."""
        target = replace(self.target(Aim(asset, goal)), lost=self._lost)
        found = await self._noted(self.plugin.diff(target, reader or self.reader(asset)))
        self.shown.append(_encoded(found))
        self._learn(found)
        self._lost = ""
        return found

    async def texts(self, asset: Asset, goal: Goal = Goal.PRESENT) -> list[TextChange]:
        """The texts that a push of `asset` would change, as the plugin returns them."""
        found = [*await self._noted(self.plugin.texts(self.target(Aim(asset, goal)), self.reader(asset)))]
        self.shown += [part for text in found for part in (text.observed, text.intended, text.hidden) if part]
        return found

    def lose(self, operation: Operation) -> None:
        """The process ended before it could keep what `operation` returned."""
        self.handle, self._lost = "", operation.id

    def _learn(self, returned: Diff | Outcome) -> None:
        if isinstance(returned.handle, str):
            self.handle = returned.handle

    async def diff_many(self, wanted: Sequence[tuple[Aim, FixedReader]]) -> list[IndexedDiff]:
        """The plugin's answers to all these requests at once, until it ends or fails."""
        found: list[IndexedDiff] = []

        async def collect() -> None:
            requests = [(self.target(aim), reader) for aim, reader in wanted]
            async for index, answer in self.plugin.diff_many(requests):
                found.append((index, answer))
                shown = str(answer) if isinstance(answer, LehrError) else _encoded(answer)
                self.shown.append(shown)

        with contextlib.suppress(LehrError):  # the rest is asked for one by one
            await self._noted(collect())
        return found

    async def push(
        self,
        asset: Asset,
        goal: Goal = Goal.PRESENT,
        push: FixedPush | None = None,
        reader: FixedReader | None = None,
    ) -> Outcome:
        """Result of pushing `asset`."""
        push = push or self.begin(Aim(asset, goal))
        if self._lost:  # an unknown outcome is looked at before anything else is done
            with contextlib.suppress(LehrError):
                await self.diff(asset, goal, reader)
        try:
            call = self.plugin.push(self.target(Aim(asset, goal)), reader or self.reader(asset), push)
            outcome = await self._noted(call)
        finally:
            self.shown.extend(push.messages)
        self.shown.append(_encoded(outcome))
        self._learn(outcome)
        return outcome

    async def discover(self) -> list[Found]:
        """The drafts that the plugin finds for `query`. Payloads are not shown, so they are not recorded."""
        partition = target_of(self.asset).partition

        async def collect() -> list[Found]:
            return [found async for found in self.plugin.discover(self.query, partition)]

        drafts = await self._noted(collect())
        for draft in drafts:
            self.shown.extend((draft.id, *draft.notes, draft.obstacle))
        return drafts

    async def apply(self, asset: Asset, goal: Goal = Goal.PRESENT) -> None:
        """Push `asset`, which must end done and leave nothing to do."""
        outcome = await self.push(asset, goal)
        hold(outcome.result is Result.DONE, f"a push to {goal} ends done, not {outcome}")
        found = await self.diff(asset, goal)
        hold(found.empty, f"the diff is empty after a push to {goal}, not {found.changes}")

    @contextlib.contextmanager
    def unchanged(self, rule: str) -> Iterator[None]:
        """Within the block, production stays as it is, or `rule` is broken."""
        before = self.observe()
        yield
        hold(self.observe() == before, rule)

    async def start(self, journey: Journey) -> None:
        """Bring production to where `journey` starts."""
        if journey.start is None:
            await self.apply(self.asset)
            self.disturb()
        else:
            await self.apply(*journey.start)

    async def settle(self, operation: Operation) -> None:
        """Wait until the plugin reports that `operation` changes nothing any more."""
        deadline = self.clock.monotonic() + self.patience
        while await self.plugin.status(operation) is not Progress.ENDED:
            hold(self.clock.monotonic() < deadline, f"{operation.id} ends within {self.patience:g} seconds")
            await self.clock.sleep(0.005)
        self._lost = operation.id

    async def restart(self) -> None:
        """Continue with the plugin of a new process."""
        await self.plugin.close()
        self.plugin = self.new_plugin()

    async def _noted(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except BaseException as error:
            # With its causes and notes: logging an exception shows them all.
            self.shown.extend(traceback.format_exception(error))
            raise


def _encoded(returned: Diff | Outcome) -> str:
    return msgspec.json.encode(returned, enc_hook=repr).decode()


Rule = Callable[[Subject], Coroutine[Any, Any, None]]

RULES: Rules[Rule] = Rules()
"""The modules of this package add theirs."""


def rule(function: Rule) -> Rule:
    """Add a rule, which closes the plugin in the end."""

    @functools.wraps(function)
    async def run(subject: Subject) -> None:
        try:
            await function(subject)
        finally:
            await subject.plugin.close()

    return RULES(run)


def applied_rule(function: Rule) -> Rule:
    """Add a rule of production to which `asset` was applied."""

    @functools.wraps(function)
    async def run(subject: Subject) -> None:
        await subject.apply(subject.asset)
        await function(subject)

    return rule(run)


async def stalls(call: Awaitable[object], what: str) -> None:
    """Await `call`, which must raise `StalledError`."""
    with raises(StalledError, f"{what} raises StalledError"):
        await call
