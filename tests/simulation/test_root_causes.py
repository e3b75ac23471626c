"""Root causes of assets as their own turns have left them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from lehr.query.asset_rows import rows
from lehr.query.cause_reader import read_root_causes
from lehr.query.partition_view import Reading
from lehr.store.sqlite import SqliteStore
from lehr.testing.sim.script_play import play, read
from lehr.testing.virtual import EPOCH
from lehr.testing.world import PARTITION

TROUBLE = """\
commit
    db: value 1
    api: value 1, depends on db
    web: value 1, depends on api
    idle: value 1
    frozen: value 1
    after: value 1, depends on frozen
    paused: value 1
    backend: value 1
    frontend: value 1, depends on backend
    one: value 1
    other: value 1
settle
commit
    gradually: lehr.RolloutPolicy
        select: {ids: [backend]}
        target_selection: {waves: [{where: {stage: none}}]}
settle
freeze frozen --reason "market day"
pause paused --reason "by hand"
fault look db stall
drift db 9
hint db
commit
    db: value 2
    api: value 2, depends on db
    web: value 2, depends on api
    frozen: value 2
    after: value 2, depends on frozen
    paused: value 2
    backend: value 2
    frontend: value 2, depends on backend
    one: value 2, versioned, needs other at least 2
    other: value 2, versioned, needs one at least 2
advance 20s
"""


def test_what_turns_left_is_grouped_by_what_holds_it(tmp_path: Path) -> None:
    script, diagnostics = read(TROUBLE, "trouble.txt")
    assert not diagnostics
    played = play(script, tmp_path)
    assert not played.failures
    with contextlib.closing(SqliteStore(tmp_path / "state.sqlite", read_only=True)) as store:
        reading = Reading(store, PARTITION, EPOCH + 60.0, lambda type: type.startswith("lehr."))
        found = read_root_causes(reading, most=20)
        unsettled = {row.id for row in rows(reading) if not row.settled}
    by_root = {(cause.kind.value, cause.root or cause.reason): set(cause.examples) for cause in found.causes}
    [freeze] = [root for kind, root in by_root if kind == "check"]
    assert freeze.startswith("freeze/")
    assert by_root == {
        ("asset", "db"): {"db", "api", "web"},
        ("check", freeze): {"frozen", "after"},
        ("condition", "Paused"): {"paused"},
        ("rollout", "gradually"): {"backend", "frontend"},
        ("cycle", "one"): {"one", "other"},
    }
    counted = [id for ids in by_root.values() for id in ids]
    assert len(counted) == found.count == len(set(counted))
    assert unsettled == set(counted) - {"backend"}, "it waits for a release, and is settled"
