"""Reads `/proc`: processes that are alive, carry Lehr's marks, or listen on a port.

Everything here reads and never waits; it may be called from any thread.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lehr.base.errors import StalledError

SUPERVISOR = "LEHR_SUPERVISOR"
"""Variable with the directory of the group: in supervisord and in every process that it starts."""

REPLICA = "LEHR_REPLICA"
"""Variable with `partition:id#index`: in a replica and in every process that it starts."""

CONTENT = "LEHR_CONTENT"
LOADED = "LEHR_LOADED"
VERSION = "LEHR_VERSION"
PORTS = "LEHR_PORTS"
RESTART = "LEHR_RESTART"

_LISTEN = "0A"
_LOCAL = {
    "00000000",  # 0.0.0.0
    "0100007F",  # 127.0.0.1, as hosts of little-endian order write it
    "7F000001",
    "0" * 32,  # ::
    "00000000000000000000000001000000",  # ::1
    "00000000000000000000000000000001",
    "0000000000000000FFFF00000100007F",  # ::ffff:127.0.0.1
    "00000000000000000000FFFF7F000001",
}


class ProcessId(msgspec.Struct, frozen=True):
    """Identifies one process among all since the machine started.

    Attributes:
        start: start time in clock ticks since boot; distinguishes it from a later user of the pid.
    """

    pid: int
    start: int


class Parentage(msgspec.Struct, frozen=True):
    """A process, its parent's pid and whether a signal has stopped it.

    This changes when a supervisor or its program ends, is stopped, or continues.
    """

    process: ProcessId
    parent: int
    suspended: bool = False


class Kin(msgspec.Struct, frozen=True):
    """A process with its pids: of its parent, the leader of its process group, and of its session.

    Attributes:
        suspended: True while it is stopped by a signal (SIGSTOP) and does nothing, not even on SIGTERM.
    """

    process: ProcessId
    parent: int
    group: int
    session: int
    suspended: bool = False


def kin(pid: int) -> Kin | None:
    """The process that has `pid` now; None if there is none, or it has ended (a zombie)."""
    fields = _content(pid, "stat").rpartition(b")")[2].split()
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    parent, group, session = map(int, fields[1:4])
    return Kin(ProcessId(pid, int(fields[19])), parent, group, session, fields[0] == b"T")


def pids() -> Iterator[int]:
    """The pids of all processes except this one."""
    own = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own)


def all_processes() -> dict[int, Kin]:
    """All processes except this one, by pid."""
    return {pid: found for pid in pids() if (found := kin(pid)) is not None}


def boot() -> str:
    """Identifies this start of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def parentage(pid: int) -> Parentage | None:
    """The process that has `pid` now; None if there is none, or it has ended (a zombie)."""
    found = kin(pid)
    return None if found is None else Parentage(found.process, found.parent, found.suspended)


def identify(pid: int) -> ProcessId | None:
    """The process that has `pid` now; None as for `parentage`."""
    found = parentage(pid)
    return None if found is None else found.process


def alive(process: ProcessId) -> bool:
    """True while exactly this process runs."""
    return identify(process.pid) == process


def send(process: ProcessId, number: signal.Signals) -> None:
    """Signal exactly this process; nothing happens when it has ended.

    Raises:
        StalledError: it belongs to another user.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if alive(process):  # checked after opening: the handle cannot refer to another process later
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise StalledError(
            f"process {process.pid} belongs to another user and cannot be ended",
            code="PRO106",
            fix="end it, or run Lehr as that user",
        ) from error
    finally:
        os.close(handle)


def environment(pid: int) -> dict[str, str]:
    """The variables that `pid` was started with; empty when they cannot be read."""
    return _parse(_content(pid, "environ"))


def marked(root: Path) -> Iterator[tuple[ProcessId, dict[str, str]]]:
    """All processes that carry the mark of a group below `root`, with their environments."""
    mark = f"{SUPERVISOR}={root}/".encode()
    for pid in pids():
        raw = _content(pid, "environ")
        if mark in raw:
            process = identify(pid)
            if process is not None:
                yield process, _parse(raw)


def listeners(ports: frozenset[int]) -> list[tuple[int, int | None]]:
    """Ports of `ports` on which a process listens for local connections, with its pid.

    The pid is None if it cannot be read (a process of another user).
    """
    return [
        (port, _holder(link)) for port, address, link in _listening() if address in _LOCAL and port in ports
    ]


def program(pid: int) -> str:
    """The name of the program that `pid` runs; empty when it cannot be read."""
    return _content(pid, "comm").decode(errors="replace").strip()


def arguments(pid: int) -> list[str]:
    """The command line of `pid`; empty when it has none, or it cannot be read."""
    raw = _content(pid, "cmdline")
    return raw.decode(errors="replace").removesuffix("\0").split("\0") if raw else []


def suspended(pid: int) -> bool:
    """True while `pid` is stopped by a signal; see `Kin`."""
    found = kin(pid)
    return found is not None and found.suspended


def executable(pid: int) -> str:
    """The file that `pid` runs; empty if it cannot be read, or no longer exists."""
    file = _target(pid, "exe")
    return file if os.path.exists(file) else ""


def directory(pid: int) -> str:
    """The working directory of `pid`; empty if it cannot be read."""
    return _target(pid, "cwd")


def listening_ports(pid: int) -> list[int]:
    """The TCP ports on which `pid` itself listens, in ascending order."""
    sockets = set(_handles(pid))
    return sorted({port for port, _, link in _listening() if link in sockets})


def inherited_capabilities() -> int | None:
    """The capabilities of programs that this process starts, as bits; None if they cannot be read."""
    lines = _content(os.getpid(), "status").decode(errors="replace").splitlines()
    name = "CapEff:" if os.geteuid() == 0 else "CapAmb:"
    return next((int(line.split()[1], 16) for line in lines if line.startswith(name)), None)


def _content(pid: int, name: str) -> bytes:
    """The content of a file about a process; empty if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _target(pid: int, name: str) -> str:
    """The target of a link of a process; empty if it cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


def _parse(raw: bytes) -> dict[str, str]:
    pairs = (item.partition("=") for item in raw.decode(errors="surrogateescape").split("\0"))
    return {name: value for name, found, value in pairs if found}


def _listening() -> Iterator[tuple[int, str, str]]:
    """Port, address and socket of every listener."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            address, _, port = fields[1].partition(":")
            if fields[3] == _LISTEN:
                yield int(port, 16), address, f"socket:[{fields[9]}]"


def _holder(link: str) -> int | None:
    for name in os.listdir("/proc"):
        if name.isdigit() and link in _handles(int(name)):
            return int(name)
    return None


def _handles(pid: int) -> Iterator[str]:
    """Link targets of the open files of `pid`."""
    try:
        handles = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return iter(())
    return filter(None, (_target(pid, f"fd/{handle}") for handle in handles))
