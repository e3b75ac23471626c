"""One supervisord of Lehr's own, with the files of one group.

    <state>/supervisor/<group>/supervisord.conf, .log, supervisor.sock
    <state>/supervisor/<group>/assets/<asset>/<index>.ini      definition of the program
    <state>/supervisor/<group>/assets/<asset>/<index>.json     read by the launcher
    <state>/supervisor/<group>/assets/<asset>/<index>.run      which processes it became, written by `launch`
    <state>/supervisor/<group>/assets/<asset>/<index>.std{out,err}.log
    <state>/supervisor/<group>/assets/<asset>/<index>.starts   where the logs of its last runs begin
    <state>/supervisor/<group>/assets/<asset>/<index>.reloaded  which process has reloaded what
    <state>/supervisor/<group>/assets/<asset>/<index>.reload.*  the command that reloads it: as above

Only its owner can access the folder: environments may hold secrets. supervisord runs in it, and
all paths in the configuration are relative to it (or to `/proc/self/cwd`, where supervisord would
make them absolute), so that no path needs escapes or is too long for a Unix socket. Everything
here blocks, but never waits for a program.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lehr.base.errors import StalledError, TransientError, raised_as
from lehr.base.text import one_line
from lehr.model.asset import AssetKey
from lehr.plugins.process import launch, procfs, rpc
from lehr.plugins.process.reload import RELOADED, reload_note
from lehr.plugins.process.render import (
    Replica,
    asset_name,
    launch_document,
    program_name,
    program_section,
    reload_document,
)
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden, SecretValue

COMMAND = [sys.executable, "-m", "supervisor.supervisord", "-c", "supervisord.conf"]
"""Starts a supervisord, in the directory of its group."""

LAUNCHER = (sys.executable, "-I", "-S", launch.__file__)
"""Becomes a program; see `launch`."""

_START_TIMEOUT = 20.0  # seconds; it takes half a second
_MOST_HANDLES = 8192  # a program takes five; closing many more at each start costs time
_TAIL_BYTES = 16_384
_TAIL_CHARACTERS = 600

_CONFIGURATION = """\
[supervisord]
logfile=supervisord.log
logfile_maxbytes=1MB
logfile_backups=1
pidfile=supervisord.pid
childlogdir=.
nocleanup=true
minfds={handles}
minprocs=1

[unix_http_server]
file=/proc/self/cwd/{socket}
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface

[include]
files=/proc/self/cwd/assets/*/*.ini
"""


class LogMark(msgspec.Struct, frozen=True):
    """Lengths of the logs at one moment, to read later additions."""

    stdout: int
    stderr: int
    supervisord: int


class Supervisord:
    """The supervisord of one group, whether it runs or not.

    Args:
        root: `<state>/supervisor`, absolute.
        group: name of the group.
        inherited: the part of Lehr's environment that programs get.
    """

    def __init__(self, root: Path, group: str, inherited: Mapping[str, str]) -> None:
        self.directory = root / group
        self.group = group
        self._root = root
        self._inherited = inherited

    def ensure(self) -> None:
        """Start it unless it runs.

        One that runs but can no longer be reached (its socket was deleted) is ended first: two
        supervisords would start every program twice. Its programs live on and are replaced one
        by one, like those of a supervisord that was killed.

        Raises:
            StalledError: supervisord is not installed.
            TransientError: it does not start or does not answer.
        """
        try:
            rpc.call(self.directory, "getState")
        except rpc.NotRunningError:
            self.end_unreachable()
            self._start()

    def end_unreachable(self) -> None:
        """End unreachable supervisords of this group."""
        for process, environment in procfs.marked(self._root):
            if (
                environment.get(procfs.SUPERVISOR) == str(self.directory)
                and procfs.REPLICA not in environment
            ):
                procfs.send(process, signal.SIGKILL)

    def define(self, key: AssetKey, replica: Replica, secrets: Mapping[str, SecretValue]) -> str:
        """Write a replica's files and make its program known, stopped. Returns the program's name.

        Its secret variables stay in the launcher's file from then on, with mode 0600: a supervisord restarts
        a program without Lehr.

        Raises:
            StalledError: supervisord cannot read its configuration.
            TransientError: the files cannot be written, or supervisord does not answer.
        """
        self.ensure()
        name, path = program_name(key, replica.index), _path(key, replica.index)
        launcher = (*LAUNCHER, f"{path}.json")
        record = self.directory / f"{path}.run"
        with raised_as(TransientError, f"cannot write {self.directory / path}", code="PRO122"):
            record.unlink(missing_ok=True)  # the run that it records was ended, and does not count as a crash
            self._write_launch(key, replica, secrets)
            section = program_section(name, launcher, replica, path)
            self._write(f"{path}.ini", section.encode())
        self._forget(name)
        self._reload()
        rpc.call(self.directory, "addProcessGroup", name)
        return name

    def start_reload(
        self, key: AssetKey, replica: Replica, secrets: Mapping[str, SecretValue], pid: int
    ) -> subprocess.Popen[bytes] | None:
        """Reload process `pid` of a replica. Returns the command that does so, or None after a signal.

        If the process ends from now on, the next one reads the new state at its start.

        Raises:
            TransientError: the files cannot be written, or the command cannot be started.
        """
        path = f"{_path(key, replica.index)}.reload"
        with raised_as(TransientError, f"cannot write {self.directory / path}", code="PRO129"):
            self._write_launch(key, replica, secrets)
            if not replica.reload_command:
                process = procfs.identify(pid)
                if process is not None:
                    procfs.send(process, signal.Signals[replica.reload_signal])
                return None
            record, marks = str(self.directory / f"{path}.run"), self._marks(key, replica)
            document = reload_document(replica, self._inherited, marks, record, secrets, pid)
            self._write(f"{path}.json", document)
            with open(self.directory / f"{path}.log", "wb", opener=_private) as output:
                return subprocess.Popen(
                    (*LAUNCHER, f"{path}.json"),
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )

    def note_reload(self, key: AssetKey, replica: Replica, process: procfs.ProcessId) -> None:
        """Note that `process` of a replica has reloaded.

        Raises:
            TransientError: the file cannot be written.
        """
        path = _path(key, replica.index)
        with raised_as(TransientError, f"cannot write {self.directory / path}", code="PRO129"):
            self._write(f"{path}.{RELOADED}", reload_note(process, replica.loaded))

    def reload_output(self, key: AssetKey, index: int, hidden: Hidden = NOTHING_HIDDEN) -> str:
        """The last lines that the command that reloads a replica has written."""
        log = self.directory / f"{_path(key, index)}.reload.log"
        return one_line(_tail(log, 0, hidden))[-_TAIL_CHARACTERS:]

    def start(self, name: str) -> None:
        """Start a program without waiting until it runs."""
        self._ask("startProcess", name, False, fine=(rpc.RefusedError.ALREADY_STARTED,))

    def stop(self, name: str) -> None:
        """Ask a program to stop, and return at once; supervisord does not start it again."""
        stopped = (rpc.RefusedError.NOT_RUNNING, rpc.RefusedError.BAD_NAME)
        with contextlib.suppress(rpc.NotRunningError):
            self._ask("stopProcess", name, False, fine=stopped)

    def information(self, name: str) -> dict[str, Any] | None:
        """Information of supervisord about a program; None if it has none, or does not run."""
        found: dict[str, Any] | None = None
        with contextlib.suppress(rpc.NotRunningError):
            found = self._ask("getProcessInfo", name, fine=(rpc.RefusedError.BAD_NAME,))
        return found

    def remove(self, key: AssetKey, index: int) -> None:
        """Remove a stopped program, with its files and logs."""
        with contextlib.suppress(rpc.NotRunningError):
            self._forget(program_name(key, index))
        folder = self.directory / "assets" / asset_name(key)
        with raised_as(TransientError, f"cannot remove files in {folder}", code="PRO123"):
            for file in folder.glob(f"{index}.*"):
                file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()  # unless other replicas are in it

    def retire(self) -> bool:
        """Shut it down if it has no program left. True once it is gone, or if it is still needed."""
        if any((self.directory / "assets").glob("*/*.ini")):
            return True
        try:
            self._ask("shutdown", fine=(rpc.RefusedError.SHUTDOWN_STATE,))
        except rpc.NotRunningError:
            self.end_unreachable()
            shutil.rmtree(self.directory, ignore_errors=True)
            return True
        return False

    def mark_logs(self, key: AssetKey, index: int) -> LogMark:
        """The current lengths of the logs."""
        stdout, stderr = (_size(self._log(key, index, stream)) for stream in ("stdout", "stderr"))
        return LogMark(stdout, stderr, _size(self.directory / "supervisord.log"))

    def complaint(
        self, key: AssetKey, index: int, since: LogMark, hidden: Hidden = NOTHING_HIDDEN
    ) -> tuple[str, str]:
        """How the program last ended since `since`, and the last lines that it wrote to stderr and stdout."""
        end = last_end(self.directory, program_name(key, index), since.supervisord)
        written = {
            stream: one_line(_tail(self._log(key, index, stream), start, hidden))[-_TAIL_CHARACTERS:]
            for stream, start in (("stderr", since.stderr), ("stdout", since.stdout))
        }
        return end, "; ".join(f"{stream}: {text}" for stream, text in written.items() if text)

    def _log(self, key: AssetKey, index: int, stream: str) -> Path:
        return self.directory / "assets" / asset_name(key) / f"{index}.{stream}.log"

    def _start(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        handles = _MOST_HANDLES if hard == resource.RLIM_INFINITY else min(_MOST_HANDLES, hard)
        try:
            self._write(
                "supervisord.conf", _CONFIGURATION.format(handles=handles, socket=rpc.SOCKET).encode()
            )
            done = subprocess.run(
                COMMAND,
                cwd=self.directory,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                start_new_session=True,
                timeout=_START_TIMEOUT,
                check=False,
            )
        except OSError as error:
            raise TransientError(
                f"cannot start supervisord in {self.directory}", code="PRO124", why=str(error)
            ) from error
        except subprocess.TimeoutExpired as error:
            raise TransientError(
                f"supervisord did not start in {_START_TIMEOUT:.0f} s", code="PRO125"
            ) from error
        if done.returncode:  # otherwise it is a daemon now, and already listens
            message = done.stderr.decode(errors="replace").strip()[-_TAIL_CHARACTERS:]
            if "No module named supervisor" in message:
                raise StalledError(
                    "supervisord is not installed",
                    code="PRO126",
                    fix=f"{sys.executable} -m pip install supervisor",
                )
            raise TransientError(
                f"supervisord of group {self.group} does not start", code="PRO127", why=message
            )

    def _environment(self) -> dict[str, str]:
        own = dict(self._inherited) | {procfs.SUPERVISOR: str(self.directory)}
        if "PYTHONPATH" in os.environ:  # where supervisor itself may be found
            own["PYTHONPATH"] = os.environ["PYTHONPATH"]
        return own

    def _reload(self) -> None:
        try:
            rpc.call(self.directory, "reloadConfig")
        except rpc.RefusedError as fault:
            if fault.number != rpc.RefusedError.CANT_REREAD:
                raise
            raise StalledError(
                f"supervisord of group {self.group} cannot read its configuration",
                code="PRO128",
                why=fault.what,
                fix=f"delete the file it names, below {self.directory}; Lehr rewrites it",
            ) from fault

    def _forget(self, name: str) -> None:
        self._ask("removeProcessGroup", name, fine=(rpc.RefusedError.BAD_NAME,))

    def _ask(self, method: str, *arguments: Any, fine: tuple[int, ...]) -> Any:
        """The answer to a call; None if it is refused for one of the reasons `fine`."""
        try:
            return rpc.call(self.directory, method, *arguments)
        except rpc.RefusedError as fault:
            if fault.number not in fine:
                raise
            return None

    def _marks(self, key: AssetKey, replica: Replica) -> dict[str, str]:
        return {
            procfs.SUPERVISOR: str(self.directory),
            procfs.REPLICA: f"{key}#{replica.index}",
            procfs.CONTENT: replica.content,
            procfs.LOADED: replica.loaded,
            procfs.VERSION: replica.version,
            procfs.RESTART: replica.restart,
            procfs.PORTS: ",".join(str(port) for port in replica.ports),
        }

    def _write_launch(self, key: AssetKey, replica: Replica, secrets: Mapping[str, SecretValue]) -> None:
        path, marks = _path(key, replica.index), self._marks(key, replica)
        record = str(self.directory / f"{path}.run")
        self._write(f"{path}.json", launch_document(replica, self._inherited, marks, record, secrets))

    def _write(self, path: str, content: bytes) -> None:
        file = self.directory / path
        for folder in (self._root, self.directory, file.parent.parent, file.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.new")
        with open(new, "wb", opener=_private) as stream:
            stream.write(content)
        new.replace(file)


def _path(key: AssetKey, index: int) -> str:
    """The path of a replica's files without their endings, relative to the group's directory."""
    return f"assets/{asset_name(key)}/{index}"


def last_end(directory: Path, name: str, since: int = 0) -> str:
    """How a program of the group in `directory` last ended, in supervisord's words; empty if unknown.

    Args:
        since: length of supervisord's log at the start of the relevant time.
    """
    log = _tail(directory / "supervisord.log", since)
    ends = re.findall(rf"exited: {re.escape(name)} \(([^;)]*)", log)
    return ends[-1] if ends else ""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tail(path: Path, since: int, hidden: Hidden = NOTHING_HIDDEN) -> str:
    """The end of a log, at most from `since` on, without `hidden` text."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = since if since <= size else 0  # shorter than before: a new file took its place
            start = max(start, size - _TAIL_BYTES)
            before = max(0, start - hidden.longest)  # a secret that starts there is hidden to its end
            file.seek(before)
            data = hidden.blotted(file.read(start - before + _TAIL_BYTES))
            return hidden.shown(data[start - before :].decode(errors="replace"))
    except OSError:
        return ""
