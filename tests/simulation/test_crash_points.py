"""Kill the control plane before and after every store write of a reference scenario.

Invariant: I12, and the two oracles of Sieve (OSDI 2022): the end is the same, and so is what was
done to production on the way. Nothing is pushed twice.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.checks import CHECKS, TYPES
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Turndown
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.sdk.store import Store
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, Crash, thing
from tests.world import CrashingStore, Plane, World

LIMIT = make_asset(
    AssetId("limit"), "lehr.RateLimit", {"select": {"all": True}, "pushes": 2, "per": "30s"}, {}
)
TURNED_DOWN = {TURNDOWN: Turndown("old", stand_seconds=5.0, fence_seconds=5.0)}

REFERENCE: list[list[Asset]] = [
    [thing("a", "1"), thing("b", "1", {DEPENDS_ON: DependsOn(["a"])}), thing("c", "1"), LIMIT],
    [thing("a", "2"), thing("b", "2", {DEPENDS_ON: DependsOn(["a"])}), thing("c", "1", TURNED_DOWN), LIMIT],
    [thing("a", "2"), thing("b", "3", reads=["a"]), LIMIT],
]


class Story(msgspec.Struct):
    """What a run came to."""

    commits: int
    written: list[tuple[str, ...]]
    values: dict[str, str]
    pushes: Counter[tuple[str, str]]
    ledger: dict[str, tuple[str, str]]
    digests: list[str]
    crashed: bool = False


def tell(folder: Path, *, at: int | None = None, after: bool = False) -> Story:
    """Run the reference, killed once at commit `at`, and started again at once."""
    world = World()
    stores: list[CrashingStore] = []
    folder.mkdir(parents=True, exist_ok=True)

    def dying(store: Store) -> Store:
        stores.append(CrashingStore(store, at if not stores else None, after=after))
        return stores[-1]

    async def main() -> Story:
        clock = VirtualClock()
        plane = new_plane(clock)
        for phase in [None, *REFERENCE]:
            try:
                await go(plane, phase)
            except Crash:
                await plane.kill()
                plane = new_plane(clock)
                await plane.start()
                if phase is not None:
                    await go(plane, phase)
        story = told(plane)
        await plane.kill()
        return story

    async def go(plane: Plane, phase: list[Asset] | None) -> None:
        if phase is None:
            await plane.start()
        else:
            await plane.publish(*phase)
            await plane.settle()

    def new_plane(clock: VirtualClock) -> Plane:
        return Plane(
            folder,
            world,
            clock,
            checks=[check() for check in CHECKS],
            types=TYPES,
            seed=len(stores),
            wrap=dying,
        )

    def told(plane: Plane) -> Story:
        assert not plane.store.records.open_operations(PARTITION)
        return Story(
            stores[0].commits,
            stores[0].written,
            dict(world.values),
            world.pushes,
            {
                entry.asset: (entry.goal, entry.content_digest)
                for entry in plane.store.records.ledgers(PARTITION)
            },
            [item.digest for item in plane.store.intent.incarnations(PARTITION, 10)],
            crashed=len(stores) > 1,
        )

    return run(main, seed=1)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return tell(tmp_path_factory.mktemp("reference"))


def test_the_reference_covers_every_kind_of_write_of_the_loop(reference: Story) -> None:
    kinds = {kind for commit in reference.written for kind in commit}
    assert {"TakeLease", "Publish", "Admit", "Finish", "RecordDecision"} <= kinds
    assert reference.values == {"a": "2", "b": "3+2"}
    assert reference.pushes["c", "fenced 1"] == 1
    assert reference.pushes["c", "absent"] == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_write_changes_neither_the_end_nor_what_was_done(
    reference: Story, tmp_path: Path, after: bool
) -> None:
    wrong: list[Any] = []
    for at in range(reference.commits):
        story = tell(tmp_path / str(at), at=at, after=after)
        assert story.crashed, f"commit {at} was never reached"
        same = (
            story.values == reference.values
            and story.pushes == reference.pushes
            and story.ledger == reference.ledger
            and story.digests == reference.digests
        )
        if not same:
            wrong.append((at, reference.written[at], story.values, story.pushes))
    assert not wrong
