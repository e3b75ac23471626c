"""Processes, data and records of one cluster on this machine.

    production/NAME/
      cluster.json          what a controller has to know when it is started again
      status.json           how things stand, for people
      lock                  held by the controller that is at work
      members/HOME/
        launched            written before a process is first started
        data/               etcd's own
        log

A process is known by the folder of data that it was started with, which the kernel tells: so a controller
that is started again finds them all, and never takes another's process for one of its own.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from etcd_operator.gateway import client_port, peer_port, peer_url
from etcd_operator.plan import Home
from lehr.base.errors import StalledError, TransientError

PROGRAM_VARIABLE = "ETCD"
"""In the environment: where etcd is, if it is not in PATH."""


class Change(msgspec.Struct, frozen=True):
    """A change of the members that was asked for.

    Attributes:
        do: a `Do`, in words.
        slot: where a member was to be added.
        id: of the member that was to be promoted or removed.
        at: when, in seconds since the epoch.
    """

    do: str
    at: float
    slot: int = 0
    id: int = 0


class Record(msgspec.Struct, frozen=True):
    """What a controller has to know when it is started again.

    Attributes:
        first: home of the first member.
        port: the cluster's first.
        cluster: id of the cluster; 0 until it was first seen to work.
        change: asked for, and it is not known what came of it.
    """

    first: str
    port: int
    cluster: int = 0
    change: Change | None = None


class Machine(Protocol):
    """What one machine has of one cluster."""

    def record(self) -> Record | None:
        """What was written last; None if nothing ever was."""
        ...

    def write(self, record: Record) -> None:
        """Keep a record. When this returns, a crash does not lose it."""
        ...

    def tell(self, status: Mapping[str, Any]) -> None:
        """Tell people how things stand."""
        ...

    def homes(self) -> list[Home]:
        """What there is of members."""
        ...

    def run(self, home: str, cluster: Mapping[str, int], *, new: bool) -> None:
        """Start a member's process. `cluster` is the slots of all members that it is to know, by name.

        Raises:
            TransientError: somebody else has one of its ports.
        """
        ...

    def kill(self, home: str) -> None:
        """End the processes of a member at once. etcd is made for that."""
        ...

    def discard(self, home: str) -> None:
        """Delete a member's folder. It has no process."""
        ...


class LocalMachine:
    """Implements `Machine` in a folder.

    Calls block for milliseconds, which a controller of a few clusters may.
    """

    def __init__(self, folder: Path, port: int) -> None:
        """Take hold of the folder, for as long as this process lives.

        Raises:
            StalledError: another controller has it, or there is no etcd.
        """
        self._folder = folder.resolve()
        self._members = self._folder / "members"
        self._port = port
        self._program = os.environ.get(PROGRAM_VARIABLE) or shutil.which("etcd")
        self._children: list[subprocess.Popen[bytes]] = []
        if self._program is None:
            raise StalledError(
                "there is no etcd in PATH",
                fix=f"install it (Debian: apt-get install etcd-server), or name it in {PROGRAM_VARIABLE}",
            )
        self._members.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise StalledError(f"another controller is at work in {folder}", fix="stop it first") from error

    def record(self) -> Record | None:
        try:
            return msgspec.json.decode((self._folder / "cluster.json").read_bytes(), type=Record)
        except FileNotFoundError:
            return None

    def write(self, record: Record) -> None:
        _write(self._folder / "cluster.json", msgspec.json.encode(record))

    def tell(self, status: Mapping[str, Any]) -> None:
        content = msgspec.json.format(msgspec.json.encode(dict(status)), indent=2)
        _write(self._folder / "status.json", content + b"\n")

    def homes(self) -> list[Home]:
        running = self._processes()
        names = {path.name for path in self._members.iterdir()} | running.keys()
        return [self._home(name, running.get(name, [0])[0]) for name in sorted(names)]

    def run(self, home: str, cluster: Mapping[str, int], *, new: bool) -> None:
        self._require_ports(int(home.partition("-")[0]))
        folder = self._members / home
        folder.mkdir(exist_ok=True)
        _write(folder / "launched", b"")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ETCD")}
        if platform.machine() == "aarch64":
            environment["ETCD_UNSUPPORTED_ARCH"] = "arm64"  # 3.4 does not start there unasked
        with (folder / "log").open("ab") as log:
            self._children.append(
                subprocess.Popen(
                    self._command(home, cluster, new),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    env=environment,
                    start_new_session=True,  # it outlives the controller
                )
            )

    def kill(self, home: str) -> None:
        for process in self._processes().get(home, ()):
            try:
                handle = os.pidfd_open(process)
            except ProcessLookupError:
                continue
            try:
                if self._home_of(process) == home:  # the number may be another's by now
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            except ProcessLookupError:
                continue
            finally:
                os.close(handle)

    def discard(self, home: str) -> None:
        shutil.rmtree(self._members / home, ignore_errors=True)  # what is left is tried again

    def _home(self, name: str, process: int) -> Home:
        folder = self._members / name
        log_of_writes = folder / "data" / "member" / "wal"
        return Home(
            name,
            int(name.partition("-")[0]),
            launched=(folder / "launched").exists(),
            data=log_of_writes.is_dir() and any(log_of_writes.iterdir()),
            process=process,
        )

    def _require_ports(self, slot: int) -> None:
        """Without one of them, etcd would end, and say why in its log alone."""
        for port in (peer_port(self._port, slot), client_port(self._port, slot)):
            with socket.socket() as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    trial.bind(("127.0.0.1", port))
                except OSError as error:
                    raise TransientError(
                        f"port {port} of 127.0.0.1 cannot be had for a member of {self._folder.name}",
                        why=error.strerror or "",
                        fix="end the program that has it",
                    ) from error

    def _command(self, home: str, cluster: Mapping[str, int], new: bool) -> list[str]:
        slot = int(home.partition("-")[0])
        client = f"http://127.0.0.1:{client_port(self._port, slot)}"
        peer = peer_url(self._port, slot)
        members = ",".join(f"{name}={peer_url(self._port, at)}" for name, at in cluster.items())
        flags = {
            "name": home,
            "data-dir": str(self._members / home / "data"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": members,
            "initial-cluster-state": "new" if new else "existing",
            "initial-cluster-token": self._folder.name,
            "logger": "zap",
            "log-outputs": "stderr",
        }
        assert self._program is not None
        return [self._program, *(f"--{name}={value}" for name, value in flags.items())]

    def _processes(self) -> dict[str, list[int]]:
        """Processes by home; one that has ended is none, also if nobody has taken note of it."""
        self._children = [child for child in self._children if child.poll() is None]
        found: dict[str, list[int]] = {}
        for entry in os.listdir("/proc"):
            home = self._home_of(int(entry)) if entry.isdigit() else None
            if home is not None:
                found.setdefault(home, []).append(int(entry))
        return found

    def _home_of(self, process: int) -> str | None:
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return None
        beginning, end = f"--data-dir={self._members}/".encode(), b"/data"
        for word in words:
            if word.startswith(beginning) and word.endswith(end):
                return word[len(beginning) : -len(end)].decode()
        return None


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and so that a crash does not lose it."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
