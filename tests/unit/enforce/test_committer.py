"""Group commit: in order, nothing lost, nothing told before it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError
from lehr.enforce.committer import MOST_WRITES, Committer
from lehr.model.asset import Partition
from lehr.model.reason import Reason
from lehr.model.writes import KeepLease, Refused, TakeLease, Write
from lehr.testing.virtual import VirtualClock, run


def write(name: str | int) -> Write:
    """A write that can be told from others."""
    return TakeLease(Partition(str(name)), "one", 1.0)


class Recorder:
    """Answers each write with its name; fails as long as it has failures left.

    Attributes:
        commits: names of the writes of every commit that succeeded.
        tries: how many commits there were.
    """

    def __init__(self, failures: Sequence[Exception] = (), poison: str = "") -> None:
        """A commit of a write with the name `poison` always fails."""
        self._poison = poison
        self.commits: list[list[str]] = []
        self.tries = 0
        self._failures = list(failures)

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        self.tries += 1
        if self._failures:
            raise self._failures.pop(0)
        if any(item.partition == self._poison for item in writes):
            "\ud800".encode()
        self.commits.append([str(item.partition) for item in writes])
        return [item.seconds if isinstance(item, KeepLease) else str(item.partition) for item in writes]


class Slow:
    """Blocking calls that take a second of virtual time, and whose effect comes at their end."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def run(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        await self._clock.sleep(1.0)
        return call(*args, **kwargs)

    def close(self) -> None:
        pass


Scenario = Callable[[Committer, Recorder, VirtualClock], Coroutine[Any, Any, None]]


def play(
    scenario: Scenario,
    failures: Sequence[Exception] = (),
    poison: str = "",
    store: Recorder | None = None,
) -> Recorder:
    store = store or Recorder(failures, poison)

    async def main() -> None:
        clock = VirtualClock()
        slow: Blocking = Slow(clock)
        committer = Committer(store, slow, clock)  # type: ignore[arg-type]
        running = asyncio.create_task(committer.run())
        async with asyncio.timeout(1000):
            await scenario(committer, store, clock)
        running.cancel()
        await asyncio.wait((running,))

    run(main, seed=1)
    return store


def test_what_comes_while_a_commit_is_made_goes_into_the_next() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        committer.post([write("a")])
        await clock.sleep(0.5)
        committer.post([write("b"), write("c")])
        committer.post([write("d")])
        await committer.flush()

    assert play(scenario).commits == [["a"], ["b", "c", "d"]]


def test_everybody_gets_their_own_answers_once_they_are_durable() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        committer.post([write("x")])
        answers = await asyncio.gather(
            committer.ask(write("a"), write("b")), committer.ask(write("c")), committer.ask(write("d"))
        )
        assert sorted(answers) == [["a", "b"], ["c"], ["d"]]
        assert clock.monotonic() >= 1.0
        assert sum(len(commit) for commit in store.commits) == 5

    play(scenario)


def test_who_posts_is_told_what_the_store_refuses() -> None:
    class Refusing(Recorder):
        def commit(self, writes: Sequence[Any]) -> list[Any]:
            names = super().commit(writes)
            return [Refused(Reason.DAMAGED, name) if name in "bd" else name for name in names]

    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        told: list[tuple[Write, str]] = []
        committer.post([write("a")])
        committer.post([write("b"), write("c")], lambda item, refused: told.append((item, refused.message)))
        committer.post([write("d")])
        await committer.flush()
        assert told == [(write("b"), "b")]

    play(scenario, store=Refusing())


def test_writes_keep_the_order_in_which_they_were_given() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        for number in range(20):
            committer.post([write(number)])
            await clock.sleep(0.3)
        await committer.ask(write("last"))

    commits = play(scenario).commits
    assert [name for commit in commits for name in commit] == [*map(str, range(20)), "last"]


def test_a_commit_is_bounded_and_splits_nobody() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        for _ in range(3):
            committer.post([write(number) for number in range(MOST_WRITES * 2 // 3)])
        committer.post([write(number) for number in range(MOST_WRITES * 2)])
        await committer.flush()

    sizes = [len(commit) for commit in play(scenario).commits]
    assert sizes == [MOST_WRITES * 2 // 3] * 3 + [MOST_WRITES * 2]


def test_nothing_to_write_is_no_commit() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        committer.post([])
        await committer.flush()
        await clock.sleep(10)

    assert play(scenario).tries == 0


def test_while_the_store_fails_posts_are_kept_in_order_and_asks_are_refused() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        committer.post([write("a")])
        with pytest.raises(TransientError, match="disk is full"):
            await committer.ask(write("lost"))
        assert committer.trouble is not None
        committer.post([write("b")])
        await committer.flush()
        assert committer.trouble is None

    full = TransientError("no room", why="the disk is full")
    assert [name for commit in play(scenario, [full] * 3).commits for name in commit] == ["a", "b"]


def test_writes_that_were_kept_are_still_written_under_the_lease() -> None:
    async def scenario(committer: Committer, recorder: Recorder, clock: VirtualClock) -> None:
        committer.under(KeepLease(Partition("lease"), 1, 1.0))
        committer.post([write("kept")])
        await committer.flush()
        committer.post([write("later")])
        await committer.flush()

    recorder = play(scenario, [TransientError("locked"), TransientError("locked")])
    assert recorder.commits == [["lease", "kept"], ["lease", "later"]]


def test_a_push_may_start_in_the_first_half_of_a_lease_counted_from_when_its_commit_was_sent() -> None:
    lease = KeepLease(Partition("lease"), 1, 0.0, seconds=10.0)

    async def scenario(committer: Committer, recorder: Recorder, clock: VirtualClock) -> None:
        answers = [committer.may_start]  # there is no lease
        committer.under(lease)
        for seconds in (4.9, 0.2):
            await clock.sleep(seconds)
            answers.append(committer.may_start)
        await committer.ask(write("a"))  # takes a second
        for seconds in (3.9, 0.2):
            await clock.sleep(seconds)
            answers.append(committer.may_start)
        assert answers == [True, True, False, True, False]

    play(scenario)


def test_an_ask_alone_does_not_leave_the_committer_busy_when_it_fails() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        with pytest.raises(TransientError):
            await committer.ask(write("lost"))
        await committer.flush()
        assert await committer.ask(write("b")) == ["b"]

    assert play(scenario, [TransientError("locked")]).commits == [["b"]]


def test_an_asker_who_has_gone_does_not_stop_the_others() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        gone = asyncio.create_task(committer.ask(write("a")))
        stays = asyncio.create_task(committer.ask(write("b")))
        await clock.sleep(0.5)
        gone.cancel()
        assert await stays == ["b"]

    assert sorted(play(scenario).commits[0]) == ["a", "b"]


def test_what_was_asked_by_who_has_gone_is_not_begun() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        committer.post([write("a")])
        await clock.sleep(0.5)
        gone = asyncio.create_task(committer.ask(write("b")))
        await clock.sleep(0.1)
        gone.cancel()
        committer.post([write("c")])
        await committer.flush()

    assert play(scenario).commits == [["a"], ["c"]]


def test_a_broken_store_ends_the_committer_and_tells_whoever_asked() -> None:
    async def main() -> None:
        clock = VirtualClock()
        store = Recorder([StalledError("corrupt")])
        committer = Committer(store, Slow(clock), clock)  # type: ignore[arg-type]
        running = asyncio.create_task(committer.run())
        with pytest.raises(StalledError, match="corrupt"):
            await committer.ask(write("a"))
        with pytest.raises(StalledError, match="corrupt"):
            await running

    run(main, seed=1)


@pytest.mark.parametrize("seed", range(5))
def test_many_askers_and_posters_lose_nothing(seed: int) -> None:
    store = Recorder([TransientError("busy")] * 2)

    async def main() -> int:
        clock = VirtualClock()
        committer = Committer(store, Slow(clock), clock)  # type: ignore[arg-type]
        running = asyncio.create_task(committer.run())
        refused = 0

        async def one(number: int) -> None:
            nonlocal refused
            await clock.sleep(number % 7)
            committer.post([write(f"post {number}")])
            try:
                assert await committer.ask(write(f"ask {number}")) == [f"ask {number}"]
            except TransientError:
                refused += 1

        await asyncio.gather(*(one(number) for number in range(50)))
        await committer.flush()
        running.cancel()
        await asyncio.wait((running,))
        return refused

    refused = run(main, seed=seed)
    names = [name for commit in store.commits for name in commit]
    assert len(names) == len(set(names)) == 100 - refused
    assert {f"post {number}" for number in range(50)} <= set(names)


def test_what_cannot_be_written_down_fails_alone() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        one, bad, two = (asyncio.create_task(committer.ask(write(name))) for name in ("1", "bad", "2"))
        with pytest.raises(UnicodeEncodeError):
            await bad
        assert [await one, await two] == [["1"], ["2"]]
        committer.post([write("3")])
        await committer.flush()

    store = play(scenario, poison="bad")
    assert sorted(store.commits) == [["1"], ["2"], ["3"]], "who asks first is up to the seed"


def test_whoever_asks_when_a_defect_has_ended_it_is_told_at_once() -> None:
    async def scenario(committer: Committer, store: Recorder, clock: VirtualClock) -> None:
        committer.post([write("bad")])
        for _ in range(2):
            with pytest.raises(UnicodeEncodeError):
                await committer.ask(write("1"))

    assert play(scenario, poison="bad").commits == []
