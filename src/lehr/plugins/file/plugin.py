"""The asset plugin of `lehr.File`."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from lehr.base.blocking import Blocking, Tracked
from lehr.base.digest import digest_bytes, short
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetKey
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress
from lehr.plugins.file import disk
from lehr.plugins.file.disk import Found, Kind
from lehr.plugins.file.payload import FILE, File
from lehr.plugins.file.watch import Place, Watch
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits

_ANY = -1  # as in chown(2)


class FilePlugin(AssetPlugin):
    """Keeps files as intended, by replacing them whole.

    FENCED moves a file aside, PRESENT brings it back, ABSENT removes both.
    """

    types = (FILE,)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}), turns=32, pushes=32)

    def __init__(self, base: Path, blocking: Blocking, *, fsync: bool = True) -> None:
        """Serve files of this machine.

        Args:
            base: what relative paths are relative to.
            blocking: a pool of this plugin's own, closed with it.
            fsync: whether a push ends only when the file would last through a crash of the
                machine. Without it such a crash can leave files empty, which the next diff finds.
        """
        self._base = base.absolute()
        self._blocking = blocking
        self._fsync = fsync
        self._watch = Watch()
        self._writes = Tracked(blocking)

    async def diff(self, target: Target, read: Reader) -> Diff:
        file = read.payload(target.id, File)
        path = self._path(file)
        place, diff = await self._blocking.run(self._look, path, file, target.goal)
        self._watch.note(target.key, place)
        return diff

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        file = read.payload(target.id, File)
        await self._writes.run(target.key, self._carry_out, self._path(file), file, target.goal)
        return DONE

    async def status(self, operation: Operation) -> Progress:
        return Progress.RUNNING if self._writes.busy(operation.key) else Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        async for key in self._watch.keys():
            yield key

    async def close(self) -> None:
        self._watch.close()
        self._blocking.close()

    def _path(self, file: File) -> str:
        return os.path.join(self._base, file.path)

    def _look(self, path: str, file: File, goal: Goal) -> tuple[Place | None, Diff]:
        # Watched before it is looked at, so that no change falls between the two.
        place = self._watch.place(path)
        with _errors_of(path):
            changes = tuple(_changes(path, file, goal))
        return place, Diff(changes) if changes else NO_DIFF

    def _carry_out(self, path: str, file: File, goal: Goal) -> None:
        with _errors_of(path):
            if not any(_changes(path, file, goal)):
                return
            found = disk.look(path)
            if found is not None and found.kind not in (Kind.FILE, Kind.SYMLINK):
                raise StalledError(
                    f"{path} is a {found.kind}",
                    why="only regular files and symbolic links are replaced or removed",
                    fix="remove it by hand, or choose another path",
                )
            if goal is Goal.PRESENT:
                self._replace(path, file, found)
                return
            if goal is Goal.FENCED and found is not None:
                disk.move_aside(path)
            elif goal is Goal.ABSENT:
                disk.remove(path)
                disk.remove(disk.fenced_of(path))
            disk.remove(disk.temporary_of(path))
            if self._fsync:
                disk.sync_directory(path)

    def _replace(self, path: str, file: File, found: Found | None) -> None:
        directory = os.path.dirname(path)
        if file.make_parents:
            os.makedirs(directory, exist_ok=True)
        elif not os.path.isdir(directory):
            raise StalledError(
                f"directory {directory} does not exist",
                why="`make_parents` is false",
                fix="make the directory, or let Lehr make it",
            )
        kept = (_ANY, _ANY) if found is None or found.kind is not Kind.FILE else (found.uid, found.gid)
        owner = (_uid(file.owner), _gid(file.group))
        disk.replace(path, file.data, file.permissions, owner, kept, fsync=self._fsync)
        disk.remove(disk.fenced_of(path))


def _changes(path: str, file: File, goal: Goal) -> Iterator[Change]:
    """Everything at and beside `path` that is not as `goal` asks."""
    if disk.kind_of(disk.temporary_of(path)) is not None:
        yield Change("temporary", None, "left by a push that did not end")
    if goal is Goal.PRESENT:
        yield from _content_changes(file, disk.look(path))
    elif goal in FilePlugin.traits.goals:
        kind = disk.kind_of(path)
        if kind is not None:
            yield Change("type", None, kind.value)
    else:
        raise StalledError(f"a {FILE} cannot be {goal}", fix="use a turndown, which fences and removes it")
    if goal is not Goal.FENCED and disk.kind_of(disk.fenced_of(path)) is not None:
        yield Change("fenced", None, Kind.FILE.value)


def _content_changes(file: File, found: Found | None) -> Iterator[Change]:
    data = file.data
    if found is None:
        yield Change("content", _described(data, len(data)), None)
        return
    if found.kind is not Kind.FILE:
        yield Change("type", Kind.FILE.value, found.kind.value)
        return
    if found.data != data:
        observed = _described(found.data, found.size)
        observed["line"] = _first_line_that_differs(data, found.data)
        yield Change("content", _described(data, len(data)), observed)
    if found.mode != file.permissions:
        yield Change("mode", f"{file.permissions:04o}", f"{found.mode:04o}")
    if file.owner is not None and found.uid != _uid(file.owner):
        yield Change("owner", file.owner, _user(found.uid))
    if file.group is not None and found.gid != _gid(file.group):
        yield Change("group", file.group, _group(found.gid))


def _described(data: bytes, size: int) -> dict[str, Any]:
    """Content without its text, which may be a secret. A huge file's digest is not worth reading it."""
    return {"size": size, "digest": short(digest_bytes(data)) if size == len(data) else None}


def _first_line_that_differs(intended: bytes, observed: bytes) -> int:
    """Counts from 1."""
    ours, theirs = intended.split(b"\n"), observed.split(b"\n")
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if mine != other:
            return number
    return min(len(ours), len(theirs)) + 1


def _uid(owner: str | None) -> int:
    if owner is None:
        return _ANY
    try:
        return int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
    except KeyError as error:
        raise StalledError(f"there is no user {owner}", fix="make the user, or change `owner`") from error


def _gid(group: str | None) -> int:
    if group is None:
        return _ANY
    try:
        return int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise StalledError(f"there is no group {group}", fix="make the group, or change `group`") from error


def _user(uid: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)


def _group(gid: int) -> str:
    with contextlib.suppress(KeyError):
        return grp.getgrgid(gid).gr_name
    return str(gid)


_FIXES: dict[int, tuple[type[LehrError], str]] = {
    errno.EACCES: (
        StalledError,
        "run Lehr as a user that may do this, or change the directory's permissions",
    ),
    errno.EPERM: (StalledError, "run Lehr as a user that may do this; look for an immutable attribute"),
    errno.EROFS: (StalledError, "mount the file system for writing, or choose another path"),
    errno.ENOTDIR: (StalledError, "a part of the path is no directory: remove it, or choose another path"),
    errno.EEXIST: (StalledError, "a part of the path is no directory: remove it, or choose another path"),
    errno.EISDIR: (StalledError, "a directory is in the way: remove it by hand, or choose another path"),
    errno.ENAMETOOLONG: (StalledError, "choose a shorter path"),
    errno.ELOOP: (StalledError, "directories on the way are symbolic links in a circle: mend them"),
    errno.EAGAIN: (TransientError, "another push is writing this file: it goes on when that has ended"),
    errno.ENOSPC: (TransientError, "free space or inodes on this file system; the old file is intact"),
    errno.EDQUOT: (TransientError, "free some of the quota; the old file is intact"),
}


@contextlib.contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """Translates what the system says about `path`."""
    try:
        yield
    except OSError as error:
        kind, fix = _FIXES.get(error.errno or 0, (TransientError, ""))
        raise kind(f"{path} cannot be kept as intended", why=error.strerror or str(error), fix=fix) from error
