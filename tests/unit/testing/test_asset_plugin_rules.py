"""The conformance suite of asset plugins finds what it claims to find."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar

import msgspec
import pytest
import structlog

from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetId, AssetKey, Partition, make_asset
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.types import AssetType, Registry
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.testing.conformance.asset_plugin import (
    RULES,
    Rule,
    Subject,
    conduct,
    interruption,
    looking,
    pushing,
)
from lehr.testing.conformance.asset_plugin.cancelling import spread
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of

World = dict[str, str]
SECRET = "hunter2"
LOG = structlog.get_logger()
NOTHING: tuple[AssetKey, ...] = ()


class Value(msgspec.Struct, frozen=True):
    value: str


class Good(AssetPlugin):
    """Keeps two entries of a dictionary, with an await between them."""

    types: ClassVar[tuple[str, ...]] = ("test.Value",)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}))

    def __init__(self, world: World) -> None:
        self.world = world

    def intended(self, target: Target, read: Reader) -> World:
        value = read.payload(target.id, Value).value
        if target.goal is Goal.DRAINED:
            raise StalledError("a value cannot be drained")
        if "trouble" in self.world:
            raise TransientError("the dictionary cannot be reached")
        known = {Goal.PRESENT: {"a": value, "b": value}, Goal.FENCED: {"fenced": value}}
        return known.get(target.goal, {})

    async def diff(self, target: Target, read: Reader) -> Diff:
        intended = self.intended(target, read)
        await asyncio.sleep(0)
        if intended == self.world:
            return NO_DIFF
        wanted, found = len("".join(intended.values())), len("".join(self.world.values()))
        return Diff((Change("value", f"{wanted} characters", {"found": found}),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        intended = self.intended(target, read)
        await asyncio.sleep(0)
        self.world.clear()
        for key, value in intended.items():
            push.progress(f"setting {key}")
            self.world[key] = value
            await asyncio.sleep(0)
        return DONE


# --- diff --------------------------------------------------------------------


class WritesInDiff(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        if not self.world and target.goal is Goal.FENCED:
            self.world["looked"] = "yes"
        return found


class SaysSomethingElseEachTime(Good):
    count = 0

    async def diff(self, target: Target, read: Reader) -> Diff:
        diff = await super().diff(target, read)
        self.count += 1
        return diff if diff.empty else Diff((Change("count", 0, self.count),))


class ReadsWhenNew(Good):
    """Reads what it needs once, and so wakes no more when that changes."""

    known = False

    async def diff(self, target: Target, read: Reader) -> Diff:
        if not self.known:
            read.asset(AssetId("other"))
        self.known = True
        return await super().diff(target, read)


class LeavesALockWhenCancelled(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        self.world["lock"] = "x"
        await asyncio.sleep(0)
        del self.world["lock"]
        return found


def showing(*changes: Change, **effects: Any) -> type[Good]:
    """A plugin that describes differences like this."""

    class Showing(Good):
        async def diff(self, target: Target, read: Reader) -> Diff:
            found = await super().diff(target, read)
            return found if found.empty else Diff(changes or found.changes, Effects(**effects))

    return Showing


class EffectsOfNothing(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        return Diff(effects=Effects(disruptive=True)) if found.empty else found


class KnowsIntentByItself(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        asset = read.asset(target.id)
        return NO_DIFF if asset is None else await super().diff(target, read)


class PushesWithoutIntent(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if read.asset(target.id) is None:
            return DONE
        return await super().push(target, read, push)


class BelievesItself(Good):
    """Finds a difference in whatever it did not push itself."""

    pushed = False

    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        return found if self.pushed or not found.empty else Diff((Change("value", "mine", "another's"),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.pushed = True
        return await super().push(target, read, push)


# --- push --------------------------------------------------------------------


class NeverLooks(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        self.intended(target, read)
        return NO_DIFF


class PushesHalf(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        self.world.pop("b", None)
        return outcome


class Counts(Good):
    """Each push leaves a trace."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        intended = self.intended(target, read)
        world = {key: value for key, value in self.world.items() if not key.startswith("trace")}
        return NO_DIFF if world == intended else Diff((Change("value", 1, 2),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        traces = {key: value for key, value in self.world.items() if key.startswith("trace")}
        outcome = await super().push(target, read, push)
        self.world.update(traces)
        self.world[f"trace-{push.operation.id}"] = ""
        return outcome


class Remembers(Good):
    """Believes that production is as the last push of it left it."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        expected = {Goal.PRESENT: ["a", "b"], Goal.FENCED: ["fenced"]}.get(target.goal, [])
        disturbed = self.world.get("a") == "disturbed"
        return NO_DIFF if disturbed and sorted(self.world) == expected else found


class BoastsWhenOvertaken(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return DONE if push.superseded else await super().push(target, read, push)


class StallsWhenOvertaken(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if push.superseded:
            return Outcome(Result.STALLED, "superseded")
        return await super().push(target, read, push)


class TellsStories(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        push.progress("once upon a time\nthere was a push")
        return await super().push(target, read, push)


class RetriesWhatIsDone(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return msgspec.structs.replace(await super().push(target, read, push), retry_at=1.0)


class KnowsEveryGoal(Good):
    def intended(self, target: Target, read: Reader) -> World:
        if target.goal is Goal.DRAINED:
            return {"drained": read.payload(target.id, Value).value}
        return super().intended(target, read)


class FencingIsNothing(Good):
    def intended(self, target: Target, read: Reader) -> World:
        goal = Goal.PRESENT if target.goal is Goal.FENCED else target.goal
        return super().intended(msgspec.structs.replace(target, goal=goal), read)


class CannotFollowFenced(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if target.goal is Goal.ABSENT and "fenced" in self.world:
            raise StalledError("unfence it first")
        return await super().push(target, read, push)


# --- interruption ------------------------------------------------------------


class LocksItselfOut(Good):
    """A push that was cancelled half-way makes the next one of the same process fail."""

    goal = Goal.PRESENT
    locked = False

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        intended = self.intended(target, read)
        if self.locked and intended != self.world:
            return Outcome(Result.FAILED, "locked")
        self.locked = target.goal is self.goal
        outcome = await super().push(target, read, push)
        self.locked = False
        return outcome


class LocksItselfOutOfFences(LocksItselfOut):
    goal = Goal.FENCED


class GoesOnWithWhatItBegan(Good):
    """Resumes a push that was broken off, whatever is intended by now."""

    begun: World | None = None

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        intended = self.intended(target, read)
        if self.begun is None or target.goal is not Goal.PRESENT:
            self.begun = intended
        outcome = await super().push(target, read, push)
        self.world.clear()
        self.world.update(self.begun)
        self.begun = None
        return outcome


class LocksOthersOut(Good):
    """A lock in production that only the process that took it can open again."""

    LOCKS: ClassVar[dict[int, object]] = {}

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        intended = self.intended(target, read)
        owner = self.LOCKS.setdefault(id(self.world), self)
        if owner is not self and intended != self.world:
            return Outcome(Result.FAILED, "locked")
        outcome = await super().push(target, read, push)
        del self.LOCKS[id(self.world)]
        return outcome


class LeavesATaskBehind(Good):
    """Goes on in a task of its own when its push is cancelled, and denies it."""

    tasks: ClassVar[set[asyncio.Task[Outcome]]] = set()

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        task = asyncio.ensure_future(self.later(super().push(target, read, push)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return await asyncio.shield(task)

    async def later(self, pushed: Coroutine[Any, Any, Outcome]) -> Outcome:
        await asyncio.sleep(0.001)
        return await pushed


class NeverHeardOfIt(Good):
    async def status(self, operation: Operation) -> Progress:
        return Progress.RUNNING if operation.id == "never-heard-of" else Progress.ENDED


class RunsAgain(Good):
    asked: Operation | None = None

    async def status(self, operation: Operation) -> Progress:
        again, self.asked = self.asked == operation, operation
        return Progress.RUNNING if again else Progress.ENDED


# --- conduct -----------------------------------------------------------------


class ServesSomethingElse(Good):
    types = ("test.Value", "test.Nothing")


class HasNoTime(Good):
    traits = msgspec.structs.replace(Good.traits, push_timeout=0.0)


class ShowsSecrets(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        diff = await super().diff(target, read)
        value = read.payload(target.id, Value).value
        return diff if diff.empty else Diff((Change("value", value, None),))


class TellsSecrets(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        push.progress(f"setting {read.payload(target.id, Value).value}")
        return await super().push(target, read, push)


class LogsSecrets(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        logging.getLogger("test").debug("setting %s", read.payload(target.id, Value).value)
        return await super().push(target, read, push)


class LogsSecretsWithFields(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        LOG.debug("setting", value=read.payload(target.id, Value).value)
        return await super().push(target, read, push)


class RaisesSecrets(Good):
    """Shows them as the cause of what it raises."""

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        try:
            return await super().push(target, read, push)
        except TransientError as error:
            cause = ValueError(read.payload(target.id, Value).value)
            raise TransientError(error.what) from cause


class RaisesAnything(Good):
    def intended(self, target: Target, read: Reader) -> World:
        try:
            return super().intended(target, read)
        except TransientError as error:
            raise ConnectionError from error


class BoastsInTrouble(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        try:
            return await super().push(target, read, push)
        except TransientError:
            return DONE

    async def diff(self, target: Target, read: Reader) -> Diff:
        try:
            return await super().diff(target, read)
        except TransientError:
            return Diff((Change("value", "x", None),))


class HintsAtNames(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        yield "value"  # type: ignore[misc]


class HintsAtNothing(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        yield AssetKey(Partition("Test"), AssetId(""))


class HealsByItself(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        while True:
            await asyncio.sleep(0.001)
            self.world["watched"] = f"{len(self.world)} {asyncio.get_running_loop().time()}"
            for key in NOTHING:
                yield key


class WatchRaises(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        for key in NOTHING:
            yield key
        raise OSError("too many watches")


class CleansUpOnClose(Good):
    closed = False

    async def close(self) -> None:
        if self.closed:
            self.world.clear()
        self.closed = True


BREAKS: list[tuple[Rule, type[Good]]] = [
    (looking.diff_never_writes, WritesInDiff),
    (looking.diff_can_be_repeated, SaysSomethingElseEachTime),
    (looking.diff_can_be_repeated, ReadsWhenNew),
    (looking.diff_survives_cancellation, LeavesALockWhenCancelled),
    (looking.diffs_are_plain, showing(Change("value", "x" * 20_000, None))),
    (looking.diffs_are_plain, showing(Change("value", b"bytes", None))),
    (looking.diffs_are_plain, showing(Change("value", ("a", "tuple"), None))),
    (looking.diffs_are_plain, showing(Change("value", "same", "same"))),
    (looking.diffs_are_plain, showing(Change("value", 1, 2), Change("value", 3, 4))),
    (looking.diffs_are_plain, showing(Change("", 1, 2))),
    (looking.diffs_are_plain, showing(Change("/two\nlines", 1, 2))),
    (looking.diffs_are_plain, showing(capacity=0.5)),
    (looking.diffs_are_plain, EffectsOfNothing),
    (looking.intent_comes_through_the_reader, KnowsIntentByItself),
    (looking.intent_comes_through_the_reader, PushesWithoutIntent),
    (looking.memory_is_only_a_hint, BelievesItself),
    (pushing.push_converges, NeverLooks),
    (pushing.push_converges, PushesHalf),
    (pushing.push_is_idempotent, Counts),
    (pushing.disturbance_is_seen_and_healed, Remembers),
    (pushing.overtaken_pushes_are_honest, BoastsWhenOvertaken),
    (pushing.overtaken_pushes_are_honest, StallsWhenOvertaken),
    (pushing.messages_are_one_line, TellsStories),
    (pushing.messages_are_one_line, RetriesWhatIsDone),
    (pushing.unknown_goals_stall, KnowsEveryGoal),
    (pushing.known_goals_are_reached_and_taken_back, FencingIsNothing),
    (pushing.goals_follow_each_other, CannotFollowFenced),
    (interruption.push_survives_cancellation, LocksItselfOut),
    (interruption.turndown_survives_cancellation, LocksItselfOutOfFences),
    (interruption.push_survives_new_intent, GoesOnWithWhatItBegan),
    (interruption.push_survives_a_crash, LocksOthersOut),
    (interruption.ended_operations_change_nothing, LeavesATaskBehind),
    (interruption.ended_operations_change_nothing, RunsAgain),
    (interruption.finished_operations_have_ended, NeverHeardOfIt),
    (conduct.traits_say_what_is_served, ServesSomethingElse),
    (conduct.traits_say_what_is_served, HasNoTime),
    (conduct.secrets_are_not_shown, ShowsSecrets),
    (conduct.secrets_are_not_shown, TellsSecrets),
    (conduct.secrets_are_not_shown, LogsSecrets),
    (conduct.secrets_are_not_shown, LogsSecretsWithFields),
    (conduct.secrets_are_not_shown, RaisesSecrets),
    (conduct.trouble_is_named, RaisesAnything),
    (conduct.trouble_is_named, BoastsInTrouble),
    (conduct.watch_names_assets, HintsAtNames),
    (conduct.watch_names_assets, HintsAtNothing),
    (conduct.watch_names_assets, HealsByItself),
    (conduct.watch_names_assets, WatchRaises),
    (conduct.close_can_be_repeated, CleansUpOnClose),
]


def subject(make: Callable[[World], AssetPlugin]) -> Subject:
    world: World = {}

    def disturb() -> None:
        world["a"] = "disturbed"

    @contextmanager
    def trouble() -> Iterator[None]:
        world["trouble"] = "yes"
        yield
        world.pop("trouble", None)

    return Subject(
        make=lambda: make(world),
        registry=Registry([AssetType("test.Value", Value)]),
        asset=make_asset(AssetId("value"), "test.Value", Value(f"one {SECRET}"), {}),
        changed=make_asset(AssetId("value"), "test.Value", Value(f"another {SECRET}"), {}),
        disturb=disturb,
        observe=lambda: dict(world),
        secret=SECRET,
        troubles=(trouble,),
        linger=0.005,
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_plugin_keeps_every_rule(rule: Rule) -> None:
    asyncio.run(rule(subject(Good)))


@pytest.mark.parametrize(("rule", "broken"), BREAKS, ids=lambda value: value.__name__)
def test_a_broken_plugin_breaks_its_rule(rule: Rule, broken: Callable[[World], AssetPlugin]) -> None:
    with pytest.raises(AssertionError, match=f"^{rule.__name__}: "):
        asyncio.run(rule(subject(broken)))


def test_every_rule_of_plugins_has_a_plugin_that_breaks_it() -> None:
    assert {rule for rule, _ in BREAKS} == set(RULES)


def test_a_push_is_cancelled_at_every_await() -> None:
    cancelled = []

    class Counted(Good):
        async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
            try:
                return await super().push(target, read, push)
            except asyncio.CancelledError:
                if "two" in read.payload(target.id, Value).value:
                    cancelled.append(sorted(self.world))
                raise

    held = subject(Counted)
    held.changed = make_asset(AssetId("value"), "test.Value", Value("two"), {})
    asyncio.run(interruption.push_survives_cancellation(held))
    assert cancelled == [["a", "b"], ["a"], ["a", "b"]]


@pytest.mark.parametrize(
    ("waits", "most", "expected"),
    [(100, 3, [1, 50, 100]), (100, 1, [1]), (2, 3, [1, 2, 3]), (2, None, [1, 2, 3])],
)
def test_interruptions_are_spread_evenly(waits: int, most: int | None, expected: list[int]) -> None:
    assert list(islice(spread(waits, most), 3)) == expected


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
