"""Waits for a command that was started for a replica, but never for longer than it may take."""

from __future__ import annotations

import os
import signal
import subprocess

from lehr.base.clock import Clock

_POLL = 0.05  # seconds


async def await_end(command: subprocess.Popen[bytes], clock: Clock, seconds: float) -> int | None:
    """Exit status of `command`; None if it took longer than `seconds`.

    When late or cancelled, the command is killed with all in its process group, which it leads.
    """
    deadline = clock.monotonic() + seconds
    try:
        while command.poll() is None and clock.monotonic() < deadline:
            await clock.sleep(_POLL)
        return command.poll()
    finally:
        if command.returncode is None:
            os.killpg(command.pid, signal.SIGKILL)
            command.wait()


def how_it_ended(status: int) -> str:
    """In words; `status` is not 0."""
    return f"failed with exit status {status}" if status > 0 else f"was ended by signal {-status}"
