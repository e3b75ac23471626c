"""The rules of `lehr.sdk.plugin`, for any asset plugin.

A test makes a fresh `Subject` for each rule and runs it:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule, tmp_path):
        asyncio.run(rule(subject(tmp_path)))
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from lehr.base.clock import Clock, SystemClock
from lehr.base.errors import StalledError
from lehr.model.asset import Asset
from lehr.model.diff import Diff, Goal
from lehr.model.operation import Operation, Outcome, Progress, Result
from lehr.model.types import Registry
from lehr.sdk.plugin import AssetPlugin
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of

T = TypeVar("T")

_MOST_AWAITS = 1000
_MOST_DIFF_BYTES = 16_384


@dataclass(frozen=True)
class Subject:
    """An asset plugin with a small production of its own, in which nothing was applied yet.

    Attributes:
        plugin: as it is shipped; each rule closes it.
        registry: with the plugin's types.
        asset: what is intended.
        changed: the same id and type with other content.
        disturb: changes production, applied from `asset`, behind the plugin's back.
        observe: all of production that the plugin could touch, as a value to compare.
        others: further assets that the plugin reads.
        secret: a text in the intent that no diff and no message may show; empty for none.
        clock: what the suite waits with.
    """

    plugin: AssetPlugin
    registry: Registry
    asset: Asset
    changed: Asset
    disturb: Callable[[], None]
    observe: Callable[[], object]
    others: tuple[Asset, ...] = ()
    secret: str = ""
    clock: Clock = field(default_factory=SystemClock)

    def reader(self, asset: Asset) -> FixedReader:
        """Reads an incarnation in which the subject's asset is `asset`."""
        return FixedReader([asset, *self.others], self.registry)

    async def diff(self, asset: Asset, goal: Goal = Goal.PRESENT) -> Diff:
        """What the plugin finds for `asset`; checked to be plain, short and without secrets."""
        found = await self.plugin.diff(target_of(asset, goal), self.reader(asset))
        encoded = msgspec.json.encode(found).decode()
        _hold(len(encoded) <= _MOST_DIFF_BYTES, f"a diff is short, not {len(encoded)} bytes")
        self._check_secret(encoded)
        return found

    async def push(self, asset: Asset, goal: Goal = Goal.PRESENT, id: str = "operation-1") -> Outcome:
        """Push `asset` as the operation `id`."""
        target = target_of(asset, goal)
        push = push_of(target, id)
        outcome = await self.plugin.push(target, self.reader(asset), push)
        self._check_secret(outcome.message, *push.messages)
        return outcome

    async def apply(self, asset: Asset, goal: Goal = Goal.PRESENT, id: str = "operation-1") -> None:
        """Push `asset`, which must end done and leave nothing to do."""
        outcome = await self.push(asset, goal, id)
        _hold(outcome.result is Result.DONE, f"a push to {goal} ends done, not {outcome}")
        found = await self.diff(asset, goal)
        _hold(found.empty, f"the diff is empty after a push to {goal}, not {found.changes}")

    async def settle(self, operation: Operation) -> None:
        """Wait until the plugin says that `operation` changes nothing any more."""
        while await self.plugin.status(operation) is not Progress.ENDED:
            await self.clock.sleep(0.005)

    def _check_secret(self, *texts: str) -> None:
        _hold(not self.secret or not any(self.secret in text for text in texts), "no secret is shown")


Rule = Callable[[Subject], Coroutine[Any, Any, None]]


async def diff_never_writes(subject: Subject) -> None:
    """`diff` only looks, whether anything was applied or not, and for every goal it knows."""
    for applied in (False, True):
        if applied:
            await subject.apply(subject.asset)
        before = subject.observe()
        for asset in (subject.asset, subject.changed):
            for goal in (Goal.PRESENT, *sorted(subject.plugin.traits.goals)):
                await subject.diff(asset, goal)
        _hold(subject.observe() == before, "diff never writes")
    await subject.plugin.close()


async def diff_can_be_repeated(subject: Subject) -> None:
    """`diff`, called twice with nothing changed, says the same twice."""
    for asset in (subject.asset, subject.changed):
        first = await subject.diff(asset)
        second = await subject.diff(asset)
        _hold(first.digest() == second.digest(), f"diff says the same twice, not {first} and {second}")
    await subject.plugin.close()


async def push_converges(subject: Subject) -> None:
    """From nothing, and from one content to another and back, the diff is empty after the push."""
    for number, asset in enumerate((subject.asset, subject.changed, subject.asset)):
        _hold(not (await subject.diff(asset)).empty, "what was not applied yet is a difference")
        await subject.apply(asset, id=f"operation-{number}")
    await subject.plugin.close()


async def push_is_idempotent(subject: Subject) -> None:
    """A second push changes nothing that counts."""
    await subject.apply(subject.asset)
    before = subject.observe()
    await subject.apply(subject.asset, id="operation-2")
    _hold(subject.observe() == before, "a push that finds nothing to do changes nothing")
    await subject.plugin.close()


async def disturbance_is_seen_and_healed(subject: Subject) -> None:
    """A change behind the plugin's back is a difference, and a push takes it back."""
    await subject.apply(subject.asset)
    before = subject.observe()
    subject.disturb()
    _hold(not (await subject.diff(subject.asset)).empty, "diff sees a disturbance")
    await subject.apply(subject.asset, id="operation-2")
    _hold(subject.observe() == before, "a push heals a disturbance")
    await subject.plugin.close()


async def push_survives_cancellation(subject: Subject) -> None:
    """Cancelled at any await, and ended as `status` says, a push can simply be repeated."""
    for step in range(1, _MOST_AWAITS):
        target = target_of(subject.asset)
        push = push_of(target, f"cancelled-{step}")
        cancelled = await _cancelled_at(step, _pushed(subject, push))
        await subject.settle(push.operation)
        await subject.apply(subject.asset, id=f"again-{step}")
        if not cancelled:
            break
        subject.disturb()
    else:
        _hold(False, f"a push ends within {_MOST_AWAITS} awaits")
    await subject.plugin.close()


async def unknown_goals_stall(subject: Subject) -> None:
    """A goal that the traits do not name raises `StalledError` and touches nothing."""
    await subject.apply(subject.asset)
    before = subject.observe()
    for goal in set(Goal) - subject.plugin.traits.goals - {Goal.PRESENT}:
        await _stalls(subject.diff(subject.asset, goal), f"diff for the goal {goal}")
        await _stalls(subject.push(subject.asset, goal), f"push for the goal {goal}")
    _hold(subject.observe() == before, "a goal that is not known touches nothing")
    await subject.plugin.close()


async def known_goals_are_reached_and_taken_back(subject: Subject) -> None:
    """Each goal that the traits name is reached from PRESENT, again from itself, and left again."""
    for goal in sorted(subject.plugin.traits.goals):
        await subject.apply(subject.asset, id=f"present-{goal}")
        _hold(not (await subject.diff(subject.asset, goal)).empty, f"{goal} differs from present")
        await subject.apply(subject.asset, goal, id=f"first-{goal}")
        await subject.apply(subject.asset, goal, id=f"second-{goal}")
        _hold(not (await subject.diff(subject.asset)).empty, f"present differs from {goal}")
    await subject.apply(subject.asset, id="last")
    await subject.plugin.close()


async def goals_follow_each_other(subject: Subject) -> None:
    """A turndown passes through the goals in order, each from the one before."""
    await subject.apply(subject.asset)
    for goal in (Goal.DRAINED, Goal.FENCED, Goal.ABSENT):
        if goal in subject.plugin.traits.goals:
            await subject.apply(subject.asset, goal, id=f"operation-{goal}")
    await subject.plugin.close()


async def intent_comes_through_the_reader(subject: Subject) -> None:
    """`diff` reads its own asset through the reader; without it there is nothing to go by."""
    reader = subject.reader(subject.asset)
    await subject.plugin.diff(target_of(subject.asset), reader)
    _hold(subject.asset.id in reader.reads, "diff reads its asset through the reader")
    nothing = FixedReader([], subject.registry)
    target = target_of(subject.asset)
    before = subject.observe()
    await _stalls(subject.plugin.diff(target, nothing), "diff of an asset that is not there")
    await _stalls(subject.plugin.push(target, nothing, push_of(target)), "push of an asset that is not there")
    _hold(subject.observe() == before, "an asset that is not in the incarnation touches nothing")
    await subject.plugin.close()


async def finished_operations_have_ended(subject: Subject) -> None:
    """`status` of an operation that ended, or that the plugin never heard of, is ENDED."""
    await subject.apply(subject.asset)
    for id in ("operation-1", "never-heard-of"):
        operation = push_of(target_of(subject.asset), id).operation
        _hold(await subject.plugin.status(operation) is Progress.ENDED, f"status of {id} is ended")
    await subject.plugin.close()


async def close_can_be_repeated(subject: Subject) -> None:
    """`close` may be called twice, and production goes on."""
    await subject.apply(subject.asset)
    before = subject.observe()
    await subject.plugin.close()
    await subject.plugin.close()
    _hold(subject.observe() == before, "close leaves production alone")


RULES: tuple[Rule, ...] = (
    diff_never_writes,
    diff_can_be_repeated,
    push_converges,
    push_is_idempotent,
    disturbance_is_seen_and_healed,
    push_survives_cancellation,
    unknown_goals_stall,
    known_goals_are_reached_and_taken_back,
    goals_follow_each_other,
    intent_comes_through_the_reader,
    finished_operations_have_ended,
    close_can_be_repeated,
)


def _hold(condition: bool, rule: str) -> None:
    if not condition:
        raise AssertionError(rule)


async def _stalls(call: Awaitable[object], what: str) -> None:
    try:
        await call
    except StalledError:
        return
    raise AssertionError(f"{what} raises StalledError")


async def _pushed(subject: Subject, push: FixedPush) -> None:
    await subject.plugin.push(target_of(subject.asset), subject.reader(subject.asset), push)


async def _cancelled_at(step: int, coroutine: Coroutine[Any, Any, None]) -> bool:
    """Run `coroutine`, cancelled while it waits for the `step`th time. False if it waits less often."""
    waits = _Waits(step)
    task = asyncio.ensure_future(_cancel_at(waits, coroutine))
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
    return waits.seen >= step


@dataclass
class _Waits:
    cancel_at: int
    seen: int = 0


@types.coroutine
def _cancel_at(waits: _Waits, coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Awaits what `coroutine` awaits, and has its task cancelled from outside in one of the waits."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    thrown: BaseException | None = None
    while True:
        try:
            waiting = coroutine.send(None) if thrown is None else coroutine.throw(thrown)
        except StopIteration as stop:
            result: T = stop.value
            return result
        waits.seen += 1
        if waits.seen == waits.cancel_at and task is not None:
            loop.call_soon(task.cancel)
        thrown = None
        try:
            yield waiting
        except BaseException as error:
            thrown = error
