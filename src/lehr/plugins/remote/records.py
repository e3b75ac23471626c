"""What is kept of a plugin in the state folder: its description, its state for people, and its log.

Nothing depends on these files: they are hints for the next process, and for `lehr plugin list` and `logs`.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from msgspec.structs import replace

from lehr.base.blocking import Background
from lehr.base.clock import Clock, iso
from lehr.base.errors import LehrError
from lehr.base.private_folders import make_private
from lehr.plugins.plugin_process import PluginProcess
from lehr.plugins.remote import messages as m

FOLDER = "plugins"

_MOST_LOG = 10_000_000
_MOST_WAITING = 1000


class PluginRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a plugin.

    Attributes:
        version: as it has described itself.
        host: process id of the program that uses it.
        pid: of a managed one that runs.
        since: wall-clock seconds since when it is in this state.
        starts: how often this `lehr run` has opened it.
        error: why it is not available; empty if it is.
    """

    name: str
    types: tuple[str, ...]
    checks: tuple[str, ...] = ()
    validators: tuple[str, ...] = ()
    version: str = ""
    host: int = 0
    pid: int | None = None
    address: str = ""
    since: float = 0.0
    starts: int = 0
    error: str = ""


class PluginFiles:
    """The files of one plugin, written in a thread of their own.

    Args:
        folder: in the state folder; made when it is needed.
    """

    def __init__(self, folder: Path, name: str, clock: Clock) -> None:
        self._folder = folder
        self._name = name
        self._clock = clock
        self._lines: deque[str] = deque(maxlen=_MOST_WAITING)
        self._files: dict[str, bytes] = {}
        self._writing = Background(f"files of the plugin {name}", self._write)

    def description(self) -> m.DescribeResponse | None:
        """The last that was kept."""
        try:
            return m.DescribeResponse.FromString(self._path("description").read_bytes())
        except (OSError, DecodeError):
            return None

    def keep(self, description: m.DescribeResponse) -> None:
        """Keep `description` for the next process."""
        self._later("description", description.SerializeToString())

    def keep_validators(self, names: Sequence[str]) -> None:
        """Keep which validators the plugin is asked for, for commands that do not ask it."""
        self._later("validators", msgspec.json.encode(names))

    def record(self, record: PluginRecord) -> None:
        """Keep `record` for people."""
        self._later(f"{os.getpid()}.json", msgspec.json.encode(record))

    def log(self, line: str) -> None:
        """Add a line that the plugin has printed. Of very many at once, the oldest are lost."""
        self._lines.append(f"{iso(self._clock.now())} {line}\n")
        self._writing.ask()

    def close(self) -> None:
        """Wait until everything is written; the plugin no longer runs."""
        self._writing.close()
        self._write()
        with contextlib.suppress(OSError):
            self._path(f"{os.getpid()}.json").unlink(missing_ok=True)

    def _later(self, ending: str, content: bytes) -> None:
        self._files[ending] = content
        self._writing.ask()

    def _path(self, ending: str) -> Path:
        return self._folder / f"{self._name}.{ending}"

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end a plugin
            make_private(self._folder)
            while self._files or self._lines:
                self._write_lines()
                self._write_files()

    def _write_files(self) -> None:
        while self._files:
            ending, content = self._files.popitem()
            new = self._path(f"{ending}.new")
            new.write_bytes(content)
            os.replace(new, self._path(ending))

    def _write_lines(self) -> None:
        path = self._path("log")
        with open(path, "a", encoding="utf-8", opener=_private) as file:
            while self._lines:
                file.write(self._lines.popleft())
            size = file.tell()
        if size > _MOST_LOG:
            os.replace(path, self._path("log.1"))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Kept:
    """Keeps what becomes of a plugin: an observer of its connection.

    Args:
        record: of the plugin before it was opened.
    """

    def __init__(self, files: PluginFiles, record: PluginRecord, clock: Clock) -> None:
        self._files = files
        self._record = record
        self._clock = clock

    def opened(self, description: m.DescribeResponse, process: PluginProcess | None) -> None:
        """It is available."""
        self._files.keep(description)
        self._files.keep_validators(self._record.validators)
        self._note(
            version=description.version,
            pid=None if process is None else process.pid,
            starts=self._record.starts + 1,
            error="",
        )

    def failed(self, error: LehrError) -> None:
        """It is not available."""
        self._note(pid=None, error=str(error))

    def closed(self) -> None:
        """It is not used any more."""
        self._files.close()

    def _note(self, **changed: Any) -> None:
        self._record = replace(self._record, host=os.getpid(), since=self._clock.now(), **changed)
        self._files.record(self._record)


def records(state: Path) -> list[PluginRecord]:
    """The plugins of programs that run and use the state folder `state`, by name."""
    found = []
    for path in sorted((state / FOLDER).glob("*.json")):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            record = msgspec.json.decode(path.read_bytes(), type=PluginRecord)
            os.kill(record.host, 0)
            found.append(record)
    return found


def known_validators(state: Path) -> dict[str, tuple[str, ...]]:
    """The validators that programs have asked which use the state folder `state`, by plugin."""
    found = {}
    for path in sorted((state / FOLDER).glob("*.validators")):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            found[path.stem] = msgspec.json.decode(path.read_bytes(), type=tuple[str, ...])
    return {name: validators for name, validators in found.items() if validators}


def log_paths(state: Path, name: str) -> list[Path]:
    """The files of a plugin's log, the older first; none if it has printed nothing."""
    folder = state / FOLDER
    return [path for path in (folder / f"{name}.log.1", folder / f"{name}.log") if path.exists()]
