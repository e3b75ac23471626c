"""Carries out pushes of files, those in one folder together. Blocks.

They share what each would do for itself: the folder is held open once, looked at once for whether it is
protected, and synced once. One thread writes the files, and several sync them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lehr.base.clock import Clock
from lehr.base.errors import StalledError
from lehr.base.findings import Findings
from lehr.model.diff import Goal
from lehr.plugins.file import disk
from lehr.plugins.file.compare import differences, look
from lehr.plugins.file.disk import EntryKind, NewFile
from lehr.plugins.file.errors import errors_of
from lehr.plugins.file.folders import make_folder, require_unprotected
from lehr.plugins.file.owners import ANY, owner_of
from lehr.plugins.file.payload import Intended
from lehr.plugins.file.validation import Validation
from lehr.sdk.protected import Protected


class FilePush(NamedTuple):
    """A push of one file.

    Attributes:
        began: its number in `FilePushes.findings`.
    """

    path: str
    intended: Intended
    goal: Goal
    began: int


class FilePushes:
    """Begins pushes, and has the settings of all of them.

    Attributes:
        base: the directory that `validate` commands run in.
        protected: folders in which nothing is changed.
        clock: time, for `validate` commands.
        fsync: whether a push ends only when the file would last through a crash of the machine.
        findings: about folders, as `seen` of `Protected.why`.
    """

    def __init__(self, base: str, protected: Protected, clock: Clock, *, fsync: bool) -> None:
        self.base = base
        self.protected = protected
        self.clock = clock
        self.fsync = fsync
        self.findings: Findings[dict[str, str]] = Findings(dict)

    def begin(self, path: str, intended: Intended, goal: Goal) -> FilePush:
        """A push that begins now. Belongs to the event loop."""
        return FilePush(path, intended, goal, self.findings.begin())

    def together(self, pushes: Sequence[FilePush]) -> Batch:
        """Pushes in one folder, to be carried out together."""
        return Batch(self, pushes)


class Batch:
    """Pushes in one folder. Each step does its part of all; an error of one push ends only that."""

    def __init__(self, common: FilePushes, pushes: Sequence[FilePush]) -> None:
        self._common = common
        self._pushes = pushes
        self._errors: dict[int, Exception] = {}
        self._folder: int | None = None
        self._real = ""
        self._new: dict[int, NewFile] = {}
        self._unsynced: deque[int] = deque()
        self._fenced: set[int] = set()
        self._changed: list[int] = []

    def carry_out(self) -> list[Exception | None]:
        """All steps, one after the other; returns the error of each push."""
        self.write()
        return self.finish()

    def write(self) -> None:
        """Compare again, since time has passed, and write new contents, or remove what must go."""
        for number, push in enumerate(self._pushes):
            self._attempt(number, partial(self._write, number, push))
        if self._common.fsync:
            self._unsynced.extend(self._new)

    @property
    def unsynced(self) -> int:
        """How many new files `sync` has to sync."""
        return len(self._unsynced)

    def sync(self) -> None:
        """Sync new files until none is left. Several threads may do so."""
        while True:
            try:
                number = self._unsynced.popleft()
            except IndexError:
                return
            self._attempt(number, self._new[number].sync)

    def put_in_place(self) -> None:
        """Put new files that are synced in place."""
        for number, new in self._new.items():
            if number not in self._errors:
                self._attempt(number, partial(self._put_in_place, number, new))
            new.close()
        self._new.clear()

    def finish(self) -> list[Exception | None]:
        """All steps that are left, and sync the folder; returns the error of each push."""
        self.sync()
        self.put_in_place()
        if self._folder is not None:
            if self._changed and self._common.fsync:
                self._sync_folder()
            os.close(self._folder)
        return [self._errors.get(number) for number in range(len(self._pushes))]

    def _attempt(self, number: int, step: Callable[[], object]) -> None:
        try:
            with errors_of(self._pushes[number].path):
                step()
        except Exception as error:
            self._errors[number] = error

    def _write(self, number: int, push: FilePush) -> None:
        path, intended, goal = push.path, push.intended, push.goal
        seen = self._common.findings.of(push.began)
        if not self._hold(push, seen):
            return
        held = self._held(path)
        found = look(held, intended, goal)
        if not any(differences(found, intended, goal)):
            return
        require_unprotected(
            self._common.protected, path, os.path.join(self._real, os.path.basename(path)), seen
        )
        entry = found.entry
        if entry is not None and entry.kind not in (EntryKind.FILE, EntryKind.SYMLINK):
            raise StalledError(
                f"{path} is a {entry.kind}",
                code="FIL107",
                why="only regular files and symbolic links are replaced or removed",
                fix="remove it by hand, or choose another path",
            )
        if goal is not Goal.PRESENT:
            self._changed.append(number)
            _take_away(held, goal)
            return
        file = intended.file
        kept = (ANY, ANY) if entry is None or entry.kind is not EntryKind.FILE else (entry.uid, entry.gid)
        owner = owner_of(file.owner, file.group)
        new = self._new[number] = NewFile(held)
        new.write(intended.data(), file.permissions, owner, kept)
        if found.fenced:
            self._fenced.add(number)

    def _hold(self, push: FilePush, seen: dict[str, str]) -> bool:
        """Hold the folder open: changed links then have no effect. False if there is nothing to do."""
        if self._folder is not None:
            return True
        folder = os.path.dirname(push.path)
        try:
            self._folder = disk.hold(folder)
        except (FileNotFoundError, NotADirectoryError):
            if push.goal is not Goal.PRESENT:
                return False
            make_folder(self._common.protected, push.path, always=push.intended.file.make_parents, seen=seen)
            self._folder = disk.hold(folder)
        self._real = os.path.dirname(disk.real(self._held(push.path)))
        return True

    def _held(self, path: str) -> str:
        """`path` through the folder that is held."""
        assert self._folder is not None
        return disk.through(self._folder, os.path.basename(path))

    def _put_in_place(self, number: int, new: NewFile) -> None:
        path, intended = self._pushes[number].path, self._pushes[number].intended
        file, common = intended.file, self._common
        if file.validate is not None:
            validation = Validation(
                file.validate, file.validate_timeout_seconds, common.base, file.content_secret is not None
            )
            # The folder that is held has no name in another process.
            new.require_accepted(lambda it: validation.require(path, disk.real(it), common.clock))
        new.put_in_place()
        self._changed.append(number)
        if number in self._fenced:
            disk.remove(disk.fenced_of(self._held(path)))

    def _sync_folder(self) -> None:
        """Make the entries survive a crash of the machine. The kernel reports an error only once."""
        try:
            disk.sync_directory(self._held(""))
        except OSError as error:
            for number in self._changed:
                self._attempt(number, partial(_raise, error))


def _take_away(held: str, goal: Goal) -> None:
    if goal is Goal.FENCED and disk.kind_of(held) is not None:
        disk.move_aside(held)
    elif goal is Goal.ABSENT:
        disk.remove(held)
        disk.remove(disk.fenced_of(held))
    disk.remove(disk.temporary_of(held))


def _raise(error: Exception) -> None:
    raise error
