"""Hints that a file may have changed, from the kernel's inotify.

Directories are watched, not files: a replaced file is a different file. Not noticed, and left to the resync:
writes through a file that stays open, renames of directories further up, and other machines' changes on a
network file system.
"""

from __future__ import annotations

import asyncio
import ctypes
import enum
import errno
import os
import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import NamedTuple

from lehr.base.errors import TransientError
from lehr.base.log import Log
from lehr.model.asset import AssetKey

_log = Log()
_libc = ctypes.CDLL(None, use_errno=True)
_HEADER = struct.Struct("iIII")
_BUFFER = 1 << 16
_MISSING = (errno.ENOENT, errno.ENOTDIR)


class _On(enum.IntEnum):
    """Events, as in `<sys/inotify.h>`. Not a flag: to combine those takes ten times as long."""

    ATTRIB = 0x4
    CLOSE_WRITE = 0x8
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    DELETE_SELF = 0x400
    MOVE_SELF = 0x800
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLYDIR = 0x1000000


# Not MODIFY: one busy log file in a directory would cause a wake-up for each line.
_ENTRIES = _On.ATTRIB | _On.CLOSE_WRITE | _On.MOVED_FROM | _On.MOVED_TO | _On.CREATE | _On.DELETE
_GONE = _On.DELETE_SELF | _On.MOVE_SELF | _On.IGNORED
_MASK = _ENTRIES | _On.DELETE_SELF | _On.MOVE_SELF | _On.ONLYDIR


class DirectoryEvent(NamedTuple):
    """Something happened to `name` in the directory of watch `wd` (`name` is empty: to itself)."""

    wd: int
    mask: int
    name: str


class WatchedEntry(NamedTuple):
    """An entry of a directory that is watched as `wd`."""

    wd: int
    name: str


class Watch:
    """Finds assets whose files may have changed.

    `place` may run in any thread; everything else belongs to the event loop.
    """

    def __init__(self) -> None:
        self._descriptor = -1
        self._noted: dict[AssetKey, WatchedEntry | None] = {}
        self._keys: dict[int, dict[str, set[AssetKey]]] = {}
        self._unclaimed: set[int] = set()
        self._hints: dict[AssetKey, None] = {}
        self._wake = asyncio.Event()
        self._complained = False

    def place(self, path: str) -> WatchedEntry | None:
        """Have the kernel watch the directory of `path`, or the nearest above it that exists.

        A path that ends in a slash stands for everything in that directory.

        Called again for each read of a file, since the directory may have been replaced.
        """
        if self._descriptor < 0:
            return None
        directory, name = os.path.split(path)
        while True:
            wd = _libc.inotify_add_watch(self._descriptor, os.fsencode(directory), _MASK)
            if wd >= 0:
                return WatchedEntry(wd, name)
            reason = ctypes.get_errno()
            if reason not in _MISSING or directory in ("/", ""):
                self._complain(directory, reason)
                return None
            directory, name = os.path.split(directory)

    def note(self, key: AssetKey, place: WatchedEntry | None) -> None:
        """The file of the asset `key` is watched at `place`; None if it is not watched."""
        before = self._noted.get(key)
        self._noted[key] = place
        if place == before:
            return
        if before is not None:
            self._keys.get(before.wd, {}).get(before.name, set()).discard(key)
        if place is not None:
            self._keys.setdefault(place.wd, {}).setdefault(place.name, set()).add(key)
            if place.wd in self._unclaimed:
                self._unclaimed.discard(place.wd)
                self._hint([key])

    async def keys(self) -> AsyncIterator[AssetKey]:
        """Keys of assets whose files may have changed, forever.

        Raises:
            TransientError: the machine has no inotify instance to spare.
        """
        loop = asyncio.get_running_loop()
        self._open()
        loop.add_reader(self._descriptor, self._read)
        try:
            self._hint(self._noted)  # files read before had no watch
            while True:
                await self._wake.wait()
                self._wake.clear()
                hints, self._hints = self._hints, {}
                for key in hints:
                    yield key
        finally:
            self.close()

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self._keys.clear()
            self._unclaimed.clear()
            self._noted = dict.fromkeys(self._noted)

    def _open(self) -> None:
        self._descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise TransientError(
                "files cannot be watched",
                code="FIL111",
                why=os.strerror(ctypes.get_errno()),
                fix="raise fs.inotify.max_user_instances; until then drift is found by the resync",
            )

    def _read(self) -> None:
        try:
            buffer = os.read(self._descriptor, _BUFFER)
        except BlockingIOError:
            return
        for event in _events(buffer):
            self._take(event)

    def _take(self, event: DirectoryEvent) -> None:
        if event.mask & _On.OVERFLOW:
            self._hint(self._noted)
            return
        names = self._keys.get(event.wd)
        if names is None:
            # Watched by a thread that has not yet returned with the asset.
            self._unclaimed.add(event.wd)
        elif event.mask & _GONE:
            for keys in names.values():
                self._hint(keys)
            if event.mask & _On.MOVE_SELF:
                _libc.inotify_rm_watch(self._descriptor, event.wd)
            if event.mask & _On.IGNORED:
                del self._keys[event.wd]
        else:
            self._hint(names.get(event.name, ()))
            self._hint(names.get("", ()) if event.name else ())

    def _hint(self, keys: Iterable[AssetKey]) -> None:
        self._hints.update(dict.fromkeys(keys))
        if self._hints:
            self._wake.set()

    def _complain(self, directory: str, reason: int) -> None:
        if not self._complained:
            self._complained = True
            _log.warning("directory not watched", directory=directory, reason=os.strerror(reason))


def _events(buffer: bytes) -> Iterator[DirectoryEvent]:
    offset = 0
    while offset < len(buffer):
        wd, mask, _, length = _HEADER.unpack_from(buffer, offset)
        offset += _HEADER.size
        name = buffer[offset : offset + length].rstrip(b"\0")
        offset += length
        yield DirectoryEvent(wd, mask, os.fsdecode(name))
