"""Whether a `lehr run` is active on a state folder, found without a word to anybody."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from lehr.cli.active_run import seen, state_of_folder
from lehr.control.heartbeat import beating, last_seen
from lehr.control.lock import exclusive, holder
from lehr.testing import VirtualClock, run


def test_who_holds_a_state_folder_is_known_without_locking_it(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    with exclusive(tmp_path):
        assert holder(tmp_path) == os.getpid()
        found = state_of_folder(tmp_path)
        assert (found.active, found.process) == (False, os.getpid())  # it starts, and does not answer yet
    assert holder(tmp_path) is None
    (tmp_path / "lock").write_text("no number\n")
    assert holder(tmp_path) is None


def test_the_last_sign_of_life_outlives_the_run(tmp_path: Path) -> None:
    async def active() -> float:
        clock = VirtualClock()
        async with beating(tmp_path, clock):
            await asyncio.sleep(60)
            return clock.now()

    assert last_seen(tmp_path) is None
    began = run(active, seed=1)
    assert last_seen(tmp_path) == began
    idle = state_of_folder(tmp_path)
    assert (idle.active, idle.process, idle.seen_at) == (False, None, began)
    assert seen(idle, began + 60).startswith("1m ago (")
