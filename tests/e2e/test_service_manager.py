"""What `lehr run` reports to the service manager that started it: a socket that the test reads."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.model.asset import Partition
from lehr.model.writes import TakeLease
from lehr.store.sqlite import SqliteStore
from tests.e2e.bad_input.workspace import PATIENCE, Workspace, until

HOUR = 3600.0
_HEAR_SIGHUP = """
import os, signal, sys
os.setsid()
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
HEARS_SIGHUP = (sys.executable, "-c", _HEAR_SIGHUP)
"""Where a terminal controls it, SIGHUP means that the terminal is gone; where these tests run under nohup, it
would be ignored."""


class Manager:
    """Reads the reports."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        listener.settimeout(PATIENCE)

    def receives(self, field: str) -> dict[str, str]:
        """The next report with this field."""
        while True:
            lines = self._listener.recv(4096).decode().splitlines()
            report = dict(line.split("=", 1) for line in lines)
            if field in report:
                return report

    def rest(self) -> list[str]:
        """All that was sent and not read yet. Of what is not read for long, the newest reports are lost."""
        self._listener.setblocking(False)
        found: list[str] = []
        try:
            while True:
                found.append(self._listener.recv(4096).decode())
        except BlockingIOError:
            self._listener.settimeout(PATIENCE)
            return found


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        yield Manager(listener)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path)
    found.declare_file("motd", "hello")
    found.environment |= {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000000"}
    return found


def test_start_watchdog_reload_and_shutdown_are_reported(workspace: Workspace, manager: Manager) -> None:
    changed = workspace.production / "motd.txt"
    with workspace.run("--source", "directory", "--poll", "1h", prefix=HEARS_SIGHUP) as running:
        assert manager.receives("READY") == {"READY": "1"}
        running.says("production is as intended")
        manager.rest()
        assert manager.receives("WATCHDOG")["STATUS"].startswith("enforcing shop; assets: 1")
        manager.receives("WATCHDOG")
        workspace.declare_file("motd", "hello again")
        running._process.send_signal(signal.SIGHUP)
        assert int(manager.receives("RELOADING")["MONOTONIC_USEC"]) > 0
        manager.receives("READY")
        until("the new content is pushed", lambda: changed.read_text() == "hello again", running.said)
        assert running.end() == 0
    assert len([report for report in manager.rest() if "STOPPING=1" in report]) == 1


def test_a_process_that_stands_by_is_ready(workspace: Workspace, manager: Manager) -> None:
    workspace.commit()
    assert workspace.once().code == 0
    store = SqliteStore(workspace.state / "state.sqlite")
    store.commit([TakeLease(Partition("shop"), "another machine", time.time() + HOUR)])
    store.close()
    with workspace.run() as running:
        manager.receives("READY")
        assert manager.receives("WATCHDOG")["STATUS"].startswith("standing by")
        assert running.end() == 0


def test_a_run_that_cannot_start_is_never_ready(workspace: Workspace, manager: Manager) -> None:
    workspace.write("lehr.yaml", "{")
    workspace.commit()
    with workspace.run() as running:
        assert running.ended() == 1
    assert not [report for report in manager.rest() if "READY=1" in report]


def test_processes_that_lehr_starts_do_not_know_the_socket(workspace: Workspace, manager: Manager) -> None:
    written = workspace.production / "environment"
    command = ["sh", "-c", f"env > {written}.new && mv {written}.new {written} && exec sleep 600"]
    workspace.declare("web", "lehr.Process", {"command": command, "replicas": 1})
    workspace.commit()
    with workspace.run() as running:
        manager.receives("READY")
        until("the process has started", written.exists, running.said)
        assert "NOTIFY_SOCKET" not in written.read_text()
        assert "WATCHDOG_USEC" not in written.read_text()
        assert running.end() == 0
    assert workspace.lehr("stop", "--processes").code == 0
