"""`lehr stop` and `lehr restart`, with a real `lehr run` and real programs under supervisord."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.cli.main import cli
from lehr.control.lock import holder
from lehr.model.control import Control
from lehr.plugins.process import procfs
from lehr.plugins.process.ownership import Ownership
from lehr.plugins.process.shutdown import running
from lehr.store.sqlite import SqliteStore
from tests.codes import raises

PROGRAM = "import time\nwhile True: time.sleep(60)"


def lehr(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, done.output
    return done


class Site:
    """A workspace with a program in two replicas, and its `lehr run`.

    Args:
        folder: for everything.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.state = (folder / "state").resolve()
        self.root = self.state / "supervisor"
        (self.folder / "assets").mkdir(parents=True)
        (self.folder / "lehr.yaml").write_text("partition: prod\n")
        self.declare()
        lehr("run", str(self.folder), "--once", "--timeout", "60s")
        self._runs: list[subprocess.Popen[bytes]] = []

    def declare(self) -> None:
        command = [sys.executable, "-I", "-S", "-c", PROGRAM]
        process = {"command": command, "replicas": 2, "directory": str(self.folder)}
        motd = {"path": "motd", "content": "hello"}
        assets = [
            {"id": "web", "type": "lehr.Process", "payload": process},
            {"id": "motd", "type": "lehr.File", "payload": motd},
        ]
        (self.folder / "assets/all.yaml").write_text(json.dumps(assets))

    def start(self) -> subprocess.Popen[bytes]:
        call = [sys.executable, "-m", "lehr", "run", str(self.folder), "--poll", "1s"]
        process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._runs.append(process)
        lehr("wait", "--timeout", "60s")
        return process

    def pids(self) -> set[int]:
        return {process.pid for process, _marks in Ownership(self.root).marked()}

    def controls(self) -> list[Control]:
        store = SqliteStore(self.state / "state.sqlite", read_only=True)
        try:
            return list(store.records.controls(store.intent.partitions()[0], time.time())[1])
        finally:
            store.close()

    def end(self) -> None:
        for process in self._runs:
            process.kill()
            process.wait()
        while left := [*procfs.marked(self.root), *Ownership(self.root).marked()]:
            for process_, _ in sorted(left, key=lambda item: procfs.REPLICA in item[1]):
                procfs.send(process_, signal.SIGKILL)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("LEHR_STATE", str(tmp_path / "state"))
    site = Site(tmp_path)
    yield site
    site.end()


def until_restarted(site: Site, before: set[int]) -> None:
    deadline = time.monotonic() + 60
    while (site.pids() & before or len(site.pids()) < 2 or site.controls()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not site.pids() & before
    assert len(site.pids()) == 2
    assert site.controls() == []


def test_a_restart_replaces_every_process_once_and_is_lifted(site: Site) -> None:
    site.start()
    before = site.pids()
    said = lehr("restart", "web", "--reason", "it leaks").stdout
    assert said == "web will be restarted as soon as its checks allow it; see `lehr why web`\n"
    until_restarted(site, before)
    since = site.pids()
    lehr("retry", "web")
    lehr("wait", "--timeout", "60s")
    assert site.pids() == since
    operations = json.loads(lehr("get", "operations", "web", "-o", "json").stdout)
    assert [item["purpose"] for item in operations] == ["restart", "forward"]
    assert "it leaks" in lehr("audit").stdout
    shown = lehr("events").stdout
    assert "control-set" in shown
    assert "control-lifted" in shown


def test_a_restart_waits_for_its_checks_and_can_be_withdrawn(site: Site) -> None:
    site.start()
    before = site.pids()
    lehr("freeze", "web", "--reason", "quiet hours")
    lehr("restart", "web", "--reason", "it leaks")
    why = ""
    deadline = time.monotonic() + 60
    while "frozen" not in why.lower() and time.monotonic() < deadline:
        why = lehr("why", "web").stdout
        time.sleep(0.05)
    assert "quiet hours" in why
    assert "it leaks" in why
    assert "started by restart" in why
    lehr("revoke", "restart", "web")
    lehr("unfreeze", "web")
    lehr("wait", "--timeout", "60s")
    assert site.pids() == before


def test_only_what_runs_can_be_restarted(site: Site) -> None:
    site.start()
    with raises("CTL138"):
        CliRunner().invoke(cli, ["restart", "motd", "--reason", "x"], catch_exceptions=False)


def test_a_stop_leaves_processes_alone_and_names_them(site: Site) -> None:
    run, before = site.start(), site.pids()
    said = lehr("stop").stdout
    assert f"`lehr run` (process {run.pid}) has stopped" in said
    assert "still running: 2 processes of 1 asset: prod:web (2)" in said
    assert run.wait(60) == 0
    assert holder(site.state) is None
    assert site.pids() == before
    assert lehr("stop").stdout.startswith("no `lehr run` is active\nstill running")


def test_a_stop_with_processes_ends_all_of_them_and_the_next_run_starts_them(site: Site) -> None:
    site.start()
    # Its programs no longer have a supervisord, and end all the same.
    for process, environment in procfs.marked(site.root):
        if procfs.REPLICA not in environment:
            procfs.send(process, signal.SIGKILL)
    assert "stopped 2 processes of 1 asset: prod:web (2)" in lehr("stop", "--processes").stdout
    assert not site.pids()
    assert not list(procfs.marked(site.root))
    assert lehr("stop", "--processes").stdout == "no `lehr run` is active\nno process was running\n"
    lehr("run", str(site.folder), "--once", "--timeout", "60s")
    assert running(site.root) == {"prod:web": 2}
