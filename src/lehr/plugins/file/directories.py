"""The asset plugin of `lehr.Directory`: that one directory exists, with its mode and owner.

Its entries are never touched: a turndown removes only an empty directory.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from lehr.base.errors import StalledError, TransientError
from lehr.model.diff import Change, Goal
from lehr.plugins.file import disk
from lehr.plugins.file.disk import EntryKind
from lehr.plugins.file.entries import EntryPlugin
from lehr.plugins.file.owners import owner_changes, owner_of
from lehr.plugins.file.payload import DIRECTORY, Directory
from lehr.sdk.plugin import Traits


class DirectoryPlugin(EntryPlugin[Directory]):
    """Keeps directories as intended, in place.

    * A diff names `mode`, `owner`, `group`, or that something else or nothing is at the path.
    * A push creates the directory, or changes its mode and owner. ABSENT removes it if it is empty.
    * Nothing else is ever replaced or removed, and no symbolic link at the path is followed.
    """

    types = (DIRECTORY,)
    traits = Traits(goals=frozenset({Goal.ABSENT}))
    _payload = Directory

    def _changes(self, path: str, intended: Directory, goal: Goal) -> Iterator[Change]:
        kind = disk.kind_of(path)
        if goal is not Goal.PRESENT:
            if kind is not None:
                yield Change("type", None, kind.value)
            return
        if kind is not EntryKind.DIRECTORY:
            yield Change("type", EntryKind.DIRECTORY.value, None if kind is None else kind.value)
            return
        status = os.lstat(path)
        mode, wanted = stat.S_IMODE(status.st_mode), intended.permissions
        if mode != wanted:
            yield Change("mode", f"{wanted:04o}", f"{mode:04o}")
        yield from owner_changes(intended.owner, intended.group, (status.st_uid, status.st_gid))

    def _put(self, path: str, held: str, intended: Directory, goal: Goal) -> None:
        kind = disk.kind_of(held)
        if kind not in (None, EntryKind.DIRECTORY):
            raise StalledError(
                f"{path} is a {kind}",
                code="FIL120",
                why=f"a {DIRECTORY} never replaces or removes anything else",
                fix="remove it by hand, or choose another path",
            )
        if goal is Goal.PRESENT:
            _create(held, intended)
        else:
            _remove(path, held)


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
