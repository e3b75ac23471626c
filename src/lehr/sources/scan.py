"""Lists and reads a directory so that changes in between are detected."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from lehr.base.errors import StalledError, TransientError

_MAX_FILES = 200_000
_MAX_DEPTH = 64


class Stamp(NamedTuple):
    """Differs after a file was written or replaced. Times are nanoseconds since the epoch."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Scan(msgspec.Struct, frozen=True):
    """The contents of a directory: stamps of regular files, and paths of entries that are not read."""

    files: dict[str, Stamp]
    skipped: tuple[str, ...]


def scan(root: Path, exclude: frozenset[str], ignored: Callable[[str], bool]) -> Scan:
    """List everything below `root`, ordered by path. No symbolic link below it is followed.

    Args:
        exclude: names that are left out at any depth, and paths that start with a slash.
        ignored: called for each directory (its path ends with a slash); True leaves it out.

    Raises:
        TransientError: `root` does not exist, or changed while it was being listed.
        StalledError: there are no files or too many, or something may not be read.
    """
    if not root.is_dir():
        raise TransientError(
            f"the directory {root} does not exist",
            code="SRC139",
            why="it was moved or deleted, or its file system is not mounted",
            fix="put it back, or start with a different source",
        )
    files: dict[str, Stamp] = {}
    skipped: list[str] = []
    pending = [""]
    directories = 0
    while pending:
        inner = []
        for path, stamp in _list_one(root, pending.pop(), exclude):
            if stamp is not None:
                files[path] = stamp
            elif not path.endswith("/"):
                skipped.append(path)
            elif not ignored(path):
                inner.append(path)
        pending += inner
        directories += len(inner)
        if any(path.count("/") > _MAX_DEPTH for path in inner):
            raise StalledError(
                f"{root} nests directories more than {_MAX_DEPTH} deep",
                code="SRC140",
                fix="reduce the nesting",
            )
        if len(files) + len(skipped) + directories > _MAX_FILES:
            raise StalledError(
                f"there are more than {_MAX_FILES:,} files and directories in {root}",
                code="SRC141",
                why="this is probably not a directory of intent",
                fix="name the directory that lehr.yaml is in, or use a git repository",
            )
    if not files:
        raise StalledError(
            f"the directory {root} has no files",
            code="SRC142",
            why="an empty directory never means that everything should be removed; it may not be mounted",
            fix="mount or fill it; `lehr init` creates a workspace",
        )
    return Scan(dict(sorted(files.items())), tuple(sorted(skipped)))


def _list_one(root: Path, prefix: str, exclude: frozenset[str]) -> Iterator[tuple[str, Stamp | None]]:
    """The entries of one directory: files with a stamp, directories with a slash, and others."""
    try:
        with os.scandir(root / prefix) as entries:
            for entry in entries:
                path = prefix + entry.name
                if entry.name in exclude or f"/{path}" in exclude:
                    continue
                _check_name(root, path)
                if entry.is_dir(follow_symlinks=False):
                    yield path + "/", None
                elif entry.is_file(follow_symlinks=False):
                    yield path, _stamp(entry.stat(follow_symlinks=False))
                else:
                    yield path, None
    except (FileNotFoundError, NotADirectoryError) as err:
        raise changed_while_read(root) from err
    except OSError as err:
        raise _unreadable(root / prefix, err) from err


def read_file(path: str, expected: Stamp) -> bytes:
    """The content of the file that had the stamp `expected`.

    Raises:
        TransientError: it has changed or vanished, before or while it was read.
        StalledError: it may not be read.
    """
    try:
        # A link or a pipe that has replaced the file must not trap us.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError as err:
        raise _unreadable(path, err) from err
    except OSError as err:
        raise changed_while_read(path) from err
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _stamp(status) != expected:
            raise changed_while_read(path)
        content = _read(descriptor, expected.size)
        if len(content) != expected.size or _stamp(os.fstat(descriptor)) != expected:
            raise changed_while_read(path)
    except OSError as err:
        raise _unreadable(path, err) from err
    finally:
        os.close(descriptor)
    return content


def changed_while_read(path: Path | str) -> TransientError:
    """The directory is being written; a snapshot would mix before and after."""
    return TransientError(
        f"{path} changed while it was being read",
        code="SRC143",
        why="a snapshot would mix old and new",
        fix="wait until writing ends; if it never does, move the files that are written all the time "
        "elsewhere",
    )


def _read(descriptor: int, size: int) -> bytes:
    """The file's current content, up to one byte over `size`."""
    content = os.read(descriptor, size + 1)
    while len(content) < size and (more := os.read(descriptor, size + 1 - len(content))):
        content += more
    return content


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _check_name(root: Path, path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as err:
        shown = os.fsencode(path)
        raise StalledError(
            f"a file name in {root} is not UTF-8: {shown!r}", code="SRC144", fix="rename the file"
        ) from err


def _unreadable(path: Path | str, err: OSError) -> StalledError:
    return StalledError(
        f"{path} cannot be read",
        code="SRC145",
        why=err.strerror or str(err),
        fix="let this user read it, or move it out of the directory",
    )
