"""The conformance suite of asset plugins finds what it claims to find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from lehr.base.errors import StalledError
from lehr.model.asset import AssetId, make_asset
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.types import AssetType, Registry
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.testing.conformance import asset_plugin as suite
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of

World = dict[str, str]
SECRET = "hunter2"


class Value(msgspec.Struct, frozen=True):
    value: str


class Good(AssetPlugin):
    """Keeps two entries of a dictionary, with an await between them."""

    types = ("test.Value",)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}))

    def __init__(self, world: World) -> None:
        self.world = world

    def intended(self, target: Target, read: Reader) -> World:
        value = read.payload(target.id, Value).value
        if target.goal is Goal.DRAINED:
            raise StalledError("a value cannot be drained")
        known = {Goal.PRESENT: {"a": value, "b": value}, Goal.FENCED: {"fenced": value}}
        return known.get(target.goal, {})

    async def diff(self, target: Target, read: Reader) -> Diff:
        intended = self.intended(target, read)
        await asyncio.sleep(0)
        if intended == self.world:
            return NO_DIFF
        return Diff((Change("value", len(intended), len(self.world)),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        intended = self.intended(target, read)
        await asyncio.sleep(0)
        self.world.clear()
        for key, value in intended.items():
            self.world[key] = value
            await asyncio.sleep(0)
        return DONE


class WritesInDiff(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        self.world["looked"] = "yes"
        return await super().diff(target, read)


class SaysSomethingElseEachTime(Good):
    count = 0

    async def diff(self, target: Target, read: Reader) -> Diff:
        diff = await super().diff(target, read)
        self.count += 1
        return diff if diff.empty else Diff((Change("count", 0, self.count),))


class NeverLooks(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        self.intended(target, read)
        return NO_DIFF


class Remembers(Good):
    """Believes that production is as the last push left it."""

    pushed: World | None = None

    async def diff(self, target: Target, read: Reader) -> Diff:
        return NO_DIFF if self.intended(target, read) == self.pushed else Diff((Change("value", 1, 2),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        self.pushed = self.intended(target, read)
        return outcome


class PushesHalf(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        self.world.pop("b", None)
        return outcome


class Counts(Good):
    """Each push leaves a trace."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        world = {key: value for key, value in self.world.items() if not key.startswith("trace")}
        return NO_DIFF if world == self.intended(target, read) else Diff((Change("value", 1, 2),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        self.world[f"trace-{push.operation.id}"] = ""
        return outcome


class LocksItselfOut(Good):
    """A push that was cancelled half-way makes the next one fail."""

    locked = False

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if self.locked:
            return Outcome(Result.FAILED, "locked")
        self.locked = True
        outcome = await super().push(target, read, push)
        self.locked = False
        return outcome


class KnowsEveryGoal(Good):
    def intended(self, target: Target, read: Reader) -> World:
        value = read.payload(target.id, Value).value
        return {"a": value, "b": value} if target.goal is Goal.PRESENT else {target.goal: value}


class IgnoresGoals(Good):
    def intended(self, target: Target, read: Reader) -> World:
        return super().intended(msgspec.structs.replace(target, goal=Goal.PRESENT), read)


class CannotFollowFenced(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if target.goal is Goal.ABSENT and "fenced" in self.world:
            raise StalledError("unfence it first")
        return await super().push(target, read, push)


class KnowsIntentByItself(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        asset = read.asset(target.id)
        return NO_DIFF if asset is None else await super().diff(target, read)


class NeverEnds(Good):
    async def status(self, operation: Operation) -> Progress:
        return Progress.RUNNING


class CleansUpOnClose(Good):
    async def close(self) -> None:
        self.world.clear()


class ShowsSecrets(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        diff = await super().diff(target, read)
        value = read.payload(target.id, Value).value
        return diff if diff.empty else Diff((Change("value", value, None),))


class IsVerbose(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        diff = await super().diff(target, read)
        return diff if diff.empty else Diff((Change("value", "x" * 20_000, None),))


def subject(make: Callable[[World], AssetPlugin]) -> Subject:
    world: World = {}

    def disturb() -> None:
        world["a"] = "disturbed"

    return Subject(
        plugin=make(world),
        registry=Registry([AssetType("test.Value", Value)]),
        asset=make_asset(AssetId("value"), "test.Value", Value(f"one {SECRET}"), {}),
        changed=make_asset(AssetId("value"), "test.Value", Value(f"two {SECRET}"), {}),
        disturb=disturb,
        observe=lambda: dict(world),
        secret=SECRET,
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_plugin_keeps_every_rule(rule: Rule) -> None:
    asyncio.run(rule(subject(Good)))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (WritesInDiff, suite.diff_never_writes),
        (SaysSomethingElseEachTime, suite.diff_can_be_repeated),
        (NeverLooks, suite.push_converges),
        (PushesHalf, suite.push_converges),
        (Counts, suite.push_is_idempotent),
        (Remembers, suite.disturbance_is_seen_and_healed),
        (LocksItselfOut, suite.push_survives_cancellation),
        (KnowsEveryGoal, suite.unknown_goals_stall),
        (IgnoresGoals, suite.known_goals_are_reached_and_taken_back),
        (CannotFollowFenced, suite.goals_follow_each_other),
        (KnowsIntentByItself, suite.intent_comes_through_the_reader),
        (NeverEnds, suite.finished_operations_have_ended),
        (CleansUpOnClose, suite.close_can_be_repeated),
        (ShowsSecrets, suite.diff_can_be_repeated),
        (IsVerbose, suite.diff_can_be_repeated),
    ],
    ids=lambda value: value.__name__,
)
def test_a_broken_plugin_breaks_its_rule(broken: Callable[[World], AssetPlugin], rule: Rule) -> None:
    with pytest.raises((AssertionError, StalledError)):
        asyncio.run(rule(subject(broken)))


def test_a_push_is_cancelled_at_every_await() -> None:
    cancelled = []

    class Counted(Good):
        async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
            try:
                return await super().push(target, read, push)
            except asyncio.CancelledError:
                cancelled.append(dict(self.world))
                raise

    asyncio.run(suite.push_survives_cancellation(subject(Counted)))
    assert [sorted(world) for world in cancelled] == [[], ["a"], ["a", "b"]]


def test_a_reader_records_what_it_was_asked_for() -> None:
    asset = make_asset(AssetId("a"), "test.Value", Value("x"), {})
    reader = FixedReader([asset], Registry([AssetType("test.Value", Value)]), incarnation=7)
    assert reader.payload(AssetId("a"), Value) == Value("x")
    assert reader.asset(AssetId("b")) is None
    assert reader.addon(AssetId("c"), "test.Addon", Value) is None
    with pytest.raises(StalledError, match="incarnation 7 has no asset d"):
        reader.payload(AssetId("d"), Value)
    with pytest.raises(StalledError, match="not a Target"):
        reader.payload(AssetId("a"), Target)
    assert reader.reads == ["a", "b", "c", "d", "a"]


def test_a_push_keeps_what_was_said_and_can_be_overtaken() -> None:
    target = target_of(make_asset(AssetId("a"), "test.Value", Value("x"), {}), Goal.ABSENT, incarnation=7)
    push: FixedPush = push_of(target, "op")
    push.progress("half-way")
    assert (push.operation.id, push.operation.goal, push.operation.content) == ("op", Goal.ABSENT, 7)
    assert push.messages == ["half-way"]
    assert not push.superseded
    assert push_of(target, superseded=True).superseded
