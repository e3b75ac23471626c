"""A real Prometheus for tests."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[1]

_SECONDS = 30.0


def prometheus_program() -> str:
    """Path of Prometheus. Without one, the test that asks is skipped."""
    packaged = ROOT / "build" / "prometheus" / "usr" / "bin" / "prometheus"
    found = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
    if found is None and packaged.exists():
        found = str(packaged)
    if found is None:
        pytest.skip(
            "NO PROMETHEUS: nothing real was tested here; get one with scripts/debian_package.sh prometheus"
        )
    return found


class Prometheus:
    """A Prometheus with its data in a folder; `prometheus.yml` is there already.

    Attributes:
        address: its URL.
    """

    def __init__(self, folder: Path) -> None:
        self._program = prometheus_program()
        self._folder = folder
        self._port = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"http://127.0.0.1:{self._port}"

    def start(self, ready: Callable[[bytes], bool] = lambda alerts: bool(alerts)) -> None:
        """Start it, and wait until it answers.

        Args:
            ready: whether its answer about alerts is one to continue with.
        """
        command = [
            self._program,
            f"--config.file={self._folder}/prometheus.yml",
            f"--storage.tsdb.path={self._folder}/data",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        log = self._folder / "log"
        with log.open("ab") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=file)
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            if ready(self._alerts()):
                return
            time.sleep(0.1)
        raise AssertionError(f"Prometheus does not become ready: {log.read_text()}")

    def kill(self) -> None:
        """End it without notice."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_SECONDS)
            self._process = None

    def _alerts(self) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_SECONDS)
        try:
            connection.request("GET", "/api/v1/alerts")
            answer = connection.getresponse()
            return answer.read() if answer.status == 200 else b""
        except OSError:
            return b""
        finally:
            connection.close()
