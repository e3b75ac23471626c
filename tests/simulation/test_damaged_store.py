"""What is damaged in the store is not used: it stalls its own asset, or all where it could be any."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
import structlog
from msgspec.structs import replace

from lehr.checks import CHECKS, TYPES
from lehr.enforce.step import RETRY
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Turndown
from lehr.model.asset import AssetId, AssetKey
from lehr.model.control import ControlKind
from lehr.model.damage import DamagedError
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import control
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, thing
from tests.codes import raises
from tests.world import Plane, World


def plane(folder: Path, world: World, clock: VirtualClock) -> Plane:
    return Plane(folder, world, clock, checks=[check() for check in CHECKS], types=TYPES)


def damage(folder: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "state.sqlite")) as db, db:
        assert db.execute(statement).rowcount > 0


async def published(folder: Path, world: World, clock: VirtualClock) -> None:
    first = plane(folder, world, clock)
    await first.start()
    await first.publish(thing("a", "1"), thing("b", "1"), thing("c", "1"))
    await first.settle()
    frozen = replace(control("f1", ControlKind.FREEZE, selects="c", partition=PARTITION), at=clock.now())
    await first.control(frozen)
    await first.kill()


async def at_rest(started: Plane) -> None:
    """Nothing goes on any more: what `run --once` waits for."""
    async with asyncio.timeout(3600):
        while not started.enforcer.at_rest:
            await started.enforcer.changed()
    await started.committer.flush()


BODIES = {
    "another content": "UPDATE asset_version SET body = CAST(replace(CAST(body AS TEXT), '1', '2') AS BLOB)",
    "a text instead of a blob": "UPDATE asset_version SET body = CAST(body AS TEXT)",
    "a text that is not UTF-8": "UPDATE asset_version SET body = CAST(x'ff' AS TEXT)",
    "nothing": "UPDATE asset_version SET body = NULL",
    "another type": "UPDATE asset_version SET type = 'lehr.File'",
    "an origin that says something else": "UPDATE asset_version SET origin = '{}'",
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_damaged_asset_stalls_alone_is_named_and_changes_nothing(tmp_path: Path, kind: str) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        await published(tmp_path, world, clock)
        damage(tmp_path, f"{BODIES[kind]} WHERE id = 'b'")
        world.values.clear()
        again = plane(tmp_path, world, clock)
        await again.start()
        await at_rest(again)
        assert world.values == {"a": "1"}, "b is damaged, and c frozen"
        condition = again.condition("b")
        assert (condition.status, condition.reason) == (Status.STALLED, Reason.DAMAGED)
        assert "asset b of incarnation" in condition.message
        assert "table asset_version" in condition.message
        assert "commit a change" in condition.unblock
        # A person who names it means it; and a new version mends it.
        assert await again.enforcer.select(Selector(ids=("b",))) == ["b"]
        await again.publish(thing("a", "1"), thing("b", "3"), thing("c", "1"))
        await clock.sleep(60)
        assert world.values["b"] == "3"
        await again.kill()

    run(main, seed=1)


def test_a_damaged_version_that_was_replaced_holds_up_nobody(tmp_path: Path) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        await published(tmp_path, world, clock)
        again = plane(tmp_path, world, clock)
        await again.start()
        damage(tmp_path, f"{BODIES['nothing']} WHERE id = 'b'")
        await again.publish(thing("a", "2"), thing("b", "2"), thing("c", "1"))
        await again.publish(thing("a", "3"), thing("b", "2"), thing("c", "1"))
        await clock.sleep(120)
        assert (world.values["a"], world.values["b"]) == ("3", "2")
        assert again.enforcer.trouble == ""
        await again.kill()

    run(main, seed=1)


GOVERNANCE = {
    "control": "UPDATE control SET expires_at = 5",
    "ledger": "UPDATE ledger SET body = replace(CAST(body AS TEXT), 'present', 'absent') WHERE asset = 'b'",
    "standing": "UPDATE standing SET since = 0",
    "partition": "UPDATE partition SET controls = 0",
    "incarnation": "UPDATE incarnation SET header = CAST(header AS TEXT)",
    "asset_current": "UPDATE asset_current SET type = 'test.Other' WHERE id = 'b'",
}


OPERATIONS = {
    "another id": "UPDATE operation SET id = 'odd' WHERE asset = 'b'",
    "it seems to have ended": "UPDATE operation SET open = 0 WHERE asset = 'b'",
    "it seems to be open": "UPDATE operation SET open = 1 WHERE asset = 'b'",
    "a body of nothing": "UPDATE operation SET body = x'00' WHERE asset = 'b'",
}


def stalled_for_its_operation(started: Plane, id: str) -> None:
    condition = started.condition(id)
    assert (condition.status, condition.reason) == (Status.STALLED, Reason.DAMAGED)
    assert "operation" in condition.message
    assert f"of asset {id} is damaged" in condition.message


@pytest.mark.parametrize(
    ("kind", "under_way"),
    [
        ("another id", True),
        ("another id", False),
        ("it seems to have ended", True),
        ("it seems to be open", False),
        ("a body of nothing", True),
    ],
)
def test_an_operation_that_is_damaged_before_the_start_stalls_its_asset_alone(
    tmp_path: Path, kind: str, under_way: bool
) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        await published(tmp_path, world, clock)
        first = plane(tmp_path, world, clock)
        await first.start()
        if under_way:
            world.seconds = 1000.0
            await first.publish(thing("a", "1"), thing("b", "2"), thing("c", "1"))
            await clock.sleep(10)
            assert world.running == {"b"}
        await first.kill()
        of_newest = "number = (SELECT max(number) FROM operation WHERE asset = 'b')"
        damage(tmp_path, OPERATIONS[kind].replace("asset = 'b'", of_newest))
        world.seconds = 1.0
        world.values.clear()
        world.pushes.clear()
        again = plane(tmp_path, world, clock)
        await again.start()
        await clock.sleep(600)
        assert world.values == {"a": "1"}, "b may be in the middle of a push, and c is frozen"
        stalled_for_its_operation(again, "b")
        # Neither another version nor a person's wish makes known what became of that push.
        await again.publish(thing("a", "2"), thing("b", "3"), thing("c", "1"))
        again.enforcer.wake(AssetId("b"), RETRY)
        await clock.sleep(600)
        assert world.values == {"a": "2"}
        assert not any(id == "b" for id, _value in world.pushes)
        stalled_for_its_operation(again, "b")
        assert isinstance(again.store, SqliteStore)
        found = [item.what for item in again.store.check(lambda partition: None)]
        assert any(what.startswith("operation ") and "of asset b" in what for what in found)
        await again.kill()

    run(main, seed=1)


@pytest.mark.parametrize("result", [Result.DONE, Result.FAILED, Result.STALLED, Result.UNKNOWN])
@pytest.mark.parametrize("kind", ["another id", "it seems to have ended", "a body of nothing"])
def test_an_operation_that_is_damaged_during_its_push_stalls_its_asset_alone(
    tmp_path: Path, kind: str, result: Result
) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        await published(tmp_path, world, clock)
        started = plane(tmp_path, world, clock)
        await started.start()
        world.seconds = 10.0
        if result is not Result.DONE:
            world.behave["b"] = lambda target, push: Outcome(result, "as it is told")
        with structlog.testing.capture_logs() as logs:
            await started.publish(thing("a", "2"), thing("b", "2"), thing("c", "1"))
            await clock.sleep(5)
            assert world.running == {"a", "b"}
            damage(tmp_path, f"{OPERATIONS[kind]} AND open = 1")
            await started.or_crash(clock.sleep(300))
        [told] = [log for log in logs if log["event"].startswith("the outcome of a push")]
        assert (told["asset"], told["result"]) == ("b", result)
        assert world.values["a"] == "2"
        stalled_for_its_operation(started, "b")
        pushes, reached = world.pushes.copy(), world.values["b"]
        world.behave.clear()
        world.values.update(a="drifted", b="drifted")
        await started.or_crash(clock.sleep(300))
        assert world.values["a"] == "2", "healed"
        assert world.values["b"] == "drifted", "never pushed again"
        assert world.pushes - pushes == {("a", "2"): 1}
        assert reached == ("2" if result is Result.DONE else "1")
        ledger = started.store.records.ledger(AssetKey(PARTITION, AssetId("b")))
        assert ledger is not None
        assert ledger.content == 1, "nobody relies on what became of that push"
        await started.kill()

    run(main, seed=1)


def test_an_operation_that_is_damaged_after_its_push_stalls_its_asset_as_soon_as_it_differs(
    tmp_path: Path,
) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        started = plane(tmp_path, world, clock)
        await started.start()
        await started.publish(thing("a", "1"), thing("b", "1"))
        await started.settle()
        damage(tmp_path, OPERATIONS["it seems to be open"])
        world.values.clear()
        await started.or_crash(clock.sleep(120))
        assert world.values == {"a": "1"}
        stalled_for_its_operation(started, "b")
        await started.kill()

    run(main, seed=1)


def test_a_removal_whose_operation_is_damaged_leaves_an_asset_that_is_stalled(tmp_path: Path) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        started = plane(tmp_path, world, clock)
        await started.start()
        await started.publish(thing("a", "1"), thing("b", "1"))
        await started.settle()
        leaves = {TURNDOWN: Turndown("no longer needed")}
        await started.publish(thing("a", "1"), thing("b", "1", leaves))
        await started.publish(thing("a", "1"))
        async with asyncio.timeout(3600):
            while not any(item.goal is Goal.ABSENT for item in open_operations(started)):
                await clock.sleep(0.1)
        damage(tmp_path, "UPDATE operation SET open = 0 WHERE open = 1")
        await started.or_crash(clock.sleep(600))
        assert world.values == {"a": "1"}
        stalled_for_its_operation(started, "b")
        await started.publish(thing("a", "2"), thing("b", "2"))
        await started.or_crash(clock.sleep(600))
        assert world.values == {"a": "2"}
        await started.kill()

    run(main, seed=1)


def open_operations(started: Plane) -> list[Operation]:
    return started.store.records.open_operations(PARTITION)


def test_who_depends_on_an_asset_whose_operation_is_damaged_waits_for_it(tmp_path: Path) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        await published(tmp_path, world, clock)
        damage(tmp_path, OPERATIONS["it seems to be open"])
        again = plane(tmp_path, world, clock)
        await again.start()
        needs = {DEPENDS_ON: DependsOn(["b"])}
        await again.publish(thing("a", "2", needs), thing("b", "1"), thing("c", "1"), thing("d", "1"))
        await clock.sleep(60)
        assert (world.values["a"], world.values["d"]) == ("1", "1")
        condition = again.condition("a")
        assert (condition.status, condition.reason) == (Status.WAITING, Reason.DEPENDENCY_DIFFERS)
        assert condition.message == "depends-on: b differs in push"
        await again.kill()

    run(main, seed=1)


@pytest.mark.parametrize("table", GOVERNANCE)
def test_who_starts_on_damaged_governance_is_refused_and_told_where(tmp_path: Path, table: str) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        await published(tmp_path, world, clock)
        damage(tmp_path, GOVERNANCE[table])
        world.values.clear()
        again = plane(tmp_path, world, clock)
        with raises("MOD101", DamagedError) as caught:
            await again.start()
        assert f"table {table}" in caught.value.why
        assert caught.value.fix
        assert world.values == {}
        await again.kill()

    run(main, seed=1)


def test_governance_that_is_damaged_under_a_running_process_lets_nothing_be_pushed(tmp_path: Path) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        started = plane(tmp_path, world, clock)
        await started.start()
        await started.publish(thing("a", "1"), thing("b", "1"))
        await started.settle()
        damage(tmp_path, "UPDATE asset_current SET digest = 'odd' WHERE id = 'b'")
        world.values.clear()
        await clock.sleep(90)
        assert world.values == {"a": "1"}, "b alone is held"
        assert "damaged" in started.condition("b").message
        damage(tmp_path, "UPDATE partition SET controls = controls - 1")
        world.values.clear()
        await clock.sleep(90)
        assert world.values == {}, "nothing is admitted"
        assert f"partition {PARTITION} is damaged" in started.condition("a").message
        await started.kill()

    run(main, seed=1)


def test_an_incarnation_whose_governance_cannot_be_read_is_told_and_not_waited_for(tmp_path: Path) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        started = plane(tmp_path, world, clock)
        await started.start()
        await started.publish(thing("a", "1"))
        await started.settle()
        await started.publish(thing("a", "2"), tell=False)
        damage(tmp_path, "UPDATE incarnation SET header = '{}' WHERE sequence = 2")
        await clock.sleep(30)
        await at_rest(started)
        assert "incarnation" in started.enforcer.trouble
        assert world.values == {"a": "1"}, "the last good one stays in force"
        await started.kill()

    run(main, seed=1)


def test_a_turn_that_breaks_each_time_does_not_keep_everything_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        started = plane(tmp_path, world, clock)

        def fails(*args: object) -> None:
            raise ValueError("odd")

        monkeypatch.setattr(started.enforcer._turns._viewer, "view", fails)
        await started.start()
        await started.publish(thing("a", "1"))
        await at_rest(started)
        assert started.condition("a").reason == Reason.TURN_BROKE
        before = started.enforcer.turns
        await clock.sleep(3000)
        assert started.enforcer.turns - before < 100, "less and less often"
        await started.kill()

    run(main, seed=1)
