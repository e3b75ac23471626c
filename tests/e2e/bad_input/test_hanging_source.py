"""Given a repository that hangs, when production drifts, then it is put right all the same (invariant I9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, until

_SSH = """#!/bin/sh
# Stands in for ssh: does here what was asked of the host, or hangs as long as there is a file that says so.
while [ $# -gt 1 ]; do shift; done
while [ -e {folder}/hang ]; do touch {folder}/hangs; sleep 0.1; done
exec sh -c "$1"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path)
    ssh = tmp_path / "ssh"
    ssh.write_text(_SSH.format(folder=tmp_path))
    ssh.chmod(0o755)
    workspace.environment["GIT_SSH_COMMAND"] = str(ssh)
    return workspace


def test_a_fetch_that_hangs_holds_up_neither_pushes_nor_the_end(shop: Workspace) -> None:
    motd = shop.declare_file("motd", "hello")
    shop.commit()
    with shop.run("--poll", "0.5s", location=f"ssh://example.org{shop.repository}") as running:
        running.says("production is as intended")
        (shop.folder / "hang").touch()
        until("a fetch hangs", (shop.folder / "hangs").exists)
        try:
            # when somebody changes production meanwhile
            motd.write_text("changed")
            until("it is put right", lambda: motd.read_text() == "hello", running.said)
            # when it is asked to end, then it does
            assert running.end() == 0
        finally:
            (shop.folder / "hang").unlink()
