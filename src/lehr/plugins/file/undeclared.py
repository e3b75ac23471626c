"""What is in an exclusive directory and not declared: found, shown, removed. Blocks.

Only files, symbolic links and empty directories are ever removed, through the directory held open, and only
if they are still as they were found.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from lehr.base.errors import StalledError, TransientError
from lehr.base.moments import rfc3339
from lehr.model.diff import Change, bounded
from lehr.plugins.file.payload import FENCED, TEMPORARY

INSIDE = "inside/"
"""Beginning of the path of a change."""

_MOST = 10_000
_SHOWN = 100
_KINDS = {stat.S_IFREG: "file", stat.S_IFLNK: "symlink", stat.S_IFDIR: "directory"}


class Undeclared(NamedTuple):
    """An entry that intent does not declare.

    Attributes:
        mode: with the kind of entry.
        changed: nanoseconds since the epoch, of the last change of the entry itself (not of what is in it).
    """

    name: str
    mode: int
    inode: int
    size: int
    changed: int

    @property
    def change(self) -> Change:
        """As part of a diff."""
        observed = {"type": _kind(self.mode), "changed": rfc3339(self.changed / 1e9)}
        if stat.S_ISREG(self.mode):
            observed["size"] = f"{self.size:,} bytes"
        return Change(INSIDE + self.name, None, observed)


def undeclared(path: str, declared: Collection[str]) -> list[Undeclared]:
    """The entries of the directory at `path` that intent does not declare, by name.

    Whatever belongs to pushes and turndowns of declared entries is left out.

    Raises:
        OSError: it is not a directory, or cannot be read.
        StalledError: there are too many.
    """
    known = frozenset(declared)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        names = sorted(name for name in os.listdir(directory) if not _belongs(name, known))
        if len(names) > _MOST:
            raise StalledError(
                f"{path} has {len(names):,} entries that intent does not declare",
                code="FIL123",
                why=f"at most {_MOST:,} are compared",
                fix="remove them by hand, or write `exclusive: false`",
            )
        return [found for name in names if (found := _look(directory, name)) is not None]
    finally:
        os.close(directory)


def changes(entries: Sequence[Undeclared]) -> Iterator[Change]:
    """Each by name; of very many the first ones, and one change for the rest."""
    yield from bounded([entry.change for entry in entries], INSIDE + "*", _SHOWN)


def remove(path: str, held: str, entries: Iterable[Undeclared]) -> None:
    """Remove entries of the directory at `held`; `path` is its name in messages.

    Raises:
        StalledError: one of them is never removed. Nothing has been.
        TransientError: one has changed since it was found.
    """
    directory = os.open(held, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = list(entries)
        for entry in found:
            _require_removable(path, directory, entry)
        for entry in found:
            now = _look(directory, entry.name)
            if now is not None and now != entry:
                raise changed(f"{path}/{entry.name}")
            if now is not None and stat.S_ISDIR(entry.mode):
                os.rmdir(entry.name, dir_fd=directory)
            elif now is not None:
                os.unlink(entry.name, dir_fd=directory)
        os.fsync(directory)
    finally:
        os.close(directory)


def changed(what: str) -> TransientError:
    """The error that `what` is not as it was approved."""
    return TransientError(
        f"{what} has changed since its removal was approved",
        code="FIL124",
        why="an approval is for exactly what it showed",
        fix="review it again with `lehr why`, and approve it, or declare it",
    )


def _look(directory: int, name: str) -> Undeclared | None:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Undeclared(name, status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns)


def _belongs(name: str, declared: Collection[str]) -> bool:
    owner = name
    if name.endswith(TEMPORARY):
        owner = name.removeprefix(".").removesuffix(TEMPORARY)
    elif name.endswith(FENCED):
        owner = name.removesuffix(FENCED)
    return owner in declared


def _require_removable(path: str, directory: int, entry: Undeclared) -> None:
    kind = _kind(entry.mode)
    if stat.S_ISDIR(entry.mode):
        inner = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        try:
            if not os.listdir(inner):
                return
        finally:
            os.close(inner)
        kind = "directory that is not empty"
    elif stat.S_IFMT(entry.mode) in _KINDS:
        return
    raise StalledError(
        f"{path}/{entry.name} is a {kind}",
        code="FIL125",
        why="only files, symbolic links and empty directories are removed",
        fix="remove it by hand, or declare it or what is in it",
    )


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "fifo, socket or device")
