"""Turns and pushes of one plugin: bounded, fair, and never forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, ClassVar, TypeVar

import msgspec
import pytest

from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.lane import Lane
from lehr.enforce.output_reads import Observed
from lehr.enforce.state import Diffed, DiffFailed, StatusReported
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.diff import NO_DIFF, Change, Diff, Target
from lehr.model.evolution import Evolution
from lehr.model.operation import DONE, Operation, Outcome, Progress, Result
from lehr.model.outputs import OutputNames
from lehr.model.types import AssetType, Schema
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.testing.plugins import push_of, target_of
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, registry, thing

T = TypeVar("T")
ASSET = thing("a", "1")
TARGET = target_of(ASSET)
OPERATION = push_of(TARGET).operation
USUAL = Traits()
AWS_KEY = "AKIA" + "Q7" * 8


class NoIntent:
    """An intent in which there is nothing."""

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        return None

    async def run(self, look: Callable[[], T]) -> T:
        return look()


def reader() -> RecordingReader:
    return RecordingReader(NoIntent(), registry(), PARTITION, 1)


Answer = Callable[[], Awaitable[object]]


class Scripted(AssetPlugin):
    """Answers every call same_diff_count."""

    types = ("test.Thing",)

    def __init__(self, answer: Answer, traits: Traits) -> None:
        self._answer = answer
        self.traits = traits  # type: ignore[misc]

    async def diff(self, target: Target, read: Reader) -> Diff:
        return await self._answer()  # type: ignore[return-value]

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return await self._answer()  # type: ignore[return-value]

    async def status(self, operation: Operation) -> Progress:
        return await self._answer()  # type: ignore[return-value]


async def nothing() -> object:
    return NO_DIFF


async def no_turn(item: int) -> None:
    raise AssertionError(f"no turn was queued, yet {item} has one")


def lane(
    answer: Answer = nothing,
    turn: Callable[[int], Coroutine[Any, Any, None]] = no_turn,
    traits: Traits = USUAL,
) -> Lane[int]:
    return Lane(Scripted(answer, traits), VirtualClock(), turn)


def raises(error: BaseException) -> Answer:
    async def answer() -> object:
        raise error

    return answer


def answers(value: object) -> Answer:
    async def answer() -> object:
        return value

    return answer


class MuteError(Exception):
    """Fails to say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no")


async def hangs() -> object:
    await asyncio.Event().wait()
    return None


# --- the queue ---------------------------------------------------------------


def test_a_turn_that_is_queued_the_moment_the_last_worker_ends_is_run() -> None:
    async def main() -> list[int]:
        turned: list[int] = []
        ended = asyncio.Event()

        async def turn(item: int) -> None:
            turned.append(item)
            ended.set()

        tested = lane(turn=turn, traits=Traits(turns=1, pushes=1))
        for item in range(5):
            ended.clear()
            tested.add(item, urgent=True)
            await ended.wait()
        return turned

    assert run(main, seed=1) == [0, 1, 2, 3, 4]


def test_turns_under_way_are_bounded_and_all_are_run() -> None:
    async def main() -> tuple[int, int]:
        clock = VirtualClock()
        under_way = most = turned = 0

        async def turn(item: int) -> None:
            nonlocal under_way, most, turned
            under_way += 1
            most = max(most, under_way)
            await clock.sleep(1.0)
            under_way -= 1
            turned += 1

        tested = lane(turn=turn, traits=Traits(turns=3, pushes=2))
        for item in range(50):
            tested.add(item, urgent=item % 2 == 0)
        await clock.sleep(100.0)
        return most, turned

    most, turned = run(main, seed=2)
    assert most == 6
    assert turned == 50


def test_turns_that_wait_for_nothing_take_one_worker_and_a_turn_that_waits_delays_none() -> None:
    async def main() -> tuple[set[str], list[int]]:
        workers: set[str] = set()
        turned: list[int] = []
        late = asyncio.Event()

        async def turn(item: int) -> None:
            worker = asyncio.current_task()
            assert worker is not None
            workers.add(worker.get_name() + str(id(worker)))
            if item == 5:
                await late.wait()
            turned.append(item)

        tested = lane(turn=turn, traits=Traits(turns=2, pushes=2))
        for item in range(5):
            tested.add(item, urgent=True)
        await asyncio.sleep(0)
        first = set(workers)
        for item in range(5, 10):
            tested.add(item, urgent=True)
        await asyncio.sleep(1)
        assert turned == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        late.set()
        await asyncio.sleep(1)
        await tested.stop()
        return first, turned

    first, turned = run(main, seed=3)
    assert len(first) == 1
    assert turned[-1] == 5


def test_a_worker_that_dies_in_a_turn_leaves_the_others_their_turns() -> None:
    async def main() -> list[int]:
        turned: list[int] = []

        async def turn(item: int) -> None:
            if item == 0:
                raise asyncio.CancelledError
            turned.append(item)

        tested = lane(turn=turn)
        for item in range(4):
            tested.add(item, urgent=True)
        await asyncio.sleep(1)
        return turned

    assert run(main, seed=1) == [1, 2, 3]


# --- places for pushes ---------------------------------------------------------


def test_places_are_bounded_and_who_waits_too_long_is_told_when_one_is_free() -> None:
    async def main() -> None:
        tested = lane(traits=Traits(pushes=2))
        assert [await tested.take_place(1), await tested.take_place(2)] == [True, True]
        assert await tested.take_place(3) is False
        assert tested.next_deferred() is None, "no place is free yet"
        tested.free_place()
        assert tested.next_deferred() == 3
        assert tested.next_deferred() is None, "each is told once"

    run(main, seed=1)


def test_a_place_that_comes_free_in_time_is_waited_for() -> None:
    async def main() -> bool:
        clock = VirtualClock()
        tested = lane(traits=Traits(pushes=1))
        assert await tested.take_place(1)
        waiting = asyncio.create_task(tested.take_place(2))
        await clock.sleep(0.1)
        tested.free_place()
        return await waiting

    assert run(main, seed=1)


# --- the plugin's answers --------------------------------------------------------


def diffed(answer: Answer, traits: Traits = USUAL) -> Diffed | DiffFailed:
    async def main() -> Diffed | DiffFailed:
        return await lane(answer, traits=traits).diff(TARGET, ASSET, reader())

    return run(main, seed=1)


def pushed(answer: Answer) -> Outcome:
    async def main() -> Outcome:
        return await lane(answer).push(TARGET, reader(), push_of(TARGET))

    return run(main, seed=1)


def test_a_diff_comes_with_the_digest_of_what_it_rests_on() -> None:
    assert diffed(nothing) == Diffed(NO_DIFF, ASSET.digest)


class Reading(Scripted):
    """Reads what it compares as plain data."""

    types = ("shop.Team",)
    versions: ClassVar[Mapping[str, int]] = {"shop.Team": 1}

    async def diff(self, target: Target, read: Reader) -> Diff:
        read.payload(target.id, dict)
        return NO_DIFF


def test_a_plugin_that_does_not_understand_a_version_stalls_its_asset() -> None:
    known = registry()
    known.declare([AssetType("shop.Team", Schema({}, {}), evolution=Evolution(2))])
    team = make_asset(AssetId("core"), "shop.Team", {}, {}, versions={"shop.Team": 2})
    read = RecordingReader(NoIntent(), known, PARTITION, 1)
    read.know(team)

    async def main() -> Diffed | DiffFailed:
        asked: Lane[int] = Lane(Reading(nothing, USUAL), VirtualClock(), no_turn)
        return await asked.diff(target_of(team), team, read)

    failed = run(main, seed=1)
    assert isinstance(failed, DiffFailed)
    assert failed.stalled
    assert "has version 2, and its reader understands version 1" in failed.message


@pytest.mark.parametrize(
    ("answer", "message", "stalled", "until"),
    [
        (raises(TransientError("no line", why="down")), "no line: down", False, None),
        (raises(StalledError("no such port", fix="name one")), "no such port", True, None),
        (raises(WaitingError("later", until=7.0)), "later", False, 7.0),
        (raises(LehrError("odd")), "odd", False, None),
        (raises(ValueError("oops\nmore")), "ValueError: oops", False, None),
        (raises(asyncio.CancelledError()), "cancelled", False, None),
        (raises(SystemExit(3)), "SystemExit: 3", False, None),
        (answers("nonsense"), " str ", False, None),
        (answers(Diff((Change("x", object(), None),))), "a diff that is not valid", False, None),
        (answers(None), " NoneType ", False, None),
        (hangs, "30 s", False, None),
    ],
)
def test_a_diff_that_fails_is_told_as_a_value(
    answer: Answer, message: str, stalled: bool, until: float | None
) -> None:
    found = diffed(answer)
    assert isinstance(found, DiffFailed)
    assert message in found.message
    assert "\n" not in found.message
    assert (found.stalled, found.until) == (stalled, until)


@pytest.mark.parametrize(
    ("answer", "result", "message"),
    [
        (answers(DONE), Result.DONE, ""),
        (answers(Outcome(Result.FAILED, "no")), Result.FAILED, "no"),
        (raises(TransientError("no line")), Result.FAILED, "no line"),
        (raises(WaitingError("later", until=7.0)), Result.FAILED, "later"),
        (raises(StalledError("no such port")), Result.STALLED, "no such port"),
        (raises(ValueError("oops")), Result.UNKNOWN, "ValueError: oops"),
        (raises(asyncio.CancelledError()), Result.UNKNOWN, "cancelled"),
        (raises(SystemExit(3)), Result.UNKNOWN, "SystemExit: 3"),
        (answers(None), Result.UNKNOWN, " NoneType "),
        (answers(Outcome("marvellous")), Result.UNKNOWN, "an outcome that is not valid"),  # type: ignore[arg-type]
        (hangs, Result.UNKNOWN, "600 s"),
    ],
)
def test_what_is_not_plainly_an_outcome_is_unknown(answer: Answer, result: Result, message: str) -> None:
    outcome = pushed(answer)
    assert outcome.result is result
    assert message in outcome.message
    assert outcome.retry_at == (7.0 if message == "later" else None)


@pytest.mark.parametrize(
    ("answer", "progress"),
    [
        (answers(Progress.RUNNING), Progress.RUNNING),
        (answers(Progress.ENDED), Progress.ENDED),
        (answers("ended, surely"), None),
        (raises(TransientError("no line")), None),
        (raises(ValueError("oops")), None),
        (raises(asyncio.CancelledError()), None),
        (hangs, None),
    ],
)
def test_a_status_is_a_progress_or_no_answer(answer: Answer, progress: Progress | None) -> None:
    async def main() -> StatusReported:
        return await lane(answer).status(OPERATION)

    found = run(main, seed=1)
    assert found.progress is progress
    assert found.progress is not None or found.message


def test_a_cancellation_from_outside_is_passed_on() -> None:
    async def main() -> None:
        clock = VirtualClock()
        tested = lane(hangs)
        for call in (
            tested.diff(TARGET, ASSET, reader()),
            tested.push(TARGET, reader(), push_of(TARGET)),
            tested.status(OPERATION),
        ):
            task: asyncio.Task[object] = asyncio.ensure_future(call)
            await clock.sleep(1.0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main, seed=1)


def test_diffs_at_once_are_bounded() -> None:
    async def main() -> int:
        clock = VirtualClock()
        under_way = most = 0

        async def slow() -> object:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await clock.sleep(1.0)
            under_way -= 1
            return NO_DIFF

        tested = lane(slow, traits=Traits(turns=3))
        await asyncio.gather(*(tested.diff(TARGET, ASSET, reader()) for _ in range(10)))
        return most

    assert run(main, seed=1) == 3


# --- hostile answers -----------------------------------------------------------

GARBLED = "caf\udce9 \ud800 \0"


@pytest.mark.parametrize(
    "outcome",
    [
        answers(Outcome(Result.FAILED, GARBLED, float("nan"))),
        raises(TransientError(GARBLED)),
        raises(WaitingError(GARBLED, until=float("inf"))),
        raises(ValueError(GARBLED)),
        raises(SystemExit(GARBLED)),
        raises(BaseExceptionGroup(GARBLED, [GeneratorExit()])),
        raises(MuteError()),
        answers(Outcome(Result.FAILED, "x" * 10_000_000)),
    ],
)
def test_whatever_a_plugin_says_of_a_push_can_be_written_down(outcome: Answer) -> None:
    found = pushed(outcome)
    written = msgspec.json.encode(found)
    assert msgspec.json.decode(written, type=Outcome) == found
    assert len(written) < 10_000


def test_what_production_says_in_bytes_that_are_not_utf_8_can_still_be_healed() -> None:
    diff = Diff((Change("owner", "web", {GARBLED: [GARBLED]}),))

    async def main() -> object:
        return await lane(answers(diff)).diff(TARGET, ASSET, reader())

    found = run(main, seed=1)
    assert isinstance(found, Diffed)
    shown = r"caf\xe9 \ud800 \0"
    assert found.diff.changes == (Change("owner", "web", {shown: [shown]}),)


def test_a_diff_that_is_too_large_to_keep_is_not_taken() -> None:
    diff = Diff(tuple(Change(f"line/{number}", "x" * 100, None) for number in range(10_000)))

    async def main() -> object:
        return await lane(answers(diff)).diff(TARGET, ASSET, reader())

    found = run(main, seed=1)
    assert isinstance(found, DiffFailed)
    assert "more than 1,000,000" in found.message


# --- watches ---------------------------------------------------------------------------


class Watches(Scripted):
    """Says something each time that it is watched, and ends or fails."""

    def __init__(self, fails: bool) -> None:
        super().__init__(nothing, USUAL)
        self._fails = fails

    async def watch(self) -> AsyncIterator[AssetKey]:
        yield TARGET.key
        if self._fails:
            raise TransientError("no connection")


@pytest.mark.parametrize("fails", [False, True])
def test_a_watch_that_ends_or_fails_is_begun_again(fails: bool) -> None:
    async def main() -> list[AssetKey]:
        hints = Lane(Watches(fails), VirtualClock(), no_turn).hints()
        async with asyncio.timeout(3600.0):
            return [await anext(hints) for _ in range(3)]

    assert run(main, seed=1) == [TARGET.key] * 3


def test_a_plugin_that_never_says_anything_is_not_listened_to() -> None:
    async def main() -> tuple[bool, bool]:
        return lane().watches, Lane(Watches(False), VirtualClock(), no_turn).watches

    assert run(main, seed=1) == (False, True)


@pytest.mark.parametrize(
    ("handle", "why"),
    [
        ("x" * 8193, "a handle of 8,193 bytes; at most 8,192"),
        ("a\0b", "not plain text"),
        ("\ud800", "not plain text"),
        (f"key={AWS_KEY}", "its handle contains an AWS access key"),
    ],
)
def test_a_handle_that_cannot_be_kept_is_an_answer_that_is_not_valid(handle: str, why: str) -> None:
    outcome = pushed(answers(Outcome(Result.DONE, handle=handle)))
    assert outcome.result is Result.UNKNOWN
    assert why in outcome.message
    found = diffed(answers(Diff(handle=handle)))
    assert isinstance(found, DiffFailed)
    assert why in found.message


class Observing(Scripted):
    """Declares outputs."""

    outputs: ClassVar[Mapping[str, OutputNames]] = {
        "test.Thing": OutputNames(stable=frozenset({"id", "password"}), changing=frozenset({"load"}))
    }


def observed(outputs: Any) -> Diffed | DiffFailed:
    async def main() -> Diffed | DiffFailed:
        tested: Lane[int] = Lane(Observing(answers(Diff(outputs=outputs)), USUAL), VirtualClock(), no_turn)
        return await tested.diff(TARGET, ASSET, reader())

    return run(main, seed=1)


def test_outputs_become_plain_data() -> None:
    long = "x" * 8000 + "\n\t"
    found = observed({"id": ("a", 1), "load": {"max": float("inf"), 1: long}})
    assert isinstance(found, Diffed)
    assert found.diff.outputs == {"id": ["a", 1], "load": {"max": None, "1": long}}
    mine: dict[str, Any] = {"id": [1]}
    found = observed(mine)
    mine["id"].append(2)
    assert isinstance(found, Diffed)
    assert found.diff.outputs == {"id": [1]}, "whatever the plugin does with its own data later"


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        ({"arn": 1}, "it has the output `arn`, and its type has `id`, `load`, `password`"),
        ({"id": "x" * 9000}, "it has outputs of 9,009 bytes; at most 8,192 are kept"),
        ({"id": [{"url": f"https://me:{AWS_KEY}@host"}]}, "its output `id/0/url` looks like"),
        ({"id": "a", "load": {"a/b": AWS_KEY}}, "its output `load/a~1b` looks like an AWS access key"),
        ({"id": "\ud800"}, "its outputs are not plain data"),
        ({"id": object()}, "its outputs are not plain data"),
        (["id"], "its outputs are not plain data"),
        ({"password": "hunter2"}, "its output `password` looks like a password"),
    ],
)
def test_outputs_that_must_not_be_kept_are_refused_without_being_quoted(outputs: Any, why: str) -> None:
    found = observed(outputs)
    assert isinstance(found, DiffFailed)
    assert why in found.message
    assert not any(secret in found.message for secret in (AWS_KEY, "hunter2", "xxxx"))


def test_outputs_of_a_type_that_declares_none_are_refused() -> None:
    found = diffed(answers(Diff(outputs={"id": 1})))
    assert isinstance(found, DiffFailed)
    assert "the output `id`, and its type has none" in found.message


class Needing(AssetPlugin):
    """Needs an output, and wraps its absence as it likes."""

    types = ("test.Thing",)

    def __init__(self, wraps: Callable[[Exception], Exception]) -> None:
        self._wraps = wraps

    async def diff(self, target: Target, read: Reader) -> Diff:
        try:
            read.output(AssetId("net"), "id")
        except WaitingError as error:
            raise self._wraps(error) from error
        return NO_DIFF

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        read.output(AssetId("net"), "id")
        return DONE


class NetIntent(NoIntent):
    """Has one other asset."""

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        return thing("net", "1")


def net_reader(values: dict[str, Any]) -> RecordingReader:
    observed = Observed(OutputNames(stable=frozenset({"id"})), values)
    return RecordingReader(NetIntent(), registry(), PARTITION, 1, observed=lambda asset: observed)


def needed(wraps: Callable[[Exception], Exception], values: dict[str, Any]) -> Diffed | DiffFailed:
    async def main() -> Diffed | DiffFailed:
        tested: Lane[int] = Lane(Needing(wraps), VirtualClock(), no_turn)
        return await tested.diff(TARGET, ASSET, net_reader(values))

    return run(main, seed=1)


def test_a_diff_that_needs_an_unknown_output_names_its_asset() -> None:
    found = needed(lambda error: error, {})
    assert isinstance(found, DiffFailed)
    assert found.message == "output `id` of net is not known yet"
    assert "lehr why net" in found.fix
    assert (found.awaits, found.stalled) == ((AssetId("net"),), False)
    assert isinstance(needed(lambda error: error, {"id": 1}), Diffed)


@pytest.mark.parametrize("error", [TransientError("no connection"), StalledError("never")])
def test_an_error_of_the_plugins_own_awaits_nothing(error: Exception) -> None:
    found = needed(lambda _: error, {})
    assert isinstance(found, DiffFailed)
    assert found.awaits == ()


def test_a_push_that_needs_an_unknown_output_has_changed_nothing() -> None:
    async def main() -> Outcome:
        tested: Lane[int] = Lane(Needing(lambda error: error), VirtualClock(), no_turn)
        return await tested.push(TARGET, net_reader({}), push_of(TARGET))

    outcome = run(main, seed=1)
    assert outcome.result is Result.FAILED
    assert "output `id` of net is not known yet" in outcome.message
