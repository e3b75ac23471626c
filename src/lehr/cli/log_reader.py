"""Reads logs that are written and rotated at the same time: the whole log first, then what is added."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from lehr.sdk.logs import LogPosition, ProgramLog, ProgramStart
from lehr.sdk.secrets import HIDDEN, Hidden

_BLOCK = 65_536
_LONGEST_LINE = 65_536

_TIME = re.compile(
    rb"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6})\d*)?(?: ?(Z|[+-]\d\d):?(\d\d)?)?"
)
_Place = tuple[int, int]
"""Number of a file, in the order in which they were written, and bytes from its start."""

_TIME_WITHIN = 200  # bytes from the start of a line: JSON may begin with other fields


class Line(NamedTuple):
    """A line without its end.

    Attributes:
        at: where it starts.
        run: number of known starts of the program before it; 0 if it is older than these.
    """

    at: LogPosition
    text: bytes
    run: int


class RotatedFile:
    """Reads a file that becomes `<path>.1` when it is full, that becomes `<path>.2`, and so on.

    It holds the newest open: a rotation loses nothing.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self.files: tuple[int, ...] = ()
        """Inodes of the files of the last `read`, in the order in which they were written."""

    def read(self) -> Iterator[tuple[LogPosition, bytes]]:
        """Blocks written since the last call; at the first call, everything that is kept."""
        unread = self._unread()
        self.files = tuple(_inode(file) for file in unread)
        for number, file in enumerate(unread):
            if file.tell() > os.fstat(file.fileno()).st_size:
                file.seek(0)  # it was truncated
            while data := file.read(_BLOCK):
                yield LogPosition(self.files[number], file.tell() - len(data)), data
            if file is not unread[-1]:
                file.close()
        self._file = unread[-1] if unread else None

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            self._file.close()

    def _unread(self) -> list[BinaryIO]:
        kept = self._kept()
        if self._file is None:
            return kept
        held = _inode(self._file)
        known = [number for number, file in enumerate(kept) if _inode(file) == held]
        for file in kept[: known[0] + 1] if known else []:
            file.close()
        return [self._file, *(kept[known[0] + 1 :] if known else kept)]

    def _kept(self) -> list[BinaryIO]:
        found: list[BinaryIO] = []
        for number in itertools.count():  # newest first: a rotation in between shows a file twice
            file = _opened(f"{self._path}.{number}" if number else self._path)
            if file is None and number:
                break
            if file is not None and _inode(file) in map(_inode, found):
                file.close()
            elif file is not None:
                found.append(file)
        return found[::-1]


class LogReader:
    """Reads one log line by line.

    Attributes:
        log: may be replaced by a newer description of the same log.
    """

    def __init__(self, log: ProgramLog) -> None:
        self.log = log
        self._file = RotatedFile(log.path)
        self._rest = b""
        self._rest_at = LogPosition(0, 0)

    def lines(self, *, last: bool = False) -> Iterator[Line]:
        """Lines that were completed since the last call, secrets hidden.

        Args:
            last: also the line that is not complete.
        """
        for at, data in self._file.read():
            if not self._rest:
                self._rest_at = at
            yield from self._split(at, data)
        if last and self._rest:
            yield self._line(self._rest_at, self._rest, self._starts())
            self._rest = b""

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def _split(self, at: LogPosition, data: bytes) -> Iterator[Line]:
        held, start, starts = self._rest, self._rest_at, self._starts()
        *complete, rest = data.split(b"\n")
        offset = at.offset
        for text in complete:
            yield self._line(start, held + text, starts)
            offset += len(text) + 1
            held, start = b"", LogPosition(at.file, offset)
        self._rest, self._rest_at = held + rest, start
        if len(self._rest) > _LONGEST_LINE:
            yield self._line(self._rest_at, self._rest, starts)
            self._rest, self._rest_at = b"", LogPosition(at.file, at.offset + len(data))

    def _line(self, at: LogPosition, text: bytes, starts: list[_Place]) -> Line:
        shown = _shown(text.removesuffix(b"\r"), self.log.hidden)
        return Line(at, shown, bisect_right(starts, self._place(at)))

    def _starts(self) -> list[_Place]:
        return [self._place(start.position) for start in self.log.starts]

    def _place(self, position: LogPosition) -> _Place:
        files = self._file.files
        if position.file in files:
            return files.index(position.file), position.offset
        return -1, 0  # it was in a file that is no longer kept


def lines_since(lines: Iterator[Line], starts: tuple[ProgramStart, ...], moment: float) -> Iterator[Line]:
    """Lines that were written at `moment` (wall-clock seconds) or later, as far as is known.

    The time of a line is the one that it begins with; otherwise that of the line before it, or the start of
    its program.
    """
    at, run = 0.0, 0
    for line in lines:
        if line.run != run:
            at, run = starts[line.run - 1].at, line.run
        at = _time(line.text) or at
        if at >= moment:
            yield line


def _time(text: bytes) -> float | None:
    """The time in the beginning of a line: RFC 3339, or as nginx, Go and Python write it. Without a zone, it
    is local time.
    """
    found = _TIME.search(text[:_TIME_WITHIN])
    if found is None:
        return None
    year, month, day, time, fraction, zone, minutes = (
        part.decode() if part else "" for part in found.groups()
    )
    zone = "+00:00" if zone == "Z" else f"{zone}:{minutes or '00'}" if zone else ""
    try:
        written = f"{year}-{month}-{day}T{time}.{fraction or '0':<06}{zone}"
        return dt.datetime.fromisoformat(written).timestamp()
    except (ValueError, OverflowError):
        return None


def _shown(text: bytes, hidden: Hidden) -> bytes:
    blotted = hidden.blotted(text)
    return text if blotted is text or blotted == text else re.sub(b"\0+", HIDDEN.encode(), blotted)


def _opened(path: str) -> BinaryIO | None:
    try:
        return Path(path).open("rb")
    except FileNotFoundError:
        return None


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino
