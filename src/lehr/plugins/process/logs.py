"""Finds the logs of an asset's replicas, whether or not they run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lehr.model.asset import AssetKey
from lehr.plugins.process.render import asset_name
from lehr.sdk.logs import LogPosition, ProgramLog, ProgramStart
from lehr.sdk.secrets import Hidden, SecretValue

STREAMS = ("stdout", "stderr")


class _Start(msgspec.Struct):
    """A start as `launch` notes it: inode and size of each stream's file."""

    at: float
    stdout: LogPosition
    stderr: LogPosition


class _Launch(msgspec.Struct):
    """The secrets in what `launch` reads."""

    environment: dict[str, str] = {}
    secrets: dict[str, Any] = {}


_starts = msgspec.json.Decoder(list[_Start])
_launch = msgspec.json.Decoder(_Launch)


def logs(root: Path, key: AssetKey) -> list[ProgramLog]:
    """The logs of all replicas, by replica and stream; empty if none was started or all were removed.

    Args:
        root: `<state>/supervisor`.
    """
    found: list[ProgramLog] = []
    for folder in sorted(root.glob(f"*/assets/{asset_name(key)}")):
        indexes = {
            int(name) for path in folder.glob("*.log") if (name := path.name.partition(".")[0]).isdigit()
        }
        for index in sorted(indexes):
            found += _logs(folder, key, index)
    return found


def _logs(folder: Path, key: AssetKey, index: int) -> Iterator[ProgramLog]:
    starts, hidden = _noted_starts(folder / f"{index}.starts"), _hidden(folder / f"{index}.json")
    for stream in STREAMS:
        path = folder / f"{index}.{stream}.log"
        if path.exists():
            places = tuple(ProgramStart(start.at, getattr(start, stream)) for start in starts)
            yield ProgramLog(key, str(path), index, stream, places, hidden)


def _noted_starts(path: Path) -> list[_Start]:
    try:
        return _starts.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return []


def _hidden(path: Path) -> Hidden:
    """The secrets that the launcher passes on, and each line of those that have several.

    Raises:
        OSError: the file exists and cannot be read. Then the log must not be shown.
    """
    try:
        launch = _launch.decode(path.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):  # a stopped replica; a damaged file starts nothing
        return Hidden()
    values = [launch.environment[name] for name in launch.secrets if name in launch.environment]
    texts = {text for value in values for text in (value, *value.splitlines())}
    return Hidden(SecretValue(text.encode()) for text in texts)
