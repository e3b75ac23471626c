"""The kernel's inotify: reports of changes in directories.

Directories are watched, not files: a replaced file is a different file. Not reported: renames of directories
further up, and other machines' changes on a network file system.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import os
import struct
from typing import NamedTuple

_libc = ctypes.CDLL(None, use_errno=True)
_HEADER = struct.Struct("iIII")
_BUFFER = 1 << 16
_MISSING = (errno.ENOENT, errno.ENOTDIR)


class On(enum.IntEnum):
    """Events, as in `<sys/inotify.h>`. Not a flag: to combine those takes ten times as long."""

    ATTRIB = 0x4
    CLOSE_WRITE = 0x8
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    DELETE_SELF = 0x400
    MOVE_SELF = 0x800
    UNMOUNT = 0x2000
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLYDIR = 0x1000000


# Not MODIFY: one busy log file in a directory would cause a wake-up for each line.
_ENTRIES = On.ATTRIB | On.CLOSE_WRITE | On.MOVED_FROM | On.MOVED_TO | On.CREATE | On.DELETE
_MASK = _ENTRIES | On.DELETE_SELF | On.MOVE_SELF | On.ONLYDIR

GONE = On.DELETE_SELF | On.MOVE_SELF | On.UNMOUNT | On.IGNORED
"""The directory itself was moved or deleted. `IGNORED` is the last event of a watch."""


class DirectoryEvent(NamedTuple):
    """Something happened to `name` in the directory of watch `wd` (`name` is empty: to itself)."""

    wd: int
    mask: int
    name: str


class WatchedEntry(NamedTuple):
    """An entry of a directory that is watched as `wd`."""

    wd: int
    name: str


class Inotify:
    """One inotify instance. It ends with `close`, or when nothing refers to it any more.

    Raises:
        OSError: the system has no inotify, or no instance to spare.
    """

    def __init__(self) -> None:
        self._descriptor = -1
        if not hasattr(_libc, "inotify_init1"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _last_error()

    def fileno(self) -> int:
        """The descriptor that becomes readable when there are events."""
        return self._descriptor

    def place(self, path: str) -> WatchedEntry:
        """Watch the directory of `path`, or the nearest above it that exists. May run in any thread.

        A path that ends in a slash stands for everything in that directory.

        Raises:
            OSError: the directory cannot be watched; `filename` is its path.
        """
        directory, name = os.path.split(path)
        below = ""
        while True:
            try:
                wd = self._add(directory)
            except OSError as error:
                if error.errno not in _MISSING or directory in ("/", ""):
                    raise
                below = directory
                directory, name = os.path.split(directory)
                continue
            if not (below and os.path.isdir(below)):
                return WatchedEntry(wd, name)
            directory, name = os.path.split(path)  # it was made before this watch could report it
            below = ""

    def forget(self, wd: int) -> None:
        """Stop watching a directory."""
        _libc.inotify_rm_watch(self._descriptor, wd)

    def read(self) -> list[DirectoryEvent]:
        """The events since the last call."""
        try:
            return _events(os.read(self._descriptor, _BUFFER))
        except BlockingIOError:
            return []

    def close(self) -> None:
        """Stop watching all directories."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()

    def _add(self, directory: str) -> int:
        wd: int = _libc.inotify_add_watch(self._descriptor, os.fsencode(directory), _MASK)
        if wd < 0:
            raise _last_error(directory)
        return wd


def _last_error(path: str | None = None) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)


def _events(buffer: bytes) -> list[DirectoryEvent]:
    events = []
    offset = 0
    while offset < len(buffer):
        wd, mask, _, length = _HEADER.unpack_from(buffer, offset)
        offset += _HEADER.size
        name = buffer[offset : offset + length].rstrip(b"\0")
        offset += length
        events.append(DirectoryEvent(wd, mask, os.fsdecode(name)))
    return events


_REPORTING = frozenset(
    {
        0x01021994,  # tmpfs
        0x2FC12FC1,  # zfs
        0x3153464A,  # jfs
        0x52654973,  # reiserfs
        0x58465342,  # xfs
        0x794C7630,  # overlayfs
        0x858458F6,  # ramfs
        0x9123683E,  # btrfs
        0xCA451A4E,  # bcachefs
        0xEF53,  # ext2, ext3, ext4
        0xF2F52010,  # f2fs
    }
)
_STATFS_SIZE = 256  # more than `struct statfs` has anywhere


def reports_all(directory: str | os.PathLike[str]) -> bool:
    """Whether all changes in this directory are made, and so reported, by this machine's kernel.

    False for network file systems, those that programs provide (FUSE), and unknown ones.
    """
    status = ctypes.create_string_buffer(_STATFS_SIZE)
    if not hasattr(_libc, "statfs") or _libc.statfs(os.fsencode(directory), status) != 0:
        return False
    return ctypes.c_long.from_buffer(status).value & 0xFFFFFFFF in _REPORTING
