"""Describes programs that Lehr did not start. Blocks; read-only.

They cannot be taken over: a process's parent does not change, and Lehr is not notified how it ends. So each
draft has an obstacle, and names what to end before Lehr can start it.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from lehr.base.errors import StalledError
from lehr.plugins.process import procfs
from lehr.plugins.process.ownership import Ownership
from lehr.plugins.process.payload import PROCESS
from lehr.sdk.discovered_ids import Ids
from lehr.sdk.plugin import Found

MOST_PROGRAMS = 100

_PORT = re.compile(r":?(\d{1,5})")


def port_of(word: str) -> int | None:
    """The port in `8080` or `:8080`; None for any other word."""
    match = _PORT.fullmatch(word)
    return int(match[1]) if match else None


def listening(port: int) -> int:
    """The pid of the process that listens on `port`; of a master and its workers, the master.

    Raises:
        StalledError: no process does, or one that cannot be inspected.
    """
    found = [pid for _, pid in procfs.listeners(frozenset({port}))]
    if not found:
        raise StalledError(
            f"no process listens on port {port}", code="PRO119", fix="start the program, or correct the port"
        )
    if found[0] is None:
        raise StalledError(
            f"a process of another user listens on port {port}",
            code="PRO120",
            fix="run this command as that user",
        )
    return _master(found[0], port)


def _master(pid: int, port: int) -> int:
    """The first ancestor of the same program that shares the port, or of which `pid` is just a fork."""
    while (kin := procfs.kin(pid)) is not None and procfs.program(kin.parent) == procfs.program(pid):
        forked = procfs.arguments(kin.parent) == procfs.arguments(pid)
        if not forked and port not in procfs.listening_ports(kin.parent):
            break
        pid = kin.parent
    return pid


def named(pattern: str) -> list[int]:
    """Pids of running programs whose name matches `pattern`, without those started by another match.

    Raises:
        StalledError: there are too many.
    """
    found = {pid for pid in procfs.pids() if fnmatch.fnmatchcase(procfs.program(pid), pattern)}
    first = sorted(pid for pid in found if (it := procfs.parentage(pid)) is None or it.parent not in found)
    if len(first) > MOST_PROGRAMS:
        raise StalledError(
            f"{len(first)} programs match {pattern}", code="PRO121", fix="name one by its port"
        )
    return first


def drafts(pids: Sequence[int], owned: Ownership, base: str, ids: Ids) -> Iterator[Found]:
    """A draft of each process that Lehr does not own.

    Args:
        owned: Lehr's own processes.
        base: the directory that relative ones start from.
    """
    for pid in pids:
        command = procfs.arguments(pid)
        ours = procfs.REPLICA in procfs.environment(pid) or owned.marks(pid)
        if command and not ours:
            yield _draft(pid, command, base, ids.propose(f"process/{procfs.program(pid) or pid}"))


def _draft(pid: int, command: list[str], base: str, id: str) -> Found:
    ports = procfs.listening_ports(pid)
    command, doubt = _as_started(pid, command)
    names = port_names(len(ports))
    payload: dict[str, Any] = {"command": [with_ports(word, ports, names) for word in command]}
    directory = procfs.directory(pid)
    if directory and directory != base:
        payload["directory"] = directory
    if ports:
        payload["ports"] = [{"name": name, "base": port} for name, port in zip(names, ports, strict=True)]
    return Found(
        id=id,
        type=PROCESS,
        payload=payload,
        notes=(
            "its environment variables were not read, as they may be secrets: add those that it needs",
            "add `health_url`, so that a replica counts only when it answers",
            *doubt,
        ),
        obstacle=f"Lehr did not start process {pid} and cannot take it over: stop it and whatever restarts "
        "it, then let Lehr start it",
    )


def port_names(count: int) -> list[str]:
    """Names for the ports of a draft."""
    return ["http"] if count == 1 else [f"port-{place}" for place in range(1, count + 1)]


def with_ports(text: str, ports: Sequence[int], names: Sequence[str]) -> str:
    """`text` with placeholders for these ports."""
    for port, name in zip(ports, names, strict=False):
        text = number(port).sub("{port}" if len(names) == 1 else f"{{port.{name}}}", text)
    return text


def number(value: int) -> re.Pattern[str]:
    """`value` in decimal digits, as a separate number."""
    return re.compile(rf"(?<!\d){value}(?!\d)")


def _as_started(pid: int, command: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The command line that `pid` was started with, as far as known, and what to check about it.

    nginx, Redis, PostgreSQL and others write a title over it (`nginx: master process nginx -c nginx.conf`).
    """
    title, *rest = command
    file = procfs.executable(pid)
    if " " not in title or any(rest) or os.path.exists(title) or not file:
        return command, ()
    words = title.split()
    begins = [place for place, word in enumerate(words) if os.path.basename(word) == os.path.basename(file)]
    guess = [file, *words[begins[0] + 1 :]] if begins else [file]
    note = f"it shows `{title.strip()}` instead of its command line: check `command`, which is a guess"
    return guess, (note,)
