"""A few plugins that keep every rule, and those that break a rule of diffs, pushes or interruption."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, ClassVar

import msgspec

from lehr.base.errors import FencedError, LehrError, StalledError, TransientError
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.sdk.plugin import AssetPlugin, Fencing, Found, Push, Reader, Traits


class World(dict[str, str]):
    """Production, which knows the newest lease that anybody wrote under.

    What has crashed is back when it has been looked at three times.
    """

    epoch = 0
    crashed: dict[str, str] | None = None
    looks = 0

    def crash(self) -> None:
        self.crashed, self.looks = dict(self), 0
        self.clear()

    def look(self) -> bool:
        """Whether it is recovering."""
        self.looks += 1
        if self.crashed is not None and self.looks > 2:
            self.update(self.crashed)
            self.crashed = None
        return self.crashed is not None


SECRET = "hunter2"

Requests = Sequence[tuple[Target, Reader]]


class Value(msgspec.Struct, frozen=True):
    value: str


class Good(AssetPlugin):
    """Keeps two entries of a dictionary, with an await between them."""

    types: ClassVar[tuple[str, ...]] = ("test.Value",)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}))

    def __init__(self, world: World) -> None:
        self.world = world

    def intended(self, target: Target, read: Reader) -> dict[str, str]:
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


class ComparesManyByTheFirst(Good):
    """Gives all of a batch the answer for one of them."""

    async def diff_many(self, requests: Requests) -> AsyncIterator[tuple[int, Diff | LehrError]]:
        diff = await self.diff(*requests[0])
        for index in range(len(requests)):
            yield index, diff


class MixesUpABatch(Good):
    """Answers count from one."""

    async def diff_many(self, requests: Requests) -> AsyncIterator[tuple[int, Diff | LehrError]]:
        for index, (target, read) in enumerate(requests, start=1):
            yield index, await self.diff(target, read)


class AnswersABatchTwice(Good):
    async def diff_many(self, requests: Requests) -> AsyncIterator[tuple[int, Diff | LehrError]]:
        for index in (0, 0):
            yield index, await self.diff(*requests[index])


class RemembersInABatch(Good):
    """Reads nothing that it read in the batch before, and so wakes no more when that changes."""

    async def diff_many(self, requests: Requests) -> AsyncIterator[tuple[int, Diff | LehrError]]:
        [first, *_others] = requests
        yield 0, await self.diff(first[0], copy.deepcopy(first[1]))


class WritesInABatch(Good):
    async def diff_many(self, requests: Requests) -> AsyncIterator[tuple[int, Diff | LehrError]]:
        self.world["batch"] = "x"
        yield 0, await self.diff(*requests[0])


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


class FencesOvertaken(Good):
    """Refuses an overtaken push before it changes anything, which keeps every rule."""

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        if push.superseded:
            raise FencedError("newer content was pushed")
        return await super().push(target, read, push)


class FencesWhatItHasDone(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        if push.superseded:
            raise FencedError("newer content was pushed")
        return outcome


class TellsStories(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        push.progress("once upon a time\nthere was a push")
        return await super().push(target, read, push)


class RetriesWhatIsDone(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return msgspec.structs.replace(await super().push(target, read, push), retry_at=1.0)


class KnowsEveryGoal(Good):
    def intended(self, target: Target, read: Reader) -> dict[str, str]:
        if target.goal is Goal.DRAINED:
            return {"drained": read.payload(target.id, Value).value}
        return super().intended(target, read)


class FencingIsNothing(Good):
    def intended(self, target: Target, read: Reader) -> dict[str, str]:
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

    begun: dict[str, str] | None = None

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
        for _ in range(20):  # longer than it takes to cancel somebody
            await asyncio.sleep(0)
        return await pushed


class NeverHeardOfIt(Good):
    async def status(self, operation: Operation) -> Progress:
        return Progress.RUNNING if operation.id == "never-received" else Progress.ENDED


class NeverEnds(Good):
    """Takes whatever did not end well for something that still runs."""

    begun: frozenset[str] = frozenset()

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.begun |= {push.operation.id}
        outcome = await super().push(target, read, push)
        self.begun -= {push.operation.id}
        return outcome

    async def status(self, operation: Operation) -> Progress:
        return Progress.RUNNING if operation.id in self.begun else Progress.ENDED


class RunsAgain(Good):
    asked: Operation | None = None

    async def status(self, operation: Operation) -> Progress:
        again, self.asked = self.asked == operation, operation
        return Progress.RUNNING if again else Progress.ENDED


class Fenced(Good):
    """Whoever comes with an older lease is refused."""

    traits = msgspec.structs.replace(Good.traits, fencing=Fencing.NATIVE)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        intended = self.intended(target, read)
        await asyncio.sleep(0)
        self.admit(push)
        self.world.clear()
        for key, value in intended.items():
            self.admit(push)
            self.world[key] = value
            await asyncio.sleep(0)
        return DONE

    def admit(self, push: Push) -> None:
        if push.operation.epoch < self.world.epoch:
            raise TransientError("another writer has taken over")
        self.world.epoch = push.operation.epoch


class ChecksOnlyAtFirst(Fenced):
    def admit(self, push: Push) -> None:
        if not self.world or push.operation.epoch > self.world.epoch:
            super().admit(push)


class ComparesNothing(Good):
    traits = msgspec.structs.replace(Good.traits, fencing=Fencing.COMPARE_AND_SWAP)


class Swaps(Good):
    """Refuses what rests on an older state."""

    traits = ComparesNothing.traits

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        intended, seen = self.intended(target, read), dict(self.world)
        await asyncio.sleep(0)
        if self.world != seen:
            raise TransientError("it was changed in the meantime")
        self.world.clear()
        self.world.update(intended)
        await asyncio.sleep(0)
        return DONE


# --- recovery ----------------------------------------------------------------


class Recovers(Good):
    """Serves a production that restarts what crashes, and waits for it."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        recovering = self.world.look()
        found = await super().diff(target, read)
        return found if found.empty or not recovering else self.waiting(found)

    def waiting(self, found: Diff) -> Diff:
        return msgspec.structs.replace(found, look_again=0.001)


class PushesWhatRecovers(Recovers):
    def waiting(self, found: Diff) -> Diff:
        return found


class WaitsForItsOwnPushes(Recovers):
    """Remembers that it has pushed, so that only the process that did waits for a recovery."""

    pushed = False

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.pushed = True
        return await super().push(target, read, push)

    def waiting(self, found: Diff) -> Diff:
        return super().waiting(found) if self.pushed else found


class WaitsForEver(Recovers):
    """Waits for what never comes back."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await Good.diff(self, target, read)
        return found if found.empty else self.waiting(found)


class OverlooksCrashes(Recovers):
    """Takes what is about to be there for what is there."""

    def waiting(self, found: Diff) -> Diff:
        return NO_DIFF


# --- discovery ---------------------------------------------------------------


class Discovers(Good):
    """Finds its one value, and beside it a thing that is none."""

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        if "trouble" in self.world:
            raise TransientError("the dictionary cannot be reached")
        if "a" in self.world:
            yield Found(id="value", type="test.Value", payload={"value": self.world["a"]})
        yield Found(id="other", type="test.Value", payload={}, obstacle="it has no value")


class DiscoversSomethingElse(Discovers):
    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        yield Found(id="value", type="test.Value", payload={"value": "what it should be"})


class FindsObstaclesAlone(Discovers):
    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        yield Found(id="value", type="test.Value", payload={}, obstacle="it is too much work")


class MarksWhatItFinds(Discovers):
    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        async for found in super().discover(query, partition):
            yield found
        self.world["found"] = "yes"


class FindsOnce(Discovers):
    found = False

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        if not self.found:
            self.found = True
            async for found in super().discover(query, partition):
                yield found
