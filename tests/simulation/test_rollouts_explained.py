"""`lehr why` of assets that a rollout holds, and of those that wait for them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from lehr.cli.awaited_release import awaited_release, release_lines
from lehr.query.explain import explain
from lehr.query.partition_view import Reading
from lehr.store.sqlite import SqliteStore
from lehr.testing.sim.script_play import play, read
from lehr.testing.virtual import EPOCH
from lehr.testing.world import PARTITION

HELD = """\
commit
    backend: value 1
    frontend: value 1, depends on backend
    page: value 1, depends on frontend
settle
commit
    gradually: lehr.RolloutPolicy
        select: {ids: [backend]}
        target_selection: {waves: [{where: {stage: none}}]}
settle
commit
    backend: value 2
    frontend: value 2, depends on backend
    page: value 2, depends on frontend
advance 10s
"""


def why(folder: Path, asset: str) -> list[str]:
    script, diagnostics = read(HELD, "held.txt")
    assert not diagnostics
    played = play(script, folder)
    assert not played.failures
    with contextlib.closing(SqliteStore(folder / "state.sqlite", read_only=True)) as store:
        reading = Reading(store, PARTITION, EPOCH + 60.0, lambda type: type.startswith("lehr."))
        awaited = awaited_release(reading, explain(reading, asset))
        assert awaited is not None
        return list(release_lines(awaited, reading, of=asset))


def test_a_dependant_of_a_held_asset_names_the_rollout(tmp_path: Path) -> None:
    for asset in ("frontend", "page"):
        folder = tmp_path / asset
        folder.mkdir()
        lines = why(folder, asset)
        rollout = "rollout of gradually to test@3, wave 1 of 1"
        assert lines[0] == f"  release    {rollout}; backend is waiting: no wave takes it"
        assert lines[-1] == "  see        `lehr rollout show gradually`"


def test_a_held_asset_names_it_as_well(tmp_path: Path) -> None:
    assert "; it is waiting: " in why(tmp_path, "backend")[0]
