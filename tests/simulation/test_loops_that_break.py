"""A defect in a loop or a source is contained, or ends the process; healing never stops silently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from lehr.base.errors import StalledError, TransientError
from lehr.control.plane import ControlPlane
from lehr.model.attempt import Publication
from lehr.model.writes import LeaseLostError
from lehr.testing.sim.harness import OWNER
from lehr.testing.sim.process import Process
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.virtual import run
from lehr.testing.world import PARTITION

Break = Callable[[ControlPlane, RandomHarness], None]


def play(folder: Path, scenario: Callable[[ControlPlane, RandomHarness], Awaitable[None]]) -> None:
    """Run `scenario` with a control plane that is not started yet."""

    async def main() -> None:
        harness = RandomHarness(3, folder)
        await harness.open()
        await harness.process.kill()
        process = Process(harness, "tested", 7, OWNER)
        async with asyncio.timeout(3600):
            await scenario(process.plane, harness)
        await process.kill()

    run(main, seed=3)


def fail(*_: Any, **__: Any) -> Any:
    raise LookupError("a defect \udcff")


def agenda(plane: ControlPlane, harness: RandomHarness) -> None:
    plane.enforcer._wakeups._agenda.wait = fail  # type: ignore[method-assign]


def intent(plane: ControlPlane, harness: RandomHarness) -> None:
    plane.enforcer._intent_follower.run = _failing  # type: ignore[method-assign]


def look(plane: ControlPlane, harness: RandomHarness) -> None:
    plane.enforcer._in_force.look_at_controls = fail  # type: ignore[method-assign]


async def _failing() -> None:
    fail()


def ending(plane: ControlPlane, loop: str, end: Callable[[], None]) -> None:
    """Have a loop of the Enforcer end at once, in a way of its own."""

    async def work() -> None:
        end()

    enforcer: Any = plane.enforcer
    if loop == "intent":
        enforcer._intent_follower.run = work
    elif loop == "agenda":
        enforcer._wakeups.follow_agenda = work
    else:
        setattr(enforcer, f"_follow_{loop}", lambda *_: work())


def stall() -> None:
    raise StalledError("a step that nobody expected to fail")


def wait() -> None:
    raise TransientError("no connection")


def cancel() -> None:
    raise asyncio.CancelledError


def come_to_an_end() -> None:
    pass


@pytest.mark.parametrize("end", [stall, wait, cancel, come_to_an_end])
@pytest.mark.parametrize("loop", ["agenda", "store", "hints", "intent"])
def test_a_loop_that_ends_in_whatever_way_ends_the_process(
    loop: str, end: Callable[[], None], tmp_path: Path
) -> None:
    async def scenario(plane: ControlPlane, harness: RandomHarness) -> None:
        ending(plane, loop, end)
        await plane.start()
        with pytest.raises(RuntimeError, match=f"the loop `{loop}.*` (has ended|was cancelled)"):
            async with asyncio.timeout(60.0):
                await plane.serve()
        await plane.stop()

    play(tmp_path, scenario)


@pytest.mark.parametrize("end", [stall, wait, cancel])
def test_a_turn_that_ends_in_no_way_foreseen_ends_the_process(
    end: Callable[[], None], tmp_path: Path
) -> None:
    async def scenario(plane: ControlPlane, harness: RandomHarness) -> None:
        enforcer: Any = plane.enforcer

        async def turn(slot: object) -> None:
            end()

        for lane in enforcer._lanes.values():
            lane._turn = turn
        await plane.start()
        with pytest.raises(RuntimeError, match=r"the loop `turns of .*` (has ended|was cancelled)"):
            async with asyncio.timeout(60.0):
                await plane.serve()
        await plane.stop()

    play(tmp_path, scenario)


def test_a_lease_that_a_process_of_the_same_owner_takes_ends_the_process(tmp_path: Path) -> None:
    def lose() -> None:
        raise LeaseLostError(PARTITION, 1, 2, OWNER)

    async def scenario(plane: ControlPlane, harness: RandomHarness) -> None:
        ending(plane, "store", lose)
        await plane.start()
        with pytest.raises(LeaseLostError):
            async with asyncio.timeout(60.0):
                await plane.serve()
        await plane.stop()

    play(tmp_path, scenario)


@pytest.mark.parametrize("name", ["source", "lease"])
def test_a_loop_of_the_control_plane_that_is_cancelled_ends_the_process(name: str, tmp_path: Path) -> None:
    async def scenario(plane: ControlPlane, harness: RandomHarness) -> None:
        await plane.start()
        [task] = [task for task in plane._tasks if task.get_name() == name]
        task.cancel()
        with pytest.raises(RuntimeError, match=f"the loop `{name}` was cancelled"):
            async with asyncio.timeout(60.0):
                await plane.serve()
        await plane.stop()

    play(tmp_path, scenario)


def test_stopping_is_no_defect(tmp_path: Path) -> None:
    async def scenario(plane: ControlPlane, harness: RandomHarness) -> None:
        await plane.start()
        await plane.stop()
        assert plane.enforcer.defect is None

    play(tmp_path, scenario)


@pytest.mark.parametrize("broken", [agenda, intent, look])
def test_a_loop_that_breaks_ends_the_process_with_its_error(broken: Break, tmp_path: Path) -> None:
    async def scenario(plane: ControlPlane, harness: RandomHarness) -> None:
        broken(plane, harness)
        await plane.start()
        with pytest.raises(LookupError):
            await plane.serve()
        await plane.stop()

    play(tmp_path, scenario)


def test_a_source_that_fails_in_any_way_ends_nothing_and_is_asked_again(tmp_path: Path) -> None:
    async def scenario(plane: ControlPlane, harness: RandomHarness) -> None:
        source = plane._parts.source
        newest, changes = source.newest, source.changes
        source.newest = source.changes = fail  # type: ignore[method-assign]
        attempt = await plane.start()
        assert attempt.publication is Publication.UNREADABLE
        [problem] = attempt.diagnostics
        assert problem.code == "PUB006"
        assert r"a defect \xff" in problem.what
        assert plane._parts.store.records.attempt(plane.partition) == attempt
        heard = Heard()
        plane.listeners.append(heard)
        await asyncio.sleep(1.0)
        source.newest, source.changes = newest, changes  # type: ignore[method-assign]
        await asyncio.wait_for(heard.event.wait(), 60.0)
        assert heard.last is not Publication.UNREADABLE
        serving = asyncio.create_task(plane.serve())
        await asyncio.sleep(60.0)
        assert not serving.done()
        serving.cancel()
        await plane.stop()

    play(tmp_path, scenario)


class Heard:
    """Remembers the last attempt."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.last: Publication | None = None

    def __call__(self, attempt: Any) -> None:
        self.last = attempt.publication
        self.event.set()
