"""The kit for controllers: what a story does to a controller happens, in virtual time."""

from __future__ import annotations

import msgspec
import pytest

from lehr.base.errors import LehrError
from lehr.client import Request
from lehr.testing.controllers import Stage, play


class Thing(msgspec.Struct):
    value: int


class Recorder:
    """A controller that makes what is intended, in 10 seconds."""

    def __init__(self) -> None:
        self.made: dict[str, int | None] = {}
        self.begun = 0
        self.cleaned_up = 0
        self.fail = False

    async def __call__(self, request: Request) -> float | None:
        self.begun += 1
        try:
            await request.clock.sleep(10.0)
        finally:
            self.cleaned_up += 1
        if self.fail:
            raise ValueError("no")
        self.made[request.id] = None if request.asset is None else request.payload(Thing).value
        return None


def test_what_is_published_is_asked_about_and_so_is_what_is_withdrawn() -> None:
    recorder = Recorder()

    async def story(stage: Stage) -> None:
        stage.publish("a", {"value": 1})
        await stage.pass_time(11)
        assert recorder.made == {"a": 1}
        stage.withdraw("a")
        await stage.pass_time(11)
        assert recorder.made == {"a": None}

    play(recorder, story)


def test_a_function_that_raises_is_asked_again_later_and_later() -> None:
    recorder = Recorder()

    async def story(stage: Stage) -> None:
        recorder.fail = True
        stage.publish("a", {"value": 1})
        await stage.pass_time(600)
        assert 5 <= recorder.begun <= 15
        assert stage.failures("a") >= 5
        recorder.fail = False
        await stage.pass_time(600)
        assert recorder.made == {"a": 1}
        assert stage.failures("a") == 0

    play(recorder, story)


def test_one_that_is_killed_does_nothing_more_not_even_clean_up_and_the_next_one_begins_anew() -> None:
    recorder = Recorder()

    async def story(stage: Stage) -> None:
        stage.publish("a", {"value": 1})
        await stage.pass_time(5)
        stage.kill()
        await stage.pass_time(100)
        assert (recorder.made, recorder.begun, recorder.cleaned_up) == ({}, 1, 0)
        stage.start()
        await stage.pass_time(11)
        assert recorder.made == {"a": 1}

    play(recorder, story)


def test_what_happened_while_intent_could_not_be_reached_is_made_up_for() -> None:
    recorder = Recorder()

    async def story(stage: Stage) -> None:
        stage.publish("a", {"value": 1})
        await stage.pass_time(11)
        stage.intent.reachable(False)
        await stage.pass_time(60)
        stage.publish("a", {"value": 2})
        stage.intent.forget()
        await stage.pass_time(60)
        assert recorder.made == {"a": 1}
        stage.intent.reachable(True)
        await stage.pass_time(60)
        assert recorder.made == {"a": 2}

    play(recorder, story)


def test_a_payload_that_does_not_fit_says_what_to_do() -> None:
    seen: list[str] = []

    async def reconcile(request: Request) -> None:
        try:
            request.payload(Thing)
        except LehrError as error:
            seen.append(str(error))

    async def story(stage: Stage) -> None:
        stage.publish("a", {"value": "many"})
        await stage.pass_time(1)
        stage.withdraw("a")
        await stage.pass_time(1)

    play(reconcile, story)
    assert "the payload of a is not a Thing" in seen[0]
    assert "$.value" in seen[0]
    assert "intent does not contain it" in seen[1]


def test_what_a_story_finds_fails_the_test() -> None:
    async def story(stage: Stage) -> None:
        await stage.pass_time(3600)
        raise AssertionError("not as it should be")

    with pytest.raises(AssertionError, match="not as it should be"):
        play(Recorder(), story)
