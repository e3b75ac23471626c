"""Logs that programs of an asset write to files, as `lehr logs` shows them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from lehr.model.asset import AssetKey
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden


class LogPosition(NamedTuple):
    """A place in a log, which it keeps when the log is rotated.

    Attributes:
        file: inode of the file.
        offset: bytes from its start.
    """

    file: int
    offset: int


class ProgramStart(NamedTuple):
    """When a program was started (wall-clock seconds), and where its log ended then."""

    at: float
    position: LogPosition


class ProgramLog(msgspec.Struct, frozen=True):
    """One stream of one replica.

    Attributes:
        path: of the file that is written. A full one becomes `<path>.1`.
        stream: `stdout` or `stderr`.
        starts: of the program, oldest first; the oldest ones may be missing.
        hidden: secrets that the program was given.
    """

    key: AssetKey
    path: str
    replica: int
    stream: str
    starts: tuple[ProgramStart, ...] = ()
    hidden: Hidden = NOTHING_HIDDEN
