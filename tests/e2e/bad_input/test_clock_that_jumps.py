"""Given a machine whose clock is set to another day, when production differs, then it is healed as ever.

The finer rules hold in virtual time: `tests/simulation`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until

DAY = 86_400
SHIM = """
import time

_time = time.time


def jumping():
    try:
        with open({offset!r}) as file:
            return _time() + float(file.read() or 0)
    except OSError:
        return _time()


time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)
"""


class Clock:
    """The wall clock of all Python programs that a workspace starts."""

    def __init__(self, workspace: Workspace) -> None:
        self._offset = workspace.folder / "offset"
        (workspace.site() / "sitecustomize.py").write_text(SHIM.format(offset=str(self._offset)))

    def jump(self, seconds: float) -> None:
        """Go wrong by so much."""
        new = self._offset.with_suffix(".new")
        new.write_text(str(seconds))
        new.rename(self._offset)


@pytest.mark.parametrize("seconds", [-30 * DAY, 30 * DAY], ids=["back", "ahead"])
def test_a_clock_that_jumps_delays_nothing(seconds: float, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    clock = Clock(workspace)
    motd = workspace.declare_file("motd", "one\n")
    limit = {"select": {"all": True}, "pushes": 3, "per": "1h"}
    workspace.declare("limit", "lehr.RateLimit", limit)
    workspace.commit()
    with workspace.run("--poll", "1s") as running:
        running.says("production is as intended")
        clock.jump(seconds)
        motd.unlink()
        until("the file is back", motd.exists, running.said)
        workspace.declare_file("motd", "two\n")
        workspace.commit()
        until("the next commit is in force", lambda: motd.read_text() == "two\n", running.said)
        clock.jump(0)
        motd.unlink()
        until("the file is back again", motd.exists, running.said)
        workspace.stands("motd", "converged")
    ages = workspace.lehr("get", "decisions").out
    assert "Traceback" not in ages
    assert "motd" in ages
