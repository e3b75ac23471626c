"""Plugin programs: started, greeted, read and ended.

Plugins that speak `lehr.plugin.v1` and Terraform providers are such programs (see `handshake`).

Architecture invariants: only this user can reach a plugin's socket, since a plugin has credentials and obeys
anyone who does; a program never outlives Lehr; its output is always read, or it would block in the end; the
event loop never waits for the program's file system.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import StalledError, TransientError, raised_as
from lehr.base.text import one_line
from lehr.plugins.environment import small_environment
from lehr.plugins.handshake import Handshake, greeting
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden

_MOST_LINE = 8192
_LAST_LINES = 20
_MOST_SOCKET_PATH = 107
_LONGEST_SOCKET_NAME = 40
_SHORT_WHILE = 1.0

# A death signal is sent when the *thread* ends that has started the program, so the event loop's thread does
# that. It starts this interpreter, whose disk answers; the program may be on one that hangs.
_START = """
import ctypes, os, signal, sys
parent, directory, *arguments = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(parent):
    sys.exit(1)
try:
    os.chdir(directory)
    os.execvp(arguments[0], arguments)
except OSError as error:
    sys.exit(f"{error.filename or arguments[0]}: {error.strerror}")
"""


class Program(NamedTuple):
    """A program to start.

    Attributes:
        arguments: program and arguments. A program without a slash is looked up in `PATH`.
        environment: variables beyond `PATH`, `HOME` and `LANG`. They may be secret.
        directory: where it runs.
        sha256: hexadecimal digest that the program's file must have; empty for any.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = MappingProxyType({})
    directory: str = "/"
    sha256: str = ""


class PluginProcess:
    """A program that has answered the handshake; `start` makes it.

    Attributes:
        version: protocol version that it chose.
        address: of its server, in gRPC's notation (`unix:/tmp/lehr-x/plugin.sock`).
        hidden: secrets that are not shown in what it prints.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        folder: Path,
        clock: Clock,
        log: Callable[[str], None],
        hidden: Hidden,
    ) -> None:
        self.version = 0
        self.address = ""
        self.hidden = hidden
        self._process = process
        self._folder = folder
        self._clock = clock
        self._log = log
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        assert process.stderr is not None
        self._readers = [asyncio.ensure_future(self._drain(process.stderr))]
        self._reaping = asyncio.ensure_future(self._reap())

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its process group."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def ended(self) -> str:
        """Wait until it has ended. Returns how, and the last line that it printed."""
        code = await self._process.wait()
        await asyncio.wait(self._readers, timeout=_SHORT_WHILE)
        how = f"killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"
        return f"{how}: {self._last[-1]}" if self._last else how

    async def greet(self, handshake: Handshake, seconds: float) -> None:
        """Read the handshake, for at most so many seconds.

        Raises:
            TransientError: it ended, or did not answer in time.
            StalledError: it printed something else, or speaks no version that the host speaks.
        """
        assert self._process.stdout is not None
        reading = asyncio.ensure_future(_line(self._process.stdout))
        await self._wait_for(reading, seconds)
        if not reading.done():
            reading.cancel()
            what = f"the plugin has not answered the handshake within {seconds:g} seconds"
            raise TransientError(
                what, code="PLG102", why=self._last[-1] if self._last else "", fix="see its log"
            )
        line = reading.result()
        self._readers.append(asyncio.ensure_future(self._drain(self._process.stdout)))
        if not line.strip():
            await self._wait_for(asyncio.ensure_future(self._process.wait()), _SHORT_WHILE)
            why = "it has closed its standard output" if self.running else await self.ended()
            raise TransientError(
                "the plugin ended before the handshake", code="PLG101", why=why, fix="see its log"
            )
        self.version, self.address = greeting(self.hidden.shown(one_line(line)), handshake, self._folder)

    async def stop(self, grace: float = 0.0) -> None:
        """End it: close its standard input, send SIGTERM, and after `grace` seconds SIGKILL.

        To be called also after it has ended.
        """
        if self._process.stdin is not None:
            self._process.stdin.close()
        if grace > 0 and self.running:
            self._signal(signal.SIGTERM)
            await self._wait_for(asyncio.ensure_future(self._process.wait()), grace)
        if self.running:
            self._signal(signal.SIGKILL)
        await self._reaping
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _reap(self) -> None:
        """Kill what it has started as soon as it ends: later, another process may have its id."""
        await self._process.wait()
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _wait_for(self, task: asyncio.Future[Any], seconds: float) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({task, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()

    async def _drain(self, stream: asyncio.StreamReader) -> None:
        while line := await _line(stream):
            shown = self.hidden.shown(one_line(line))
            if shown:
                self._last.append(shown)
                self._log(shown)


class PluginProcesses:
    """Starts plugin programs, each with a folder of its own for its socket.

    Args:
        blocking: reads programs for their digest, and looks for folders.
    """

    def __init__(self, blocking: Blocking, clock: Clock) -> None:
        self._blocking = blocking
        self._clock = clock

    async def start(
        self,
        program: Program,
        handshake: Handshake,
        *,
        seconds: float,
        log: Callable[[str], None],
        hidden: Hidden = NOTHING_HIDDEN,
    ) -> PluginProcess:
        """Start `program` and wait for its handshake.

        Args:
            seconds: until it must have answered.
            log: gets each line that it prints, without secrets.

        Raises:
            StalledError: the program's file is missing, has another digest, or speaks another protocol.
            TransientError: it ended, or did not answer in time.
        """
        arguments = await self._blocking.run(_checked, program)
        folder = await self._blocking.run(_folder)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _START, str(os.getpid()), program.directory, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=_environment(program, handshake, folder),
            start_new_session=True,  # an interrupt from the terminal is meant for Lehr
            limit=_MOST_LINE,
        )
        started = PluginProcess(process, folder, self._clock, log, hidden)
        try:
            await started.greet(handshake, seconds)
        except BaseException:
            await started.stop()
            raise
        return started

    async def identity(self, program: Program) -> object:
        """A value that changes when the program's file, or one among its arguments, is replaced or edited."""
        return await self._blocking.run(_identity, program)


def _identity(program: Program) -> object:
    name, *arguments = program.arguments
    paths = [_path(name) or name, *(os.path.join(program.directory, argument) for argument in arguments)]
    return [_identity_of(path) for path in paths]


def _identity_of(path: str) -> object:
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # most arguments are not files
        return None
    if not stat.S_ISREG(found.st_mode):  # a folder changes with what a plugin writes there
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _path(name: str) -> str | None:
    return shutil.which(name, path=small_environment()["PATH"]) if "/" not in name else name


def _environment(program: Program, handshake: Handshake, folder: Path) -> dict[str, str]:
    return {
        **small_environment(),
        **program.environment,
        handshake.cookie_name: handshake.cookie,
        "PLUGIN_PROTOCOL_VERSIONS": ",".join(map(str, handshake.versions)),
        "PLUGIN_UNIX_SOCKET_DIR": str(folder),
        "TMPDIR": str(folder),  # where plugins with an old go-plugin listen
    }


def _checked(program: Program) -> tuple[str, ...]:
    """The arguments, with the program's path."""
    name = program.arguments[0]
    path = _path(name)
    if path is None or not os.path.isfile(path):
        raise StalledError(
            f"there is no program {name}", code="PLG103", fix="install it, or correct its path"
        )
    if not os.access(path, os.X_OK):
        raise StalledError(f"the program {path} is not executable", code="PLG104", fix=f"chmod +x {path}")
    if program.sha256:
        _check_digest(path, program.sha256)
    return (path, *program.arguments[1:])


def _check_digest(path: str, expected: str) -> None:
    what, fix = f"the program {path} cannot be read", "check its permissions"
    with raised_as(StalledError, what, code="PLG105", fix=fix), open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected.lower():
        raise StalledError(
            f"the program {path} is not the one that was pinned",
            code="PLG106",
            why=f"its SHA-256 is {found}, not {expected.lower()}",
            fix="find out who has changed it; if the new one is right, pin its digest",
        )


def _folder() -> Path:
    """A folder for a socket, which only this user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="lehr-"))  # of mode 0700
    if len(str(folder)) > _MOST_SOCKET_PATH - _LONGEST_SOCKET_NAME:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="lehr-", dir="/tmp"))
    return folder


async def _line(stream: asyncio.StreamReader) -> str:
    """The next line, or the next part of a line that is too long; empty at the end."""
    try:
        return (await stream.readuntil()).decode(errors="replace")
    except asyncio.IncompleteReadError as error:
        return error.partial.decode(errors="replace")
    except asyncio.LimitOverrunError as error:
        return (await stream.readexactly(min(error.consumed, _MOST_LINE))).decode(errors="replace")
