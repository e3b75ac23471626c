"""`/healthz`, `/readyz` and `/metrics` of `lehr run --listen`, each while something is broken."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from lehr.model.asset import Partition
from lehr.model.writes import TakeLease
from lehr.store.sqlite import SqliteStore
from tests.e2e.bad_input.workspace import Running, Workspace, until

HOUR = 3600.0


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path)
    found.declare_file("motd", "hello")
    found.commit()
    return found


def asked(running: Running, path: str) -> tuple[int, bytes]:
    found = re.search(r"serving at (http://\S+)", running.said())
    assert found is not None
    try:
        with urllib.request.urlopen(f"{found[1]}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def health(running: Running, path: str) -> tuple[int, dict[str, str]]:
    """Status, and what is wrong by name."""
    status, content = asked(running, path)
    checks: list[dict[str, Any]] = json.loads(content)["checks"]
    return status, {check["name"]: check["why"] for check in checks if not check["ok"]}


def metrics(running: Running) -> str:
    status, content = asked(running, "/metrics")
    assert status == 200
    return content.decode()


def not_ready(running: Running, name: str) -> str:
    def look() -> str | None:
        status, wrong = health(running, "/readyz")
        return wrong.get(name) if status == 503 else None

    return until(f"/readyz names {name}", look, running.said)


def ready(running: Running) -> None:
    until("/readyz answers 200", lambda: health(running, "/readyz") == (200, {}), running.said)


def test_a_store_that_cannot_be_written_is_named_and_works_again(workspace: Workspace) -> None:
    with workspace.run("--listen", "127.0.0.1:0") as running:
        running.says("serving at")
        ready(running)
        with sqlite3.connect(workspace.state / "state.sqlite", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            assert not_ready(running, "store")
            assert health(running, "/healthz") == (200, {})
            assert "\nlehr_ready 0\n" in metrics(running)
            other.execute("ROLLBACK")
        other.close()
        ready(running)


def test_a_lease_that_is_lost_is_named(workspace: Workspace) -> None:
    with workspace.run("--listen", "127.0.0.1:0") as running:
        running.says("serving at")
        ready(running)
        store = SqliteStore(workspace.state / "state.sqlite")
        [epoch] = store.commit([TakeLease(Partition("shop"), "another machine", time.time() + HOUR)])
        store.close()
        assert epoch == 2
        assert "another machine" in not_ready(running, "lease")
        assert health(running, "/healthz") == (200, {})
        assert "\nlehr_enforcing 0\n" in metrics(running)


def test_a_program_that_is_stopped_does_not_answer(workspace: Workspace) -> None:
    with workspace.run("--listen", "127.0.0.1:0") as running:
        running.says("serving at")
        ready(running)
        found = re.search(r"serving at (http://\S+)", running.said())
        assert found is not None
        os.kill(running._process.pid, signal.SIGSTOP)
        try:
            with pytest.raises((TimeoutError, urllib.error.URLError)):
                urllib.request.urlopen(f"{found[1]}/healthz", timeout=1)
        finally:
            os.kill(running._process.pid, signal.SIGCONT)
        ready(running)


def test_a_source_that_is_gone_leaves_the_program_ready(workspace: Workspace) -> None:
    with workspace.run("--listen", "127.0.0.1:0", "--poll", "1s") as running:
        running.says("production is as intended")
        workspace.repository.rename(workspace.folder / "away")
        running.says("could not be read")
        assert health(running, "/readyz")[0] == 200
        assert re.search(r'lehr_publications_total\{result="unreadable"\} [1-9]', metrics(running))


def test_metrics_continue_after_a_restart_and_name_no_asset(workspace: Workspace) -> None:
    (workspace.production / "no").write_text("a file where a folder should be")
    path = workspace.production / "no/file.txt"
    workspace.declare("blocked", "lehr.File", {"path": str(path), "content": "x"})
    workspace.commit()
    wanted = re.compile(r'lehr_assets_blocked\{status="\w+",reason="\w+"\} 1\n')
    for start in (1, 2):
        with workspace.run("--listen", "127.0.0.1:0") as running:
            running.says("serving at")
            until("the blocked asset counts", lambda: wanted.search(metrics(running)), running.said)
            found = metrics(running)
            assert f"\nlehr_starts_total {start}\n" in found
            assert "\nlehr_assets_settled 1\n" in found
            assert "blocked" not in re.sub("lehr_assets_blocked", "", found)
            assert "motd" not in found
