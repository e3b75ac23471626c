"""The asset plugin of `lehr.Directory`: that one directory exists, with its mode and owner.

Its entries are never touched: a turndown removes only an empty directory.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from lehr.base.blocking import Blocking, Tracked
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetKey
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress
from lehr.plugins.file import disk
from lehr.plugins.file.disk import EntryKind
from lehr.plugins.file.errors import errors_of
from lehr.plugins.file.folders import make_folder, require_unprotected
from lehr.plugins.file.owners import ANY, gid_of, group_of, uid_of, user_of
from lehr.plugins.file.payload import DIRECTORY, Directory
from lehr.plugins.file.watch import Watch, WatchedEntry
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.protected import Protected


class DirectoryPlugin(AssetPlugin):
    """Keeps directories as intended, in place.

    * A diff names `mode`, `owner`, `group`, or that something else or nothing is at the path.
    * A push creates the directory, or changes its mode and owner. ABSENT removes it if it is empty.
    * Nothing else is ever replaced or removed, and no symbolic link at the path is followed.

    Args:
        base: the directory that relative paths start from.
        blocking: a pool of this plugin's own, closed with it.
        fsync: whether a push ends only when the directory would last through a crash of the machine.
        protected: folders in which nothing is changed.
    """

    types = (DIRECTORY,)
    traits = Traits(goals=frozenset({Goal.ABSENT}))

    def __init__(
        self, base: Path, blocking: Blocking, *, fsync: bool = True, protected: Protected | None = None
    ) -> None:
        self._base = base.absolute()
        self._blocking = blocking
        self._writes = Tracked(blocking)
        self._watch = Watch()
        self._fsync = fsync
        self._protected = protected or Protected({})

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare the directory with intent."""
        place, diff = await self._blocking.run(self._look, _payload(target, read), target.goal)
        self._watch.note(target.key, place)
        return diff

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Compare again, since time has passed, and fix the differences."""
        await self._writes.run(target.key, self._carry_out, _payload(target, read), target.goal)
        return DONE

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while the thread of a push that was cancelled has not returned."""
        return Progress.RUNNING if self._writes.busy(operation.key) else Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of assets for whose directories the kernel reported an event, except during their pushes."""
        async for key in self._watch.keys():
            if not self._writes.busy(key):
                yield key

    async def close(self) -> None:
        self._watch.close()
        self._blocking.close()

    # --- in a thread -------------------------------------------------------------

    def _look(self, directory: Directory, goal: Goal) -> tuple[WatchedEntry | None, Diff]:
        path = os.path.join(self._base, directory.path)
        # Watched before it is read, so that no change is missed in between.
        place = self._watch.place(path)
        with errors_of(path):
            found = tuple(_changes(path, directory, goal))
        return place, Diff(found) if found else NO_DIFF

    def _carry_out(self, directory: Directory, goal: Goal) -> None:
        path = os.path.join(self._base, directory.path)
        with errors_of(path):
            if not any(_changes(path, directory, goal)):
                return
            if goal is Goal.PRESENT:
                make_folder(self._protected, path, always=directory.make_parents)
            with disk.held(path) as held:
                require_unprotected(self._protected, path, disk.real(held))
                _require_directory(path, held)
                if goal is Goal.PRESENT:
                    _put(held, directory)
                else:
                    _remove(path, held)
                if self._fsync:
                    disk.sync_directory(held)


def _payload(target: Target, read: Reader) -> Directory:
    if target.goal is not Goal.PRESENT and target.goal not in DirectoryPlugin.traits.goals:
        raise StalledError(
            f"a {DIRECTORY} cannot be {target.goal}", code="FIL119", fix="use a turndown, which removes it"
        )
    return read.payload(target.id, Directory)


def _changes(path: str, directory: Directory, goal: Goal) -> Iterator[Change]:
    """Everything at `path` that does not match `goal`."""
    kind = disk.kind_of(path)
    if goal is not Goal.PRESENT:
        if kind is not None:
            yield Change("type", None, kind.value)
        return
    if kind is not EntryKind.DIRECTORY:
        yield Change("type", EntryKind.DIRECTORY.value, None if kind is None else kind.value)
        return
    status = os.lstat(path)
    mode, wanted = stat.S_IMODE(status.st_mode), directory.permissions
    if mode != wanted:
        yield Change("mode", f"{wanted:04o}", f"{mode:04o}")
    if directory.owner is not None and status.st_uid != uid_of(directory.owner):
        yield Change("owner", directory.owner, user_of(status.st_uid))
    if directory.group is not None and status.st_gid != gid_of(directory.group):
        yield Change("group", directory.group, group_of(status.st_gid))


def _require_directory(path: str, held: str) -> None:
    kind = disk.kind_of(held)
    if kind not in (None, EntryKind.DIRECTORY):
        raise StalledError(
            f"{path} is a {kind}",
            code="FIL120",
            why=f"a {DIRECTORY} never replaces or removes anything else",
            fix="remove it by hand, or choose another path",
        )


def _put(held: str, directory: Directory) -> None:
    owner = (uid_of(directory.owner), gid_of(directory.group))
    with contextlib.suppress(FileExistsError):
        os.mkdir(held, 0o700)  # closed to other users until it has its owner
    descriptor = os.open(held, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if owner != (ANY, ANY):
            os.fchown(descriptor, *owner)
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
