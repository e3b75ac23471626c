"""Real Envoys, small real backends and a steady client, all of one test."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import msgspec

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Diff, Goal
from lehr.model.operation import DONE, Outcome, Result
from lehr.model.types import Registry
from lehr.plugins.balancer import admin
from lehr.plugins.balancer.payload import LOAD_BALANCER, TYPES, LoadBalancer
from lehr.plugins.balancer.plugin import BalancerPlugin
from lehr.plugins.process.payload import TYPES as PROCESS_TYPES
from lehr.testing.plugins import FixedReader, push_of, target_of

LAUNCHER = Path(__file__).resolve().parents[4] / "examples" / "shakespeare" / "bin" / "envoy.py"
REGISTRY = Registry((*TYPES, *PROCESS_TYPES))


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


def eventually(condition: Callable[[], bool], patience: float = 20.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


class Backend:
    """Answers every GET with its name; with `slow`, only once it is allowed to."""

    def __init__(self, name: str, *, healthy: bool = True) -> None:
        self.requests = 0
        self.healthy = healthy
        self.slow: threading.Event | None = None
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are two writes

            def do_GET(self) -> None:
                status = 200
                if self.path == "/healthz":
                    status = 200 if backend.healthy else 503
                else:
                    backend.requests += 1
                    if backend.slow is not None and self.path == "/slow":
                        backend.slow.wait(30)
                self.send_response(status)
                self.send_header("Content-Length", str(len(name)))
                self.end_headers()
                self.wfile.write(name.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # connections that Envoy closes

        self._server = Server(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Envoy:
    """An Envoy as the example starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.admin = f"127.0.0.1:{free_port()}"
        self.listen = f"127.0.0.1:{free_port()}"
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(LAUNCHER), "--folder", str(self.folder), "--admin", self.admin]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen([*command, "--drain-seconds", "1"], stdout=log, stderr=log)
        try:
            eventually(self.answers)
        except BaseException:
            self.kill()
            raise

    def answers(self) -> bool:
        with contextlib.suppress(TransientError):
            return bool(admin.statistics(self.admin))
        return False

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def get(self, path: str = "/") -> tuple[int, str]:
        """Status and body of one request through it."""
        connection = http.client.HTTPConnection(self.listen, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def files(self) -> dict[str, bytes]:
        found = {}
        for file in sorted(self.folder.rglob("*.json")):
            found[str(file.relative_to(self.folder))] = file.read_bytes()
        return found

    def balancer(self, backends: dict[str, Any], id: str = "web", **fields: Any) -> Asset:
        payload = {
            "folder": str(self.folder),
            "admin": self.admin,
            "listen": self.listen,
            "backends": backends,
            "health_interval_seconds": 0.1,
            "drain_seconds": 2.0,
            **fields,
        }
        return make_asset(AssetId(id), LOAD_BALANCER, msgspec.convert(payload, LoadBalancer), {})


class Town:
    """A plugin, in a control plane that starts and ends with each call, over the given assets."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self.others: list[Asset] = []

    def reader(self, asset: Asset) -> FixedReader:
        return FixedReader([asset, *self.others], REGISTRY)

    def run(self, work: Callable[[BalancerPlugin], Any]) -> Any:
        threads = Threads("balancer", 4)
        try:
            return asyncio.run(work(BalancerPlugin(self._base, threads, SystemClock())))
        finally:
            threads.close()

    def diff(self, asset: Asset, goal: Goal = Goal.PRESENT) -> Diff:
        found = self.run(lambda plugin: plugin.diff(target_of(asset, goal), self.reader(asset)))
        assert isinstance(found, Diff)
        return found

    def paths(self, asset: Asset, goal: Goal = Goal.PRESENT) -> list[str]:
        return [change.path for change in self.diff(asset, goal).changes]

    def push(self, asset: Asset, goal: Goal = Goal.PRESENT) -> Outcome:
        target = target_of(asset, goal)
        try:
            found = self.run(lambda plugin: plugin.push(target, self.reader(asset), push_of(target)))
        except StalledError as error:
            return Outcome(Result.STALLED, str(error))
        except TransientError as error:
            return Outcome(Result.FAILED, str(error))
        assert isinstance(found, Outcome)
        return found

    def apply(self, asset: Asset, goal: Goal = Goal.PRESENT) -> None:
        assert self.push(asset, goal) == DONE
        assert self.diff(asset, goal).empty


class Client:
    """Sends requests without a pause, over connections that it keeps; counts answers by body or error."""

    def __init__(self, listen: str, workers: int = 3) -> None:
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self.workers = workers
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(listen,)) for _ in range(workers)]

    def __enter__(self) -> Self:
        for worker in self._threads:
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for worker in self._threads:
            worker.join()

    def await_answers(self, count: int) -> None:
        """Until `count` more requests were answered."""
        reached = self.answers.total() + count
        eventually(lambda: self.answers.total() >= reached)

    def _work(self, listen: str) -> None:
        connection = http.client.HTTPConnection(listen, timeout=30)
        while not self._ended.is_set():
            try:
                connection.request("GET", "/")
                response = connection.getresponse()
                body = response.read().decode()
                if response.status == 200:
                    self.answers[body] += 1
                else:
                    self.failures.append(f"{response.status} {body}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection.close()
        connection.close()


@contextlib.contextmanager
def backends(count: int) -> Iterator[list[Backend]]:
    made = [Backend(f"backend-{index}") for index in range(count)]
    try:
        yield made
    finally:
        for backend in made:
            backend.stop()
