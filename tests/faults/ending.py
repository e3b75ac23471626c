"""Ends all that a test has started in its folder, whatever became of it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.bad_input.workspace import until


def end_all_in(folder: Path) -> None:
    """End the supervisords that work below `folder` first, and then whatever is left."""
    for number, only in ((signal.SIGTERM, "supervisor.supervisord"), (signal.SIGKILL, "")):
        pids = [pid for pid, arguments in processes_in(folder) if only in " ".join(arguments)]
        for pid in pids:
            _end(pid, number)


def processes_in(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """Pid and arguments of all processes that work below `folder`, or have it in their arguments."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            line = (entry / "cmdline").read_bytes().decode() if entry.name.isdecimal() else ""
            if line and (str(folder) in line or os.readlink(entry / "cwd").startswith(str(folder))):
                yield int(entry.name), line.split("\0")


def _end(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, number)
            until(f"process {pid} ends", lambda: not Path(f"/proc/{pid}").exists())
        finally:
            os.close(handle)
