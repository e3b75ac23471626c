"""Looks: one question in its interval, however many want to know; a source that fails or hangs is a cause."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from lehr.model.monitoring import Cause, MetricError, MetricHistory, Question, Sample
from lehr.monitoring.looks import Looks
from lehr.sdk.metrics import MetricSource
from lehr.testing.virtual import VirtualClock, run

GOOD = [Sample(0.01)]
QUESTION = Question("one", "errors", at_most=0.05, every=30.0)


class Scripted(MetricSource):
    """Answers with what it is given, in this order; the last for ever."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[tuple[float, Question]] = []
        self.closed = False
        self._answers = list(answers)

    async def ask(self, question: Question) -> Sequence[Sample]:
        self.asked.append((VirtualClock().monotonic(), question))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer == "hang":
            await asyncio.Event().wait()
        if isinstance(answer, BaseException):
            raise answer
        found: Sequence[Sample] = answer
        return found

    async def close(self) -> None:
        self.closed = True


def played(
    play: Callable[[Looks], Awaitable[Any]], patience: float | None = 2.0, **sources: MetricSource
) -> Any:
    async def main() -> Any:
        looks = Looks(sources, VirtualClock(), patience)
        try:
            return await play(looks)
        finally:
            await looks.close()

    return run(main, seed=1)


async def history(looks: Looks) -> MetricHistory:
    found = await looks.history(QUESTION)
    assert found is not None
    return found


def cause_of(*answers: Any, wait: float = 0.0) -> Cause:
    async def play(looks: Looks) -> Cause:
        await looks.history(QUESTION)
        await asyncio.sleep(wait)
        return (await history(looks)).last.cause

    found: Cause = played(play, one=Scripted(*answers))
    return found


def test_the_first_to_want_to_know_waits_for_the_first_look() -> None:
    assert cause_of(GOOD) is Cause.GOOD


def test_a_hundred_thousand_ask_once_in_an_interval() -> None:
    source = Scripted(GOOD)

    async def play(looks: Looks) -> None:
        for _ in range(10):
            for _ in range(10_000):
                await looks.history(QUESTION)
            await asyncio.sleep(11.0)

    played(play, one=source)
    assert [at - source.asked[0][0] for at, _ in source.asked] == [0.0, 30.0, 60.0, 90.0]


def test_different_questions_are_asked_each() -> None:
    source = Scripted(GOOD)
    other = Question("one", "latency", at_most=0.05)

    async def play(looks: Looks) -> None:
        await asyncio.gather(looks.history(QUESTION), looks.history(other), looks.history(QUESTION))

    played(play, one=source)
    assert {question for _, question in source.asked} == {QUESTION, other}
    assert len(source.asked) == 2


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (MetricError(Cause.REFUSED, "it answered with status 503"), Cause.REFUSED),
        (ValueError("token=secret"), Cause.FAILED),
        (asyncio.CancelledError(), Cause.FAILED),
        (None, Cause.FAILED),
        ([None], Cause.FAILED),
        ([], Cause.NO_DATA),
    ],
)
def test_a_source_that_fails_is_asked_again(answer: Any, cause: Cause) -> None:
    assert cause_of(answer, GOOD) is cause
    assert cause_of(answer, GOOD, wait=31.0) is Cause.GOOD


def test_no_message_has_what_an_exception_says() -> None:
    async def play(looks: Looks) -> str:
        return (await history(looks)).last.message

    assert played(play, one=Scripted(ValueError("token=secret"))) == "the source failed: ValueError"


def test_a_source_that_hangs_delays_no_turn_for_long_and_times_out() -> None:
    async def play(looks: Looks) -> list[Any]:
        clock = VirtualClock()
        began = clock.monotonic()
        found: list[Any] = [await looks.history(QUESTION), clock.monotonic() - began]
        found += [await looks.history(QUESTION), clock.monotonic() - began]
        await asyncio.sleep(9.0)
        return [*found, (await history(looks)).last.cause]

    assert played(play, one=Scripted("hang")) == [None, 2.0, None, 2.0, Cause.TIMEOUT]


def test_a_plan_waits_for_the_end_of_the_first_look() -> None:
    async def play(looks: Looks) -> Cause:
        return (await history(looks)).last.cause

    assert played(play, patience=None, one=Scripted("hang")) is Cause.TIMEOUT


def test_a_source_that_hangs_delays_no_other() -> None:
    other = Question("two", "errors", at_most=0.05)

    async def play(looks: Looks) -> Any:
        hanging = asyncio.create_task(looks.history(QUESTION))
        found = await looks.history(other)
        hanging.cancel()
        return found is not None and found.last.cause

    assert played(play, one=Scripted("hang"), two=Scripted(GOOD)) is Cause.GOOD


def test_a_source_that_is_not_configured_is_a_cause() -> None:
    async def play(looks: Looks) -> Any:
        return (await history(looks)).last

    reading = played(play)
    assert reading.cause is Cause.NO_SOURCE
    assert "one" in reading.message


def test_those_who_wait_are_notified_when_an_answer_changes_what_it_holds() -> None:
    bad = [Sample(0.5)]
    source = Scripted(GOOD, GOOD, bad, bad, GOOD, GOOD, GOOD, GOOD, GOOD)
    notified: list[int] = []

    async def play(looks: Looks) -> None:
        looks.listen(lambda: notified.append(len(source.asked)))
        await looks.history(QUESTION)
        await asyncio.sleep(8 * 30.0 + 1)

    played(play, one=source)
    # The first answer, bad, good but not steady, steady.
    assert notified == [1, 3, 5, 7]


def test_a_question_that_nobody_asks_is_dropped_and_those_who_wait_may_ask_again() -> None:
    source = Scripted(GOOD)
    notified: list[float] = []

    async def play(looks: Looks) -> int:
        clock = VirtualClock()
        looks.listen(lambda: notified.append(clock.monotonic()))
        await looks.history(QUESTION)
        await asyncio.sleep(3000.0)
        asked = len(source.asked)
        await asyncio.sleep(2000.0)
        assert len(source.asked) == asked
        await looks.history(QUESTION)
        return len(source.asked) - asked

    assert played(play, one=source) == 1
    assert len(notified) == 3  # the first look, before it is dropped, the first look again


def test_a_question_that_is_needed_again_in_time_keeps_its_history() -> None:
    source = Scripted([Sample(0.5)], GOOD)

    async def play(looks: Looks) -> Any:
        needed: list[asyncio.Task[Any]] = []
        looks.listen(lambda: needed.append(asyncio.create_task(looks.history(QUESTION))))
        await looks.history(QUESTION)
        await asyncio.sleep(2.0 * 86_400)
        return (await history(looks)).trouble is not None

    assert played(play, one=source)


def test_closing_ends_the_looks_and_closes_the_sources() -> None:
    source = Scripted("hang")

    async def play(looks: Looks) -> None:
        await looks.history(QUESTION)

    played(play, one=source)
    assert source.closed
