"""A run prunes by itself: what is old and not needed goes, what is needed stays."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from msgspec.structs import replace

from lehr.base.errors import TransientError
from lehr.control.retention import Retention, keep_pruned
from lehr.model.asset import Partition
from lehr.model.writes import Adopt, Prune, Pruned
from lehr.query.run_state import History
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import NOW, PARTITION, asset, entry, published
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.virtual import VirtualClock, run

DAY = 86_400.0


def test_a_run_prunes_what_is_old_in_shares_and_keeps_what_is_applied(tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        with contextlib.closing(SqliteStore(tmp_path / "state.sqlite")) as store:
            for number in range(20):
                published(store, number, asset("a", str(number)), at=clock.now())
            store.commit([Adopt(entry("a", content=5))])

            async def ask(write: Prune) -> Pruned:
                return store.commit([write])[0]  # type: ignore[no-any-return]

            told: list[float] = []
            keeping = keep_pruned(PARTITION, Retention(90 * DAY, 3), ask, clock, told.append)
            kept, begun = asyncio.create_task(keeping), clock.now()
            await clock.sleep(89 * DAY)
            assert told == []
            assert len(store.intent.incarnations(PARTITION, 100)) == 20, "nothing is old enough"
            await clock.sleep(2 * DAY)
            found = [item.sequence for item in store.intent.incarnations(PARTITION, 100)]
            assert found == [20, 19, 18, 5], "the newest, and what production holds"
            assert len(told) == 1
            assert begun + 90 * DAY <= told[0] <= begun + 91 * DAY
            kept.cancel()

    run(main, seed=1)


def test_a_control_plane_says_what_it_keeps_and_when_it_has_pruned(tmp_path: Path) -> None:
    async def main() -> None:
        harness = RandomHarness(3, tmp_path)
        await harness.open()
        plane = harness.process.plane
        assert plane.state().history is None, "nothing is pruned in a simulation"
        plane._parts = replace(plane._parts, retention=Retention(90 * DAY, 3))
        assert plane.state().history == History(seconds=90 * DAY, incarnations=3)
        plane._pruned(NOW)
        assert plane.state().history == History(seconds=90 * DAY, incarnations=3, pruned_at=NOW)
        await harness.process.kill()

    run(main, seed=3)


def test_a_store_that_is_out_of_order_is_pruned_later(tmp_path: Path) -> None:
    asked: list[float] = []

    async def main() -> None:
        clock = VirtualClock()

        async def ask(write: Prune) -> Pruned:
            asked.append(NOW)
            raise TransientError("the disk is full")

        kept = asyncio.create_task(keep_pruned(Partition("one"), Retention(), ask, clock))
        await clock.sleep(DAY)
        assert 3 <= len(asked) <= 5
        assert not kept.done()
        kept.cancel()

    run(main, seed=1)


def test_the_state_file_gives_the_room_back(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with contextlib.closing(SqliteStore(path)) as store:
        for number in range(100):
            published(store, number, asset("a", f"{number}" * 20_000), at=NOW)
    before = path.stat().st_size
    with contextlib.closing(SqliteStore(path)) as store:
        rest: Prune | None = Prune(PARTITION, 1, NOW + DAY)
        while rest is not None:
            [answer] = store.commit([rest])
            rest = answer.rest
    assert path.stat().st_size < before / 4
