"""Runs the command that validates new content before it takes its place. Blocks."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError
from lehr.base.text import one_line
from lehr.plugins.environment import small_environment
from lehr.plugins.file.payload import PLACE

MOST_OUTPUT = 2000
"""Bytes of the command's output that are kept: the last ones."""

_CHUNK = 1 << 16
_MOST_CHUNKS_AFTER_END = 32
_WITHHELD = "its output is not shown, because the content is a secret"
_INTACT = "correct the content or `validate`; the file has not been changed"


class Validation(NamedTuple):
    """A command that accepts or refuses the new content of a file.

    Attributes:
        command: program and arguments; `PLACE` in them becomes the path of the new content.
        timeout: seconds until it is killed.
        directory: where it runs.
        secret: whether its output may quote a secret.
    """

    command: Sequence[str]
    timeout: float
    directory: str
    secret: bool

    def require(self, path: str, new: str, clock: Clock) -> None:
        """Return if the command accepts the content.

        Args:
            path: the file that will have it, for messages.
            new: where the content is now.

        Raises:
            StalledError: it refuses it, or cannot be started.
            TransientError: it did not end in time.
        """
        process = self._started(path, new)
        try:
            output, ended = _followed(process, clock, self.timeout)
        finally:
            _kill(process)
        if not ended:
            raise TransientError(
                f"`validate` of {path} did not end within {self.timeout:g}s",
                code="FIL113",
                why=self._shown(output, path, new),
                fix="raise `validate_timeout_seconds`, or find out what it waits for",
            )
        if code := process.returncode:
            raise StalledError(
                f"`validate` refuses the new content of {path} ({_ending(code)})",
                code="FIL112",
                why=self._shown(output, path, new),
                fix=_INTACT,
            )

    def _started(self, path: str, new: str) -> subprocess.Popen[bytes]:
        arguments = [part.replace(PLACE, new) for part in self.command]
        try:
            return subprocess.Popen(
                arguments,
                cwd=self.directory,
                env=small_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            kind = TransientError if error.errno in _PASSING else StalledError
            raise kind(
                f"`validate` of {path} cannot run {arguments[0]}",
                code="FIL114",
                why=error.strerror or str(error),
                fix="install the program, or correct `validate`; the file has not been changed",
            ) from error

    def _shown(self, output: bytes, path: str, new: str) -> str:
        if self.secret:
            return _WITHHELD
        # Operators know the file by its own name.
        return one_line(output.decode(errors="replace").replace(new, path))


_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)


def _followed(process: subprocess.Popen[bytes], clock: Clock, seconds: float) -> tuple[bytes, bool]:
    """The last output of a process, and whether it ended within `seconds`.

    A pipe that another program keeps open is not waited for.
    """
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(handle, select.POLLIN)
        deadline, last = clock.monotonic() + seconds, b""
        while (left := deadline - clock.monotonic()) > 0:
            ready = {descriptor for descriptor, _ in poll.poll(left * 1000)}
            if handle in ready:
                return _rest(pipe, last), True
            if pipe in ready:
                chunk = os.read(pipe, _CHUNK)
                last = (last + chunk)[-MOST_OUTPUT:]
                if not chunk:
                    poll.unregister(pipe)
        return _rest(pipe, last), False
    finally:
        os.close(handle)


def _rest(pipe: int, last: bytes) -> bytes:
    """`last` with what is still in the pipe."""
    for _ in range(_MOST_CHUNKS_AFTER_END):
        try:
            chunk = os.read(pipe, _CHUNK)
        except BlockingIOError:
            break
        if not chunk:
            break
        last = (last + chunk)[-MOST_OUTPUT:]
    return last


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End what is left of its group, and reap it. Before that, the group's number cannot be another's."""
    with process, contextlib.suppress(PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ending(code: int) -> str:
    return f"killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"
