"""The frontend: `/` answers with a line of a play, out of the database.

    python3 frontend.py --version v1 --port 8000 --cluster eu --database "postgresql:///plays?host=/tmp"

    /          a line; /?play=Hamlet, one of that play
    /version   the version
    /healthz   whether requests should come here: 200, and 503 from SIGTERM on
    /metrics   requests, errors and latency, for Prometheus

v1 needs the first version of the schema; v2 says who speaks, and needs the second; v3 has a fault: three
of ten answers are errors; v4 does not have it. On SIGTERM the health check fails for a moment, so that the
balancer goes elsewhere; then nothing new is accepted, what was begun is answered, and the program ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import random
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import psycopg

COLUMNS = {"v1": "play, line"} | dict.fromkeys(("v2", "v3", "v4"), "play, line, speaker")
FAULTY = 0.3  # share of v3's answers that are errors
CONNECTIONS = 4  # to the database
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


class Plays:
    """Lines out of the database, over a few connections that are made anew when they break."""

    def __init__(self, database: str, version: str) -> None:
        self._database = database
        self._columns = COLUMNS[version]
        self._idle: queue.LifoQueue[psycopg.Connection | None] = queue.LifoQueue()
        for _ in range(CONNECTIONS):
            self._idle.put(None)

    def line(self, play: str | None) -> str:
        """A line as text. Raises psycopg.Error, or LookupError when there is none."""
        which, arguments = ("WHERE play = %s", [play]) if play else ("", [])
        query = f"SELECT {self._columns} FROM lines {which} ORDER BY random() LIMIT 1"
        with self._connection() as connection:
            row = connection.execute(query, arguments).fetchone()
        if row is None:
            raise LookupError(play or "no line")
        title, line, *speaker = row
        said = f"{speaker[0] or 'Somebody'}: " if speaker else ""
        return f"{said}{line} ({title})"

    @contextlib.contextmanager
    def _connection(self) -> Iterator[psycopg.Connection]:
        connection = self._idle.get(timeout=5)
        try:
            if connection is None or connection.closed:
                # The database's server may have been restarted.
                connection = psycopg.connect(self._database, autocommit=True, connect_timeout=2)
            yield connection
        except psycopg.Error:
            if connection is not None:
                connection.close()
            raise
        finally:
            self._idle.put(connection)


class Metrics:
    """What `/metrics` says."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[int, int] = {}
        self._buckets = [0] * len(BUCKETS)
        self._seconds = 0.0

    def count(self, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[status] = self._requests.get(status, 0) + 1
            self._seconds += seconds
            for index, bound in enumerate(BUCKETS):
                self._buckets[index] += seconds <= bound

    def text(self, version: str) -> str:
        with self._lock:
            requests, buckets, seconds = dict(self._requests), list(self._buckets), self._seconds
        total = sum(requests.values())
        errors = sum(count for status, count in requests.items() if status >= 500)
        label, name = f'version="{version}"', "frontend_request_seconds"
        out = ["# TYPE frontend_requests_total counter"]
        for code, count in sorted(requests.items()):
            out.append(f'frontend_requests_total{{{label},code="{code}"}} {count}')
        out += ["# TYPE frontend_errors_total counter", f"frontend_errors_total{{{label}}} {errors}"]
        out += [f"# TYPE {name} histogram"]
        for bound, count in zip((*BUCKETS, "+Inf"), (*buckets, total), strict=True):
            out.append(f'{name}_bucket{{{label},le="{bound}"}} {count}')
        out += [f"{name}_sum{{{label}}} {seconds:.6f}", f"{name}_count{{{label}}} {total}"]
        return "\n".join(out) + "\n"


class Server(ThreadingHTTPServer):
    daemon_threads = True  # connections that are kept and idle hold nobody up; `finish` waits for answers
    request_queue_size = 128

    def __init__(self, port: int, version: str, cluster: str, plays: Plays) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.version, self.cluster, self.plays = version, cluster, plays
        self.theatre = os.environ.get("THEATRE", "")
        self.metrics = Metrics()
        self.leaving = threading.Event()
        self._answering = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        with self._changed:
            self._answering += 1
        try:
            yield
        finally:
            with self._changed:
                self._answering -= 1
                self._changed.notify_all()

    def finish(self, patience: float) -> None:
        """Accept nothing more, and wait for the answers under way."""
        self.socket.close()
        with self._changed:
            self._changed.wait_for(lambda: self._answering == 0, patience)

    def leave(self, drain: float) -> None:
        """End, but first let the balancer see that the health check fails, and go elsewhere."""
        self.leaving.set()
        time.sleep(drain)
        self.shutdown()

    def page(self, play: str | None) -> tuple[int, str]:
        if self.version == "v3" and random.random() < FAULTY:
            return 500, "the prompter has lost the place\n"
        try:
            line = self.plays.line(play)
        except LookupError as error:
            return (404 if play else 503), f"nothing is known of {error}\n"
        except (psycopg.Error, queue.Empty) as error:
            return 503, f"the database does not answer: {type(error).__name__}\n"
        return 200, f"{line}, at {self.theatre}\n" if self.theatre else f"{line}\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body of an answer go out together
    timeout = 30  # seconds that a connection may be idle
    server: Server

    def do_GET(self) -> None:
        with self.server.answering():
            self._reply()

    def _reply(self) -> None:
        began = time.monotonic()
        parts = urlsplit(self.path)
        status, body = self._answer(parts.path, parse_qs(parts.query))
        if parts.path == "/":
            self.server.metrics.count(status, time.monotonic() - began)
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Version", self.server.version)
        self.send_header("Cluster", self.server.cluster)
        self.send_header("Process", str(os.getpid()))
        if self.server.leaving.is_set():
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, str]:
        match path:
            case "/":
                return self.server.page(query.get("play", [None])[0])
            case "/version":
                return 200, f"{self.server.version}\n"
            case "/healthz":
                return (503, "leaving\n") if self.server.leaving.is_set() else (200, "ok\n")
            case "/metrics":
                return 200, self.server.metrics.text(self.server.version)
            case _:
                return 404, "there is nothing here\n"

    def log_message(self, *arguments: object) -> None:
        """Say nothing about single requests."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Answer with lines of plays.")
    parser.add_argument("--version", required=True, choices=sorted(COLUMNS))
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cluster", default="")
    parser.add_argument("--database", default=os.environ.get("DATABASE", ""), help="or DATABASE")
    parser.add_argument(
        "--drain-seconds", type=float, default=1.0, help="from SIGTERM until it stops accepting"
    )
    options = parser.parse_args()
    plays = Plays(options.database, options.version)
    with Server(options.port, options.version, options.cluster, plays) as server:
        # Waiting and `shutdown` would hold up the loop that the signal has interrupted: a thread does them.
        leave = threading.Thread(target=server.leave, args=(options.drain_seconds,), daemon=True)
        signal.signal(signal.SIGTERM, lambda *_: None if server.leaving.is_set() else leave.start())
        server.serve_forever(poll_interval=0.05)
        server.finish(patience=5)


if __name__ == "__main__":
    main()
