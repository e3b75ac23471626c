"""Ends all that a test has started in its folder, whatever became of it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

_PATIENCE = 20.0


def end_all_in(folder: Path) -> None:
    """Kill what works below `folder`; the supervisords first, or they would start the others again."""
    for only in ("supervisor.supervisord", ""):
        for pid, arguments in list(processes_in(folder)):
            if only in " ".join(arguments):
                _kill(pid)


def processes_in(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Pid and arguments of all processes that work below `folder`, or have it in their arguments."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            line = os.fsdecode((entry / "cmdline").read_bytes()) if entry.name.isdecimal() else ""
            if line and (str(folder) in line or os.readlink(entry / "cwd").startswith(str(folder))):
                yield int(entry.name), line.split("\0")


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            # Also if whoever is to reap it takes his time.
            ended, _, _ = select.select([handle], [], [], _PATIENCE)
            assert ended, f"process {pid} does not end"
        finally:
            os.close(handle)
