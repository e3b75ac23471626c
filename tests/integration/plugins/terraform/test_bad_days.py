"""Bad days of a provider: each is one error that explains it, and no answer is ever guessed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lehr.base.errors import LehrError
from lehr.plugins.terraform.provider import ProviderError, ProviderGoneError, State
from lehr.plugins.terraform.values.nulls import null_value
from lehr.plugins.terraform.wire import connection
from lehr.plugins.terraform.wire.client import WireProvider
from tests.integration.plugins.terraform.running import NOTHING, Running, config, made, planned


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path)


async def _apply(provider: WireProvider) -> object:
    plan = await planned(provider, "fake_given", NOTHING, {"name": "a"})
    return await provider.apply("fake_given", NOTHING, plan, config(provider, "fake_given", {"name": "a"}))


CALLS: dict[str, Callable[[WireProvider], Awaitable[object]]] = {
    "ValidateResourceConfig": lambda provider: provider.validate_resource(
        "fake_given", config(provider, "fake_given", {"name": "a"})
    ),
    "ImportResourceState": lambda provider: provider.import_resource("fake_given", "kept"),
    "UpgradeResourceState": lambda provider: provider.upgrade_state("fake_given", 1, b'{"id": "a"}'),
    "ReadResource": lambda provider: provider.read_resource(
        "fake_given", State(null_value(provider.schema.resources["fake_given"].block) | {"id": "kept"})
    ),
    "PlanResourceChange": lambda provider: planned(provider, "fake_given", NOTHING, {"name": "a"}),
    "ApplyResourceChange": _apply,
    "ReadDataSource": lambda provider: provider.read_data_source(
        "fake_lookup", {"name": "a", "text": None, "exists": None}
    ),
}

CRASHED = r"ended \(exit code 2: panic: runtime error: invalid memory address .*\) during {}"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("bad_day", "error"),
    [
        ("crash", CRASHED),
        ("crash_after", CRASHED),
        ("hang", "has not answered {} within 2 seconds"),
        ("garbage", "answered {} with damaged data"),
    ],
)
def test_a_call_without_an_answer_is_never_taken_for_one(
    running: Running, call: str, bad_day: str, error: str
) -> None:
    if (call, bad_day) == ("ApplyResourceChange", "hang"):
        pytest.skip("an apply is waited for")

    async def scenario() -> None:
        running.store.put("fake_given", "kept", {"id": "kept", "name": "kept"})
        async with running.started({call: bad_day}, seconds=2.0 if bad_day == "hang" else 60.0) as provider:
            with pytest.raises(ProviderGoneError, match=error.format(call)):
                await CALLS[call](provider)
            if bad_day.startswith("crash"):
                with pytest.raises(ProviderGoneError, match="the provider ended"):
                    await provider.import_resource("fake_given", "kept")

    asyncio.run(scenario())


@pytest.mark.parametrize("bad_day", ["damaged", "empty"])
@pytest.mark.parametrize(
    "call",
    ["UpgradeResourceState", "ReadResource", "PlanResourceChange", "ApplyResourceChange", "ReadDataSource"],
)
def test_an_answer_without_a_value_does_not_mean_that_nothing_is_there(
    running: Running, call: str, bad_day: str
) -> None:
    async def scenario() -> None:
        running.store.put("fake_given", "kept", {"id": "kept", "name": "kept"})
        async with running.started({call: bad_day}) as provider:
            with pytest.raises(ProviderGoneError, match="the provider answered with a damaged value"):
                await CALLS[call](provider)

    asyncio.run(scenario())


@pytest.mark.parametrize("call", ["ReadResource", "ApplyResourceChange"])
def test_a_provider_that_prints_megabytes_answers_all_the_same(running: Running, call: str) -> None:
    async def scenario() -> None:
        running.store.put("fake_given", "kept", {"id": "kept", "name": "kept"})
        async with running.started({call: "chatter"}) as provider:
            await CALLS[call](provider)

    asyncio.run(scenario())


def test_an_answer_that_is_too_large_is_refused(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_BYTES", 1 << 20)

    async def scenario() -> None:
        async with running.started({"ReadResource": "large"}) as provider:
            with pytest.raises(ProviderGoneError, match="answered ReadResource with more than 1 MiB"):
                await CALLS["ReadResource"](provider)
            assert (await made(provider, "fake_given", {"name": "a"})).value["id"] == "a"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("start", "code"),
    [
        ("silent", "PLG102"),
        ("closed", "PLG101"),
        ("garbage", "PLG107"),
        ("version", "PLG108"),
        ("dies", "PLG101"),
    ],
)
def test_a_program_that_is_not_a_provider_is_one_clear_error(running: Running, start: str, code: str) -> None:
    async def scenario() -> None:
        with pytest.raises(LehrError) as caught:
            await running.start(
                program=running.program(FAKE_START=start), greeted=2.0 if start == "silent" else 60.0
            )
        assert caught.value.code == code

    asyncio.run(scenario())


def test_another_binary_is_not_started(running: Running) -> None:
    async def scenario() -> None:
        with pytest.raises(LehrError) as caught:
            await running.start(program=running.program()._replace(sha256="0" * 64))
        assert caught.value.code == "PLG106"
        assert not running.record.exists()

    asyncio.run(scenario())


def test_a_provider_that_answers_with_errors_is_alive(running: Running) -> None:
    async def scenario() -> None:
        async with running.started({"ReadResource": "error"}, token="t0ken") as provider:
            for _ in range(2):
                with pytest.raises(ProviderError, match="it failed"):
                    await CALLS["ReadResource"](provider)
            assert provider.gone == ""

    running.store.put("fake_given", "kept", {"id": "kept", "name": "kept"})
    asyncio.run(scenario())


def test_a_cancelled_apply_is_carried_out_and_its_process_waits_for_it(running: Running) -> None:
    async def scenario() -> None:
        provider = await running.start()
        written = {"name": "a", "seconds": 1}
        plan = await planned(provider, "fake_slow", NOTHING, written)
        value = config(provider, "fake_slow", written)
        apply = asyncio.ensure_future(provider.apply("fake_slow", NOTHING, plan, value))
        await until(lambda: "ApplyResourceChange" in running.calls())
        apply.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await apply
        assert provider.applying == 1
        assert running.store.get("fake_slow", "a") is None
        await provider.close()
        assert provider.applying == 0
        assert running.store.get("fake_slow", "a") is not None

    asyncio.run(scenario())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other processes do."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_one_that_was_killed_between_two_calls_is_noticed(running: Running) -> None:
    async def scenario() -> None:
        provider = await running.start()
        os.kill(running.pid(), signal.SIGKILL)
        await until(lambda: provider.gone != "")
        with pytest.raises(ProviderGoneError, match="killed by signal 9"):
            await CALLS["ReadResource"](provider)
        await provider.close()

    asyncio.run(scenario())
