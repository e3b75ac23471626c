"""Bad days of `lehr.Workflow`, over an engine in memory: no run is started twice, and none is lost."""

from __future__ import annotations

import asyncio
import builtins
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError, WaitingError
from lehr.model.asset import Asset, make_asset
from lehr.model.diff import Goal
from lehr.model.operation import Outcome, Progress, Result
from lehr.plugins.workflow.addresses import Dbos, EngineAddress, Temporal
from lehr.plugins.workflow.connections import connector
from lehr.plugins.workflow.engines import RunState, UnansweredError
from lehr.plugins.workflow.payload import Signal, Workflow
from lehr.testing.conformance.asset_plugin.interrupts import cancelled_at
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of
from tests.integration.plugins.workflow.test_workflow_contract import (
    KEY,
    PATH,
    REGISTRY,
    TOKEN,
    asset_of,
    over_http,
    plugin_of,
)
from tests.rest_api import Api, serving
from tests.workflow_world import MemoryEngine


class World:
    """A small production, an engine, and the plugin of one process after the other."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api = api
        self.folder = folder
        self.engine = MemoryEngine(api, PATH)
        self.plugin = plugin_of(self.engine, folder)
        self.pushes = 0

    def asset(self, version: str = "2", **fields: Any) -> Asset:
        return asset_of(over_http(self.api), version, **fields)

    def begin(self, asset: Asset) -> FixedPush:
        self.pushes += 1
        return push_of(target_of(asset), f"operation-{self.pushes}")

    async def push(self, asset: Asset, push: FixedPush | None = None) -> Outcome:
        read = FixedReader([asset], REGISTRY)
        return await self.plugin.push(target_of(asset), read, push or self.begin(asset))

    async def differs(self, asset: Asset, lost: str = "") -> bool:
        target = replace(target_of(asset), lost=lost)
        return not (await self.plugin.diff(target, FixedReader([asset], REGISTRY))).empty

    async def kill(self) -> None:
        """Continue with the plugin of a new process."""
        await self.plugin.close()
        self.plugin = plugin_of(self.engine, self.folder)

    async def begun(self) -> None:
        """A run was started."""
        while not self.engine.runs:  # noqa: ASYNC110 - the engine adds them
            await asyncio.sleep(0.001)

    async def settled(self, push: FixedPush) -> None:
        """The operation of a push has ended."""
        while await self.plugin.status(push.operation) is Progress.RUNNING:  # noqa: ASYNC110 - it is asked
            await asyncio.sleep(0.005)

    async def resolve(self, asset: Asset, push: FixedPush) -> None:
        """What Lehr does about an unknown outcome: look, and push again only if that shows a difference."""
        await self.settled(push)
        if await self.differs(asset, lost=push.operation.id):
            outcome = await self.push(asset)
            assert outcome.result is Result.DONE, outcome
        assert not await self.differs(asset)


def play(tmp_path: Path, scene: Callable[[World], Awaitable[None]]) -> None:
    with serving() as api:
        api.token = TOKEN

        async def played() -> None:
            world = World(api, tmp_path)
            try:
                await scene(world)
            finally:
                await world.plugin.close()

        asyncio.run(played())


@pytest.mark.parametrize("killed", [False, True], ids=["cancelled", "killed"])
def test_a_push_broken_off_anywhere_leads_to_exactly_one_run(tmp_path: Path, killed: bool) -> None:
    async def scene(world: World) -> None:
        for step in range(1, 1000):
            asset = world.asset(f"v{step}")
            before = len(world.engine.runs)
            push = world.begin(asset)
            cancelled = await cancelled_at(step, world.push(asset, push))
            if killed:
                await world.kill()
            await world.resolve(asset, push)
            assert len(world.engine.runs) == before + 1, f"broken off at await {step}"
            if not cancelled:
                break
        assert step > 10
        assert world.engine.most_at_once == 1

    play(tmp_path, scene)


@pytest.mark.parametrize("arrives", [True, False])
def test_a_start_without_an_answer_is_waited_for(tmp_path: Path, arrives: bool) -> None:
    async def scene(world: World) -> None:
        start, late = world.engine.start, []

        async def unanswered(order: Any) -> None:
            async def arrive() -> None:
                await asyncio.sleep(0.1)
                await start(order)

            if arrives:
                late.append(asyncio.ensure_future(arrive()))
            raise UnansweredError("no answer")

        world.engine.start = unanswered  # type: ignore[method-assign]
        asset = world.asset()
        push = world.begin(asset)
        assert (await world.push(asset, push)).result is Result.UNKNOWN
        assert await world.plugin.status(push.operation) is Progress.RUNNING
        world.engine.start = start  # type: ignore[method-assign]
        await world.resolve(asset, push)
        assert len(world.engine.runs) == 1

    play(tmp_path, scene)


def test_a_start_under_way_continues_when_its_push_is_cancelled(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        start, asked, answer = world.engine.start, asyncio.Event(), asyncio.Event()

        async def slow(order: Any) -> None:
            asked.set()
            await answer.wait()
            await start(order)

        world.engine.start = slow  # type: ignore[method-assign]
        asset = world.asset()
        push = world.begin(asset)
        task = asyncio.ensure_future(world.push(asset, push))
        await asked.wait()
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(0.3)  # longer than a request of a process that was killed is waited for
        assert await world.plugin.status(push.operation) is Progress.RUNNING
        answer.set()
        await world.resolve(asset, push)
        assert len(world.engine.runs) == 1

    play(tmp_path, scene)


def test_a_failure_while_lehr_was_down_is_reported_and_not_repeated(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        asset = world.asset()
        world.engine.failing, world.engine.held = f"no flash with {TOKEN}", True
        push = world.begin(asset)
        task = asyncio.ensure_future(world.push(asset, push))
        await world.begun()
        task.cancel()
        await asyncio.wait({task})
        await world.kill()
        assert await world.plugin.status(push.operation) is Progress.RUNNING
        with pytest.raises(WaitingError, match="has a run that has not ended"):
            await world.differs(asset, lost=push.operation.id)
        world.engine.held = False
        await world.settled(push)
        assert await world.differs(asset, lost=push.operation.id)
        outcome = await world.push(asset)
        assert outcome.result is Result.STALLED
        assert "no flash with [secret]" in outcome.message
        assert len(world.engine.runs) == 1
        world.engine.failing = ""
        assert (await world.push(asset)).result is Result.DONE, "after `lehr retry`"
        assert len(world.engine.runs) == 2

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("how", "asked"), [("finish", []), ("cancel", [""]), (Signal(signal="stop"), ["stop"])], ids=str
)
def test_a_superseded_run_is_asked_to_end_only_where_declared(
    tmp_path: Path, how: Any, asked: list[str]
) -> None:
    async def scene(world: World) -> None:
        asset = world.asset(when_superseded=how)
        world.engine.held = True
        push = world.begin(asset)
        task = asyncio.ensure_future(world.push(asset, push))
        await world.begun()
        push.superseded = True
        if not asked:
            await asyncio.sleep(0.3)
            world.engine.held = False
        outcome = await task
        assert world.engine.runs[0].asked == asked
        assert outcome == (Outcome(Result.FAILED, "superseded") if asked else Outcome(Result.DONE))

    play(tmp_path, scene)


def test_a_run_that_nobody_follows_is_waited_for(tmp_path: Path) -> None:
    """As after the loss of the store: the same work is waited for, and so is other work."""

    async def scene(world: World) -> None:
        asset, newer = world.asset("2"), world.asset("3")
        world.engine.held = True
        task = asyncio.ensure_future(world.push(asset))
        await world.begun()
        found = await world.plugin.diff(target_of(asset), FixedReader([asset], REGISTRY))
        assert found.look_again
        assert not found.empty
        with pytest.raises(WaitingError, match="has a run that has not ended"):
            await world.differs(newer)
        with pytest.raises(TransientError, match="has a run that has not ended"):
            await world.push(newer)
        follower = asyncio.ensure_future(world.push(asset))
        await asyncio.sleep(0.05)
        world.engine.held = False
        assert (await task, await follower) == (Outcome(Result.DONE), Outcome(Result.DONE))
        assert len(world.engine.runs) == 1
        assert (await world.push(newer)).result is Result.DONE

    play(tmp_path, scene)


def test_a_run_that_changes_nothing_is_an_ineffective_push(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.engine.effective = False
        assert (await world.push(world.asset())).result is Result.DONE
        assert await world.differs(world.asset())

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("state", "final", "when_failed", "result"),
    [
        (RunState.FAILED, False, "stall", Result.STALLED),
        (RunState.FAILED, False, "retry", Result.FAILED),
        (RunState.FAILED, True, "retry", Result.STALLED),
        (RunState.TIMED_OUT, False, "retry", Result.STALLED),
        (RunState.CANCELLED, False, "retry", Result.STALLED),
        (RunState.TERMINATED, False, "retry", Result.STALLED),
    ],
)
def test_how_a_run_has_ended_decides_what_follows(
    tmp_path: Path, state: RunState, final: bool, when_failed: str, result: Result
) -> None:
    async def scene(world: World) -> None:
        asset = world.asset(when_failed=when_failed)
        world.engine.held = True
        task = asyncio.ensure_future(world.push(asset))
        await world.begun()
        world.engine.end(world.engine.runs[0], state, "no flash\nno reboot", final=final)
        outcome = await task
        assert outcome.result is result
        assert "\n" not in outcome.message
        world.engine.held = False

    play(tmp_path, scene)


def test_a_push_that_was_paused_for_long_starts_nothing(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        ahead = 0.0

        class Paused(SystemClock):
            def monotonic(self) -> float:
                return super().monotonic() + ahead

        world.plugin._clock = Paused()
        find = world.engine.find

        async def pausing(asset: Any) -> Any:
            nonlocal ahead
            ahead += 60.0
            return await find(asset)

        world.engine.find = pausing  # type: ignore[method-assign]
        with pytest.raises(TransientError, match="interrupted for too long"):
            await world.push(world.asset())
        assert not world.engine.runs

    play(tmp_path, scene)


def test_a_run_that_vanishes_from_its_engine_is_unknown(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        asset = world.asset()
        world.engine.held = True
        push = world.begin(asset)
        task = asyncio.ensure_future(world.push(asset, push))
        await world.begun()
        world.engine.runs.clear()
        assert (await task).result is Result.UNKNOWN
        world.engine.held = False
        await world.resolve(asset, push)

    play(tmp_path, scene)


def test_a_destructive_workflow_is_started_for_the_approved_diff_only(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        asset = world.asset(destructive=True)
        with pytest.raises(TransientError, match="since this was approved"):
            await world.push(asset)
        assert not world.engine.runs
        diff = await world.plugin.diff(target_of(asset), FixedReader([asset], REGISTRY))
        assert diff.effects.destructive
        assert (
            await world.push(asset, push_of(target_of(asset), "approved", diff=diff))
        ).result is Result.DONE

    play(tmp_path, scene)


def test_what_has_no_removal_cannot_be_turned_down(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        asset = world.asset()
        kept = replace(REGISTRY.payload(asset, Workflow), remove=None)
        lasting = make_asset(asset.id, asset.type, kept, {})
        read = FixedReader([lasting], REGISTRY)
        with pytest.raises(StalledError, match="cannot be turned down"):
            await world.plugin.diff(target_of(lasting, Goal.ABSENT), read)

    play(tmp_path, scene)


def test_notes_hold_no_secret(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.push(world.asset())

    play(tmp_path, scene)
    written = [path.read_text() for path in (tmp_path / "notes").iterdir()]
    assert any("env:KEY" in text for text in written)
    assert not any(TOKEN in text or KEY in text for text in written)


def test_a_damaged_note_is_no_note(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        asset = world.asset()
        push = world.begin(asset)
        await world.push(asset, push)
        for path in (tmp_path / "notes").iterdir():
            path.write_bytes(b"\xff{")
        await world.kill()
        assert await world.plugin.status(push.operation) is Progress.ENDED
        assert not await world.differs(asset)

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("address", "extra"),
    [
        (EngineAddress(temporal=Temporal(address="127.0.0.1:1", task_queue="q")), "temporal"),
        (EngineAddress(dbos=Dbos(database="sqlite:x", queue="q")), "dbos"),
    ],
)
def test_without_the_library_an_asset_stalls_and_names_the_package(
    address: EngineAddress, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("lehr.plugins.workflow.") and name.endswith("_engine"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    threads = Threads("none", 1)
    with pytest.raises(StalledError) as caught:
        connector(tmp_path, threads)(address, None)
    assert caught.value.fix == f"pip install 'lehr[{extra}]'"
    threads.close()


def test_the_type_is_registered_without_loading_a_library() -> None:
    code = (
        "import sys; from lehr.wiring.installed import registry; registry()\n"
        "from lehr.wiring.workflows import workflow_plugin\n"
        "print([name for name in ('temporalio', 'dbos', 'sqlalchemy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
