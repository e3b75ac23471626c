"""A real PostgreSQL server for tests, run by the example's launcher."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg

LAUNCHER = Path(__file__).resolve().parent.parent / "examples" / "shakespeare" / "bin" / "postgres.py"
USER = "plays"
PORT = 5432  # of the socket's name only: nothing listens on the network


class PostgresServer:
    """A server on a Unix socket in a folder of its own, which `close` takes away.

    The folder is not pytest's: the server of root runs as another user, who may not go there.
    """

    def __init__(self, *, durable: bool = False) -> None:
        """With `durable`, commits survive a crash of the machine: for benches."""
        self.folder = Path(tempfile.mkdtemp(prefix="lehr-pg-"))
        self.folder.chmod(0o711)
        self.sockets = self.folder / "s"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = () if durable else ("-c", "fsync=off")

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [sys.executable, str(LAUNCHER), "--data", str(self.folder / "data")]
        command += ["--sockets", str(self.sockets), "--user", USER, "--", *self._settings]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.run("SELECT 1")
            except psycopg.OperationalError:
                waiting = self._process.poll() is None and time.monotonic() < deadline
                assert waiting, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it; its clients' sessions end."""
        if self._process is not None:
            os.kill(self._process.pid, number)
            self._process.wait(30)
            self._process = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """It answers nothing in this context, and ends no connection either: as a machine that hangs."""
        assert self._process is not None
        held = _descendants(self._process.pid)
        for pid in held:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in held:
                os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """Stop it and take its folder away."""
        self.stop()
        shutil.rmtree(self.folder)

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection in autocommit mode."""
        return psycopg.connect(host=str(self.sockets), port=PORT, user=USER, dbname=database, autocommit=True)

    def run(self, query: LiteralString, *values: object, database: str = "postgres") -> list[Any]:
        """Run one statement; returns the rows if there are any."""
        with self.connect(database) as connection:
            cursor = connection.execute(query, values or None)
            return cursor.fetchall() if cursor.description else []

    def url(self, database: str) -> str:
        """The connection as `lehr.DatabaseSchema` has it."""
        return f"postgresql://{USER}@/{database}?host={self.sockets}&port={PORT}"


def _descendants(pid: int) -> list[int]:
    """Processes that this one has begun, and those that they have."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [id for child in map(int, children) for id in (child, *_descendants(child))]
