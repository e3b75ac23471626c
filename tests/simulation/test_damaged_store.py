"""What is damaged in the store is not used: it stalls its own asset, or all where it could be any."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from lehr.base.errors import StalledError
from lehr.checks import CHECKS, TYPES
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.selector import Selector
from lehr.store.damage import DamagedError
from lehr.testing.conformance.store.subject import control
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, Plane, World, thing


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
        assert (condition.status, condition.reason) == (Status.STALLED, "Damaged")
        assert "asset b of incarnation" in condition.message
        assert "table asset_version" in condition.message
        assert "commit a change" in condition.unblock
        # A person who names it means it; and a new version mends it.
        assert again.enforcer.select(Selector(ids=("b",))) == ["b"]
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
    "operation": "UPDATE operation SET id = 'odd' WHERE asset = 'b'",
    "partition": "UPDATE partition SET controls = 0",
    "incarnation": "UPDATE incarnation SET header = CAST(header AS TEXT)",
    "asset_current": "UPDATE asset_current SET type = 'test.Other' WHERE id = 'b'",
}


@pytest.mark.parametrize("table", GOVERNANCE)
def test_who_starts_on_damaged_governance_is_refused_and_told_where(tmp_path: Path, table: str) -> None:
    world = World()

    async def main() -> None:
        clock = VirtualClock()
        await published(tmp_path, world, clock)
        damage(tmp_path, GOVERNANCE[table])
        world.values.clear()
        again = plane(tmp_path, world, clock)
        with pytest.raises(DamagedError, match="is damaged in") as caught:
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
        with pytest.raises(StalledError, match=f"partition {PARTITION} is damaged"):
            await started.or_crash(clock.sleep(90))
        await started.enforcer.stop()
        started.store.close()

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

        monkeypatch.setattr(started.enforcer._viewer, "view", fails)
        await started.start()
        await started.publish(thing("a", "1"))
        await at_rest(started)
        assert started.condition("a").reason == "TurnBroke"
        before = started.enforcer.turns
        await clock.sleep(3000)
        assert started.enforcer.turns - before < 100, "less and less often"
        await started.kill()

    run(main, seed=1)
