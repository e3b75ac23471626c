"""The asset plugin of `lehr.Directory`: that one directory exists, with its mode and owner.

Its entries are touched only if it is exclusive, and then only those that intent does not declare, once a
person has approved it. A turndown removes only an empty directory.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from lehr.base.blocking import Blocking
from lehr.base.digest import Digest
from lehr.base.errors import StalledError, TransientError
from lehr.base.inotify import WatchedEntry
from lehr.model.diff import Change, Diff, Effects, Goal
from lehr.plugins.file import disk
from lehr.plugins.file import undeclared as inside
from lehr.plugins.file.disk import EntryKind
from lehr.plugins.file.entries import EntryPlugin
from lehr.plugins.file.folders import require_unprotected
from lehr.plugins.file.owners import owner_changes, owner_of
from lehr.plugins.file.payload import DIRECTORY, Directory
from lehr.plugins.file.undeclared import Undeclared
from lehr.sdk.plugin import Traits
from lehr.sdk.protected import Protected


class DirectoryPlugin(EntryPlugin[Directory]):
    """Keeps directories as intended, in place.

    * A diff names `mode`, `owner`, `group`, or that something else or nothing is at the path. Of an exclusive
      directory it names the entries that intent does not declare, and is destructive if there are any.
    * A push creates the directory, or changes its mode and owner. It removes such entries if they are exactly
      those of the last diff, which was approved. ABSENT removes the directory if it is empty.
    * Nothing else is ever replaced or removed, and no symbolic link is followed.
    """

    types = (DIRECTORY,)
    traits = Traits(goals=frozenset({Goal.ABSENT}))
    _payload = Directory

    def __init__(
        self, base: Path, blocking: Blocking, *, fsync: bool = True, protected: Protected | None = None
    ) -> None:
        super().__init__(base, blocking, fsync=fsync, protected=protected)
        self._seen: dict[str, Digest] = {}
        """Digest of the last diff of each directory with entries that intent does not declare."""

    def _watched(self, path: str, intended: Directory, goal: Goal) -> str:
        # A turndown waits until the directory is empty.
        return f"{path}/" if intended.exclusive or goal is Goal.ABSENT else path

    def _look(self, intended: Directory, goal: Goal) -> tuple[WatchedEntry | None, Diff]:
        place, diff = super()._look(intended, goal)
        if diff.effects.destructive:
            self._seen[intended.path] = diff.digest()
        else:
            self._seen.pop(intended.path, None)
        return place, diff

    def _diff_of(self, changes: tuple[Change, ...]) -> Diff:
        removes = any(change.path.startswith(inside.INSIDE) for change in changes)
        return Diff(changes, Effects(destructive=removes))

    def _changes(self, path: str, intended: Directory, goal: Goal) -> Iterator[Change]:
        if goal is not Goal.PRESENT:
            kind = disk.kind_of(path)
            if kind is not None:
                yield Change("type", None, kind.value)
            return
        yield from _changes(path, intended, self._undeclared(path, intended))

    def _undeclared(self, path: str, intended: Directory) -> list[Undeclared]:
        if not intended.exclusive or disk.kind_of(path) is not EntryKind.DIRECTORY:
            return []
        return inside.undeclared(path, intended.declared)

    def _put(self, path: str, held: str, intended: Directory, goal: Goal) -> None:
        kind = disk.kind_of(held)
        if kind not in (None, EntryKind.DIRECTORY):
            raise StalledError(
                f"{path} is a {kind}",
                code="FIL120",
                why=f"a {DIRECTORY} never replaces or removes anything else",
                fix="remove it by hand, or choose another path",
            )
        if goal is not Goal.PRESENT:
            _remove(path, held)
            return
        entries = self._undeclared(held, intended)
        if entries:
            found = self._diff_of(tuple(_changes(held, intended, entries)))
            if found.digest() != self._seen.get(intended.path):
                raise inside.changed(path)
            for entry in entries:
                require_unprotected(
                    self._protected, f"{path}/{entry.name}", f"{disk.real(held)}/{entry.name}"
                )
            inside.remove(path, held, entries)
        _create(held, intended)


def _changes(path: str, directory: Directory, entries: Sequence[Undeclared]) -> Iterator[Change]:
    kind = disk.kind_of(path)
    if kind is not EntryKind.DIRECTORY:
        yield Change("type", EntryKind.DIRECTORY.value, None if kind is None else kind.value)
        return
    status = os.lstat(path)
    mode, wanted = stat.S_IMODE(status.st_mode), directory.permissions
    if mode != wanted:
        yield Change("mode", f"{wanted:04o}", f"{mode:04o}")
    yield from owner_changes(directory.owner, directory.group, (status.st_uid, status.st_gid))
    yield from inside.changes(entries)


def _create(held: str, directory: Directory) -> None:
    owner = owner_of(directory.owner, directory.group)
    with contextlib.suppress(FileExistsError):
        os.mkdir(held, 0o700)  # closed to other users until it has its owner
    descriptor = os.open(held, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        disk.change_owner(descriptor, owner)
        os.fchmod(descriptor, directory.permissions)  # after chown, which clears set-group-id bits
    finally:
        os.close(descriptor)


def _remove(path: str, held: str) -> None:
    try:
        os.rmdir(held)
    except FileNotFoundError:
        return
    except OSError:
        with os.scandir(held) as entries:
            first = next(entries, None)
        if first is None:
            raise
        raise TransientError(
            f"{path} is not empty: it has {first.name}",
            code="FIL121",
            why="a turndown removes only an empty directory",
            fix="turn down the assets in it, or remove the rest by hand",
        ) from None
