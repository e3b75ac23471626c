"""A real etcd for tests: where it is, a cluster under the example's controller, and clients that count."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_ports

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "etcd-operator"
SLOTS = 8

_AS_SOMEBODY = ("-c", "user.name=you", "-c", "user.email=you@localhost", "-c", "commit.gpgsign=false")


def etcd_program() -> str:
    """Path of etcd. Without one, the test that asks is skipped."""
    packaged = ROOT / "build" / "etcd" / "usr" / "bin" / "etcd"
    found = os.environ.get("ETCD") or shutil.which("etcd") or (str(packaged) if packaged.exists() else None)
    if found is None:
        how = "scripts/debian_package.sh etcd etcd-server"
        pytest.skip(f"NO ETCD: nothing real was tested here; get one with {how}")
    return found


def members_below(folder: Path) -> dict[str, int]:
    """Processes of etcd whose data are somewhere in a folder, by the name of the member's own folder."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = os.fsdecode((entry / "cmdline").read_bytes()).split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        for word in words:
            if word.startswith(f"--data-dir={folder}/"):
                found[Path(word).parent.name] = int(entry.name)
    return found


class Site:
    """The example in a folder of its own: its intent, its controller, its members."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "site"
        self.port = free_ports(2 * SLOTS)
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("LEHR_", "ETCD", "GIT_"))
        } | {"ETCD": etcd_program(), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns("__pycache__", "production"))
        self._controllers: list[subprocess.Popen[bytes]] = []
        self._run("git", "init", "--quiet")

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=150
        )
        assert done.returncode == 0, done.stderr

    # --- intent --------------------------------------------------------------------

    def declare(self, size: int, addons: str = "{}") -> None:
        """Commit and publish another size."""
        payload = f"{{size: {size}, port: {self.port}}}"
        asset = f"{{id: plays, type: etcd.Cluster, payload: {payload}, addons: {addons}}}\n"
        (self.folder / "assets" / "clusters.yaml").write_text(asset)
        self._run("git", "add", "--all")
        self._run("git", *_AS_SOMEBODY, "commit", "--quiet", "--message", f"{size} members")
        self._run(sys.executable, "-m", "lehr", "run", "--once")

    # --- the controller ------------------------------------------------------------

    def start(self) -> None:
        """Start a controller, beside those that run."""
        command = [
            sys.executable,
            "-m",
            "lehr",
            "controller",
            "etcd_operator",
            "--type",
            "etcd.Cluster",
            "-v",
        ]
        with (self.folder / "log").open("ab") as log:
            self._controllers.append(
                subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log)
            )

    def stop(self, number: int = signal.SIGKILL) -> None:
        """End all controllers."""
        while self._controllers:
            controller = self._controllers.pop()
            controller.send_signal(number)
            controller.wait(20)

    def log(self) -> str:
        """What controllers have told."""
        return (self.folder / "log").read_text() if (self.folder / "log").exists() else ""

    def wait_for_log(self, text: str, after: int) -> None:
        """Wait until they have told this, after so many characters."""
        deadline = time.monotonic() + 30
        while text not in self.log()[after:]:
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.005)

    # --- production ------------------------------------------------------------------

    @property
    def data(self) -> Path:
        """Where the cluster is."""
        return self.folder / "production" / "plays"

    def status(self) -> dict[str, Any]:
        """What the controller tells of the cluster."""
        try:
            found: dict[str, Any] = json.loads((self.data / "status.json").read_text())
        except FileNotFoundError:
            return {}
        return found

    def homes(self) -> set[str]:
        """Members, by home."""
        return {member["home"] for member in self.status()["members"]}

    def processes(self) -> dict[str, int]:
        """Processes of members, by home."""
        return members_below(self.folder)

    def kill(self, home: str) -> None:
        """`kill -9` of a member."""
        os.kill(self.processes()[home], signal.SIGKILL)

    def wait_until(self, true: Callable[[dict[str, Any]], bool], seconds: float = 60) -> dict[str, Any]:
        """Wait until the status is as it should be, and return it."""
        deadline = time.monotonic() + seconds
        while not true(status := self.status()):
            assert time.monotonic() < deadline, f"{status}\n{self.log()}"
            time.sleep(0.05)
        return status

    def wait_for_size(self, size: int) -> None:
        """Wait until so many vote and answer, and nothing is left to be done."""
        self.wait_until(lambda status: status.get("step") == "rest" and status["answering"] == size)
        assert self.homes() == self.processes().keys()

    def close(self) -> None:
        """Leave nothing running."""
        self.stop()
        for process in self.processes().values():
            os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while self.processes():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    # --- clients -----------------------------------------------------------------------

    def post(self, slot: int, path: str, content: dict[str, Any], seconds: float = 2.0) -> dict[str, Any]:
        """Ask the member in a slot.

        Raises:
            OSError: it does not do it.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port + 2 * slot + 1, timeout=seconds)
        try:
            connection.request("POST", f"/v3/{path}", json.dumps(content))
            answer = connection.getresponse()
            found: dict[str, Any] = json.loads(answer.read())
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
        if answer.status != 200:
            raise OSError(str(found))
        return found

    def contents(self, prefix: str) -> dict[str, str]:
        """All that the cluster has under a prefix, read so that nothing agreed on is missing."""
        beginning, end = prefix.encode(), prefix[:-1].encode() + bytes([prefix.encode()[-1] + 1])
        asked = {"key": _coded(beginning), "range_end": _coded(end)}
        for slot in [int(home.partition("-")[0]) for home in self.processes()]:
            try:
                found = self.post(slot, "kv/range", asked, 20.0)
            except OSError:
                continue
            return {_decoded(item["key"]): _decoded(item["value"]) for item in found.get("kvs", ())}
        raise AssertionError("nobody can be read from")


class Writer:
    """Writes all the time, in a thread, to whoever takes it, and counts what was acknowledged.

    Attributes:
        acknowledged: values by key.
        longest: seconds between two acknowledgements.
        trouble: what ended it, if that was not the test.
    """

    def __init__(self, site: Site) -> None:
        self.acknowledged: dict[str, str] = {}
        self.longest = 0.0
        self._site = site
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    def _run(self) -> None:
        slot, number, last = 0, 0, time.monotonic()
        while not self._ended.wait(0.01):
            number += 1
            key, value = f"written/{number:08}", str(number)
            while not self._ended.is_set():
                try:
                    self._site.post(
                        slot, "kv/put", {"key": _coded(key.encode()), "value": _coded(value.encode())}
                    )
                except OSError:
                    slot = (slot + 1) % SLOTS
                    self._ended.wait(0.01)
                    continue
                self.acknowledged[key] = value
                self.longest = max(self.longest, time.monotonic() - last)
                last = time.monotonic()
                break

    def wait_for_more(self, seconds: float = 30) -> None:
        """Wait until more is acknowledged: writing goes on."""
        deadline, before = time.monotonic() + seconds, len(self.acknowledged)
        while len(self.acknowledged) < before + 10:
            assert time.monotonic() < deadline, "nothing is written any more"
            time.sleep(0.01)

    def stop(self) -> None:
        """Write no more."""
        self._ended.set()
        self._thread.join(20)


def _coded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _decoded(content: str) -> str:
    return base64.b64decode(content).decode()
