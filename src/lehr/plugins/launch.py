"""What to run, and how a process is started."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.plugins.mark import Mark
from lehr.sdk.secrets import SecretValue


class Launch(NamedTuple):
    """What to run, for how many seconds, and the mark that its processes carry.

    Attributes:
        secrets: further variables, which are hidden in what the processes print.
        whole: bytes of standard output, and of standard error, to keep whole.
        log: a file that gets all output in place of pipes, whose end would end a process that outlives Lehr.
        outlives: whether the process continues when the call that started it is cancelled, or Lehr ends.
        interrupt: how the first process, alone, is asked to end; None to send SIGTERM to the whole group.
        grace: seconds that it has to end when asked; None for those of `Processes`.
    """

    arguments: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    timeout: float
    mark: Mark | None = None
    secrets: Mapping[str, SecretValue] = MappingProxyType({})
    whole: int = 0
    log: Path | None = None
    outlives: bool = False
    interrupt: signal.Signals | None = None
    grace: float | None = None


def start(launch: Launch) -> subprocess.Popen[bytes]:
    """A new process. Blocks.

    Raises:
        StalledError: the program or the directory does not exist, or may not be used.
        TransientError: the machine could not start it.
    """
    if launch.mark is None:
        return _spawn(launch)
    try:
        with launch.mark.held() as descriptor:
            process = _spawn(launch, descriptor)
            try:
                launch.mark.note(process.pid)
            except OSError:
                with process:
                    os.killpg(process.pid, signal.SIGKILL)
                raise
            return process
    except OSError as error:
        fix = "check that the state directory has free space and that Lehr can write to it"
        raise TransientError("the push cannot be recorded", code="CMD104", why=str(error), fix=fix) from error


def _spawn(launch: Launch, *inherited: int) -> subprocess.Popen[bytes]:
    secrets = {name: value.text() for name, value in launch.secrets.items()}
    try:
        with _output(launch) as output:
            return subprocess.Popen(
                launch.arguments,
                cwd=launch.directory,
                env=launch.environment | secrets,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                bufsize=0,
                start_new_session=True,
                pass_fds=inherited,
            )
    except OSError as error:
        raise _error(launch, error) from error


@contextlib.contextmanager
def _output(launch: Launch) -> Iterator[int]:
    """Where the process writes to."""
    if launch.log is None:
        yield subprocess.PIPE
        return
    descriptor = os.open(launch.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_FIXES = {
    errno.ENOENT: "install it, or correct the path",
    errno.ENOTDIR: "correct the path",
    errno.EACCES: "make it executable for the user that runs Lehr (chmod +x), or correct the path",
    errno.EPERM: "allow the user that runs Lehr to execute it",
    errno.ENOEXEC: "begin the script with a line like #!/bin/sh, or name its interpreter",
    errno.E2BIG: "shorten the arguments and the environment",
    errno.ELOOP: "fix the symbolic links",
    errno.ENAMETOOLONG: "correct the path",
}


def _error(launch: Launch, error: OSError) -> LehrError:
    why = error.strerror or str(error)
    fix = _FIXES.get(error.errno or 0, "")
    kind = StalledError if fix else TransientError
    return kind(f"{error.filename or launch.arguments[0]} cannot be used", code="CMD105", why=why, fix=fix)
