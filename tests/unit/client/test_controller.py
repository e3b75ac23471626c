"""Controllers: every asset that changed is reconciled, again after a failure, once at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
import structlog

from lehr.base.chance import Chance
from lehr.base.errors import WaitingError
from lehr.client import Controller, Request, SharedInformer, controller
from lehr.model.asset import AssetId
from lehr.testing.controllers import Stage, play
from lehr.testing.virtual import VirtualClock, run
from tests.unit.client.test_informer import Intent, asset, value_of


def test_what_changes_is_made_so_whatever_fails_on_the_way() -> None:
    async def main() -> None:
        intent, clock = Intent(), VirtualClock()
        informer = SharedInformer(intent, clock, Chance(1))
        made: dict[str, int | None] = {}
        calls: Counter[str] = Counter()
        busy: set[str] = set()

        async def reconcile(id: AssetId) -> float | None:
            assert id not in busy
            busy.add(id)
            calls[id] += 1
            await clock.sleep(3.0)
            busy.discard(id)
            if id == "fails" and calls[id] < 3:
                raise ValueError("not yet")
            if id == "waits" and calls[id] < 2:
                raise WaitingError("not now", until=clock.now() + 100.0)
            found = informer.get(id)
            if found is None:
                made.pop(id, None)
            else:
                made[id] = value_of(found)
            return 60.0 if id == "again" else None

        controller = Controller(informer, reconcile, clock, Chance(1), workers=2)
        running = asyncio.create_task(controller.run())
        intent.publish([asset(id) for id in ("fails", "waits", "goes", "again")])
        await clock.sleep(1.0)
        for value in range(1, 20):
            intent.publish([asset("goes", value)])
        intent.publish([], ["goes"])
        await clock.sleep(1000.0)
        assert made == {"fails": 0, "waits": 0, "again": 0}
        assert calls["fails"] == 3
        assert calls["waits"] == 2
        assert calls["goes"] < 5
        assert calls["again"] > 10
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(main, seed=1)


@pytest.mark.parametrize("returned", ["soon", True, float("nan"), {"seconds": 3}])
def test_what_is_neither_seconds_nor_none_is_a_failure(returned: Any) -> None:
    calls = 0

    async def reconcile(request: Request) -> float | None:
        nonlocal calls
        calls += 1
        return None if calls > 3 else returned

    async def story(stage: Stage) -> None:
        stage.publish("a", {})
        await stage.pass_time(1.0)
        assert stage.failures("a") > 0
        await stage.pass_time(100.0)
        assert (calls, stage.failures("a")) == (4, 0)

    play(reconcile, story)


@pytest.mark.parametrize("wanted", [0, -5, 0.0])
def test_who_wants_to_be_asked_again_at_once_leaves_others_their_turns(wanted: float) -> None:
    calls: Counter[str] = Counter()

    async def reconcile(request: Request) -> float | None:
        calls[request.id] += 1
        if request.id == "waits":
            raise WaitingError("not now", until=request.clock.now() + wanted)
        return wanted

    async def story(stage: Stage) -> None:
        stage.publish("returns", {})
        stage.publish("waits", {})
        await stage.pass_time(10.0)
        assert 50 < calls["returns"] <= 101
        assert 50 < calls["waits"] <= 101

    play(reconcile, story, workers=1)


def test_what_cancels_itself_has_failed_and_costs_no_worker() -> None:
    calls = 0

    async def reconcile(request: Request) -> float | None:
        nonlocal calls
        calls += 1
        if calls < 3:
            waiting = asyncio.create_task(request.clock.sleep(5.0))
            waiting.cancel()
            await waiting
        return None

    async def story(stage: Stage) -> None:
        stage.publish("a", {})
        await stage.pass_time(100.0)
        assert (calls, stage.failures("a")) == (3, 0)

    play(reconcile, story, workers=1)


def test_what_variables_hold_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reconcile(_request: Request) -> float | None:
        password = "hunter" + "2"
        raise ValueError(len(password))

    async def story(stage: Stage) -> None:
        stage.publish("a", {})
        await stage.pass_time(0.5)

    monkeypatch.setattr(controller, "log", structlog.get_logger())  # one that nobody has configured yet
    with structlog.testing.capture_logs() as told:
        play(reconcile, story)
    assert told
    for entry in told:
        assert "ValueError" in entry["exception"]
        assert "hunter2" not in str(entry)
        assert "exc_info" not in entry, "structlog would show variables"
