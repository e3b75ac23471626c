"""System calls on one file: read it, replace it, move it aside, remove it.

All functions block, and raise `OSError`. None follows a symbolic link in the last part of a
path, opens anything but a regular file, or touches a directory's entry that is not a regular
file or a symbolic link.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lehr.base.durable import sync
from lehr.model.workspace_file import MOST_BYTES
from lehr.plugins.file.payload import FENCED, TEMPORARY

MOST_READ = 1 << 20
"""Bytes that `look` reads at most: more than any asset can hold."""

ANYONE = (-1, -1)
"""Uid and gid of an entry whose owner does not matter."""

_CHUNK = 1 << 18

_TRIES = 8


class EntryKind(enum.StrEnum):
    """The kind of entry at a path."""

    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"
    OTHER = "fifo, socket or device"


_KINDS = {
    stat.S_IFREG: EntryKind.FILE,
    stat.S_IFLNK: EntryKind.SYMLINK,
    stat.S_IFDIR: EntryKind.DIRECTORY,
}


class OwnerError(PermissionError):
    """This process may not give an entry to the intended owner or group."""


class ChangedError(Exception):
    """A new file was changed by the call that was asked to accept it."""


class DiskEntry(NamedTuple):
    """The entry at a path.

    Attributes:
        data: the first `MOST_READ` bytes of a file.
        blob: git's blob id of the whole content, if asked for; None for a file that is larger than any of the
            workspace.
    """

    kind: EntryKind
    data: bytes = b""
    size: int = 0
    mode: int = 0
    uid: int = -1
    gid: int = -1
    blob: str | None = None


def look(path: str, *, as_blob: bool = False) -> DiskEntry | None:
    """The entry at `path`; None if there is none.

    Args:
        as_blob: also compute the blob id of a file.
    """
    kind = kind_of(path)
    if kind is not EntryKind.FILE:
        return None if kind is None else DiskEntry(kind)
    # The path may have changed since: this call follows no link and never blocks.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return DiskEntry(EntryKind.OTHER)
        data = _read(descriptor, status.st_size)
        blob = _blob_id(descriptor, data, status.st_size) if as_blob else None
    finally:
        os.close(descriptor)
    mode = stat.S_IMODE(status.st_mode)
    return DiskEntry(EntryKind.FILE, data, status.st_size, mode, status.st_uid, status.st_gid, blob)


def kind_of(path: str) -> EntryKind | None:
    """The entry at `path`, without opening it."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _KINDS.get(stat.S_IFMT(mode), EntryKind.OTHER)


@contextlib.contextmanager
def held(path: str) -> Iterator[str]:
    """`path` through its folder, which is held open: changed links on the way have no effect."""
    folder, name = os.path.split(path)
    descriptor = hold(folder)
    try:
        yield through(descriptor, name)
    finally:
        os.close(descriptor)


def hold(folder: str) -> int:
    """Hold a folder open; the caller closes the descriptor."""
    return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def through(descriptor: int, name: str) -> str:
    """The path of `name` in a folder that is held."""
    return f"/proc/self/fd/{descriptor}/{name}"


def real(path: str) -> str:
    """The real location of a path that is held."""
    folder, name = os.path.split(path)
    return os.path.join(os.readlink(folder), name)


def temporary_of(path: str) -> str:
    """Where the next content of `path` is written."""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}.{name}{TEMPORARY}"


def fenced_of(path: str) -> str:
    """Where `path` stays between being taken out of service and being removed."""
    return path + FENCED


class NewFile:
    """The next content of a path: a locked temporary file next to it, until it is put in place.

    It has its mode and owner before it can be seen under the path. Callers `close` it in any case.

    Attributes:
        path: where it will be.
    """

    def __init__(self, path: str) -> None:
        """Create the temporary file of `path`.

        Raises:
            BlockingIOError: another push, of this or another process, is writing this file.
        """
        self.path = path
        self._temporary = temporary_of(path)
        self._descriptor = _create_locked(self._temporary)
        self._in_place = False

    def write(self, content: bytes, mode: int, owner: tuple[int, int], kept: tuple[int, int]) -> None:
        """Write all of it.

        Args:
            owner: uid and gid that it must have; -1 for any.
            kept: uid and gid that it gets where that is permitted; -1 for any.
        """
        _write(self._descriptor, content)
        with contextlib.suppress(PermissionError):
            change_owner(self._descriptor, kept)
        change_owner(self._descriptor, owner)
        os.fchmod(self._descriptor, mode)  # after chown, which clears set-user-id bits

    def sync(self) -> None:
        """Make the content survive a crash of the machine."""
        os.fsync(self._descriptor)

    def require_accepted(self, accept: Callable[[str], None]) -> None:
        """Call `accept` with the path of the temporary file; it raises if the content is not acceptable.

        Raises:
            ChangedError: it changed the file.
        """
        _require_unchanged(self._descriptor, self._temporary, accept)

    def put_in_place(self) -> None:
        """Rename it to the path, atomically. The folder may need a `sync_directory`."""
        os.rename(self._temporary, self.path)
        self._in_place = True

    def close(self) -> None:
        """Remove it unless it is in place, and unlock it."""
        try:
            if not self._in_place:
                with contextlib.suppress(OSError):
                    os.unlink(self._temporary)
        finally:
            os.close(self._descriptor)


def change_owner(descriptor: int, owner: tuple[int, int]) -> None:
    """Change the uid and gid of an open entry; -1 for any."""
    if owner == ANYONE:
        return
    status = os.fstat(descriptor)
    if owner[0] not in (-1, status.st_uid) or owner[1] not in (-1, status.st_gid):
        with _owner_errors():
            os.fchown(descriptor, *owner)


@contextlib.contextmanager
def _owner_errors() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise OwnerError(*error.args) from error


def link(path: str, target: str, owner: tuple[int, int], kept: tuple[int, int]) -> None:
    """Put a symbolic link to `target` at `path`, atomically; `owner` and `kept` are as for `replace`."""
    temporary = temporary_of(path)
    os.symlink(target, temporary)
    try:
        with contextlib.suppress(PermissionError):
            os.lchown(temporary, *kept)
        with _owner_errors():
            os.lchown(temporary, *owner)
        os.rename(temporary, path)
    except BaseException:
        remove(temporary)
        raise


def move_aside(path: str) -> None:
    """Take `path` out of service: it stays in its folder as `fenced_of(path)`."""
    os.rename(path, fenced_of(path))


def remove(path: str) -> None:
    """Remove the entry at `path`, if any. Never a directory."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)


def sync_directory(path: str) -> None:
    """Make the directory entry of `path` survive a crash of the machine."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        sync(os.path.dirname(path))


def _create_locked(temporary: str) -> int:
    """A new empty file, locked until its descriptor is closed.

    The lock distinguishes a running push from one that crashed, even across processes: the kernel drops it
    with the process. Never writes to a file that another program put there, as that program may hold it open.
    """
    for _ in range(_TRIES):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        try:
            descriptor = os.open(temporary, flags, 0o600)
        except FileExistsError:
            remove_leftover(temporary)
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between creation and lock it may have been taken for a leftover and removed.
            if os.path.samestat(os.fstat(descriptor), os.lstat(temporary)):
                return descriptor
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), temporary)


def remove_leftover(temporary: str) -> None:
    """Remove what an unfinished push has left.

    Raises:
        BlockingIOError: a push is still writing it.
    """
    kind = kind_of(temporary)
    if kind is None:
        return
    if kind is not EntryKind.FILE:
        os.unlink(temporary)
        return
    try:
        descriptor = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(temporary)
    finally:
        os.close(descriptor)


def _read(descriptor: int, size: int) -> bytes:
    """The first `MOST_READ` bytes of a file that had `size` bytes a moment ago.

    It asks for little more than that: a buffer of `MOST_READ` costs four times as much as a small file.
    """
    data = os.read(descriptor, min(size + 1, MOST_READ))
    while len(data) not in (size, MOST_READ) and (more := os.read(descriptor, MOST_READ - len(data))):
        data += more
    return data


def _blob_id(descriptor: int, data: bytes, size: int) -> str | None:
    """Of `data` and what follows, read in chunks. A file whose size changes during this differs."""
    if size > MOST_BYTES:
        return None
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    digest.update(data)
    while chunk := os.read(descriptor, _CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _require_unchanged(descriptor: int, temporary: str, accept: Callable[[str], None]) -> None:
    """Call `accept`, which must only read: the content that it accepts is the content that is used."""
    before = os.fstat(descriptor)
    accept(temporary)
    after = os.fstat(descriptor)
    same = (after.st_size, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_size,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    if not same or not os.path.samestat(after, os.lstat(temporary)):
        raise ChangedError(temporary)
