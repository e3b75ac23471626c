"""The frame of plugins that keep one entry of a directory, without content: links and directories."""

from __future__ import annotations

import abc
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from lehr.base.blocking import Blocking, Tracked
from lehr.base.errors import StalledError
from lehr.base.inotify import WatchedEntry
from lehr.model.asset import AssetKey
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress
from lehr.plugins.file import disk
from lehr.plugins.file.errors import errors_of
from lehr.plugins.file.folders import make_folder, require_unprotected
from lehr.plugins.file.payload import Directory, Symlink
from lehr.plugins.file.watch import Watch
from lehr.sdk.plugin import AssetPlugin, Push, Reader
from lehr.sdk.protected import Protected

P = TypeVar("P", Symlink, Directory)


class EntryPlugin(AssetPlugin, Generic[P]):
    """Compares in a thread, and compares again before it changes anything, through the folder held open.

    Args:
        base: the directory that relative paths start from.
        blocking: a pool of this plugin's own, closed with it.
        fsync: whether a push ends only when its result would last through a crash of the machine.
        protected: folders in which nothing is changed.
    """

    _payload: ClassVar[type[Symlink | Directory]]

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
        """Compare the entry with intent."""
        place, diff = await self._blocking.run(self._look, self._intended(target, read), target.goal)
        self._watch.note(target.key, place)
        return diff

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Compare again, since time has passed, and fix the differences."""
        await self._writes.run(target.key, self._carry_out, self._intended(target, read), target.goal)
        return DONE

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while the thread of a push that was cancelled has not returned."""
        return Progress.RUNNING if self._writes.busy(operation.key) else Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of assets for whose entries the kernel reported an event, except during their pushes."""
        async for key in self._watch.keys():
            if not self._writes.busy(key):
                yield key

    async def close(self) -> None:
        self._watch.close()
        self._blocking.close()

    def _intended(self, target: Target, read: Reader) -> P:
        require_goal(self, target)
        return read.payload(target.id, self._payload)  # type: ignore[return-value]  # its own type

    # --- in a thread -------------------------------------------------------------

    @abc.abstractmethod
    def _changes(self, path: str, intended: P, goal: Goal) -> Iterator[Change]:
        """Everything at and next to `path` that does not match `goal`."""

    def _watched(self, path: str, intended: P, goal: Goal) -> str:
        """What to watch, as for `Watch.place`."""
        return path

    @abc.abstractmethod
    def _put(self, path: str, held: str, intended: P, goal: Goal) -> None:
        """Change the entry at `held`; `path` is its name in messages."""

    def _look(self, intended: P, goal: Goal) -> tuple[WatchedEntry | None, Diff]:
        path = os.path.join(self._base, intended.path)
        # Watched before it is read, so that no change is missed in between.
        place = self._watch.place(self._watched(path, intended, goal))
        with errors_of(path):
            found = tuple(self._changes(path, intended, goal))
        return place, self._diff_of(found) if found else NO_DIFF

    def _diff_of(self, changes: tuple[Change, ...]) -> Diff:
        """The diff with these changes."""
        return Diff(changes)

    def _carry_out(self, intended: P, goal: Goal) -> None:
        path = os.path.join(self._base, intended.path)
        with errors_of(path):
            if not any(self._changes(path, intended, goal)):
                return
            if goal is Goal.PRESENT:
                make_folder(self._protected, path, always=intended.make_parents)
            with disk.held(path) as held:
                require_unprotected(self._protected, path, disk.real(held))
                self._put(path, held, intended, goal)
                if self._fsync:
                    disk.sync_directory(held)


def require_goal(plugin: AssetPlugin, target: Target) -> None:
    """Return if `plugin`, of one type, can pursue the goal of `target`.

    Raises:
        StalledError: it cannot.
    """
    if target.goal is not Goal.PRESENT and target.goal not in plugin.traits.goals:
        raise StalledError(
            f"a {plugin.types[0]} cannot be {target.goal}",
            code="FIL110",
            fix="use a turndown, which removes it safely",
        )
