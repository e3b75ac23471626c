"""A process that loses its lease stops its work and stands by; with a lease, it starts again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lehr.control.messages import AnyRequest, Pause, Report, Retry
from lehr.control.tenures import StandingByError
from lehr.model.asset import AssetId
from lehr.model.attempt import Attempt
from lehr.model.lease import LEASE_SECONDS
from lehr.model.selector import Selector
from lehr.model.writes import LeaseLostError, Refused, TakeLease
from lehr.testing.sim.harness import OWNER
from lehr.testing.sim.process import Process
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.virtual import run
from lehr.testing.world import PARTITION

Scenario = Callable[[RandomHarness, Process], Awaitable[None]]


def play(folder: Path, scenario: Scenario) -> None:
    """Play a scenario with a process that enforces."""

    async def main() -> None:
        harness = RandomHarness(3, folder)
        await harness.open()
        async with asyncio.timeout(3600):
            await harness.clock.sleep(60.0)
            await scenario(harness, harness.process)
        await harness.close()

    run(main, seed=3)


def takes(
    process: Process, harness: RandomHarness, owner: str, seconds: float = LEASE_SECONDS
) -> int | Refused:
    """What a process of another machine is answered when it wants the lease."""
    write = TakeLease(PARTITION, owner, harness.clock.now(), seconds)
    [answer] = process.store._store.commit([write])
    return answer  # type: ignore[no-any-return]


async def until(harness: RandomHarness, holds: Callable[[], bool]) -> None:
    while not holds():
        await harness.clock.sleep(0.5)


def test_a_lease_in_use_is_renewed(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        for _ in range(20):
            await harness.clock.sleep(LEASE_SECONDS / 3)
            assert isinstance(takes(process, harness, "there"), Refused)

    play(tmp_path, scenario)


def test_a_process_whose_lease_is_taken_stands_by_and_begins_anew(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        plane, epoch = process.plane, process.enforcer.epoch
        before = process.enforcer
        process.hold()
        await harness.clock.sleep(2 * LEASE_SECONDS)
        assert takes(process, harness, "there", 60.0) == epoch + 1
        process.release()
        await harness.clock.sleep(10.0)
        turns = before.turns
        assert plane.standby == f"there enforces partition {PARTITION}"
        assert not plane.at_rest, "what another process does is not known here"
        with pytest.raises(StandingByError):
            await process.run(plane.refresh())
        refused = await process.command(Pause(selector="all", reason="because", seconds=None))
        assert (refused.ok, refused.code) == (False, "CTL136")
        assert (await process.command(Report())).content["state"]["standby"] == plane.standby
        await harness.clock.sleep(20.0)
        assert (before.turns, process.enforcer.turns) == (turns, 0), "its slots have stopped"
        await harness.clock.sleep(60.0)
        assert not plane.standby
        assert process.enforcer is not before
        assert process.enforcer.epoch == epoch + 2
        assert process.enforcer.turns >= process.enforcer.assets > 0, "all assets are looked at anew"

    play(tmp_path, scenario)


def test_who_waits_for_convergence_waits_for_the_next_tenure(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        harness.production.seconds = 30.0
        harness.renew(*harness.intent.things)
        await until(harness, lambda: not process.plane.at_rest)
        converging = asyncio.create_task(process.run(process.plane.converge()))
        process.hold()
        await harness.clock.sleep(2 * LEASE_SECONDS)
        assert isinstance(takes(process, harness, "there", 30.0), int)
        process.release()
        await harness.clock.sleep(2 * LEASE_SECONDS)
        await until(harness, lambda: process.plane.at_rest)
        assert await asyncio.wait_for(converging, 1.0) is not bool(process.enforcer.unsettled)

    play(tmp_path, scenario)


def test_a_command_that_meets_the_loss_of_the_lease_is_answered(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        process.hold()
        await harness.clock.sleep(2 * LEASE_SECONDS)
        assert isinstance(takes(process, harness, "there"), int)
        process.release()
        assert not process.plane.standby, "it does not know yet"
        refused = await process.command(Pause(selector="all", reason="because", seconds=None))
        assert (refused.ok, refused.code) == (False, "STO138")
        assert "there has taken over" in refused.message

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "request_",
    [
        Pause(selector="all", reason="because", seconds=None),
        pytest.param(Retry(selector="all"), id="writes nothing"),
    ],
)
@pytest.mark.parametrize("retaken", [False, pytest.param(True, id="it has the lease again")])
def test_a_command_ends_with_the_tenure_in_which_it_was_given(
    tmp_path: Path, request_: AnyRequest, retaken: bool
) -> None:
    """Histories found it: seed 7990, if its assets have a rollout policy."""

    async def scenario(harness: RandomHarness, process: Process) -> None:
        enforcer, plane, select = process.enforcer, process.plane, process.enforcer.select

        async def is_slow(selector: Selector) -> list[AssetId]:
            found = await select(selector)
            await until(harness, lambda: process.enforcer is not enforcer)
            if retaken:
                await until(harness, lambda: not plane.standby)
            return found

        enforcer.select = is_slow  # type: ignore[method-assign]
        process.hold()
        await harness.clock.sleep(2 * LEASE_SECONDS)
        assert isinstance(takes(process, harness, "there"), int)
        process.release()
        assert not plane.standby, "it does not know yet"
        refused = await process.command(request_)
        assert (refused.ok, refused.code) == (False, "STO138")
        assert bool(plane.standby) is not retaken
        assert not process.store.broken
        _version, controls = process.store.records.controls(PARTITION, harness.clock.now())
        assert not controls

    play(tmp_path, scenario)


def test_a_lease_that_is_lost_during_the_first_pass_is_taken_back(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        await process.kill()
        successor = Process(harness, "successor", 5, OWNER)
        harness.processes.append(successor)
        plane, refresh, epochs = successor.plane, successor.plane.refresh, [0]

        async def loses_its_lease_once() -> Attempt:
            epochs.append(successor.enforcer.epoch)
            if len(epochs) == 2:
                raise LeaseLostError(PARTITION, epochs[1], epochs[1] + 1, "there")
            return await refresh()

        plane.refresh = loses_its_lease_once  # type: ignore[method-assign]
        await successor.start()
        assert epochs[1] < epochs[2]
        assert not plane.standby
        assert successor.enforcer.assets

    play(tmp_path, scenario)


def test_a_process_that_ends_returns_its_lease(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        for serving in process._tasks:
            serving.cancel()
        await process.run(process.plane.stop())
        assert isinstance(takes(process, harness, "there"), int)

    play(tmp_path, scenario)


def test_a_process_of_the_same_owner_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        assert isinstance(takes(process, harness, OWNER), int)
        with pytest.raises(LeaseLostError):
            async with asyncio.timeout(30.0):
                await process.plane.serve()

    play(tmp_path, scenario)


def test_a_store_that_fails_does_not_end_a_process_that_stands_by(tmp_path: Path) -> None:
    async def scenario(harness: RandomHarness, process: Process) -> None:
        process.hold()
        await harness.clock.sleep(2 * LEASE_SECONDS)
        assert isinstance(takes(process, harness, "there", 30.0), int)
        process.release()
        await harness.clock.sleep(10.0)
        process.store.out_of_order = True
        await harness.clock.sleep(60.0)
        assert process.plane.standby
        process.store.out_of_order = False
        await harness.clock.sleep(10.0)
        assert not process.plane.standby

    play(tmp_path, scenario)
