"""The asset plugin of `lehr.Symlink`: one symbolic link, which is never followed.

Only links are replaced, since replacing one loses nothing but its target. A turndown removes only a link to
the declared target.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from lehr.base.blocking import Blocking, Tracked
from lehr.base.errors import StalledError
from lehr.model.asset import AssetKey
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress
from lehr.plugins.file import disk
from lehr.plugins.file.disk import EntryKind
from lehr.plugins.file.errors import errors_of
from lehr.plugins.file.folders import make_folder, require_unprotected
from lehr.plugins.file.payload import SYMLINK, Symlink
from lehr.plugins.file.watch import Watch, WatchedEntry
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.protected import Protected


class SymlinkPlugin(AssetPlugin):
    """Keeps symbolic links as intended, by replacing them whole.

    * A diff names `target`, or that something other than a link is at the path.
    * A push makes a new link next to the old one and renames it over that. FENCED moves the link aside,
      PRESENT brings it back, ABSENT removes both.
    * Files, directories and other entries are never replaced, moved or removed. A turndown leaves a link to
      another target alone.

    Args:
        base: the directory that relative paths start from.
        blocking: a pool of this plugin's own, closed with it.
        fsync: whether a push ends only when the link would last through a crash of the machine.
        protected: folders in which nothing is changed.
    """

    types = (SYMLINK,)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}))

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
        """Compare the link with intent."""
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
        """Keys of assets for whose links the kernel reported an event, except during their pushes."""
        async for key in self._watch.keys():
            if not self._writes.busy(key):
                yield key

    async def close(self) -> None:
        self._watch.close()
        self._blocking.close()

    # --- in a thread -------------------------------------------------------------

    def _look(self, link: Symlink, goal: Goal) -> tuple[WatchedEntry | None, Diff]:
        path = os.path.join(self._base, link.path)
        # Watched before it is read, so that no change is missed in between.
        place = self._watch.place(path)
        with errors_of(path):
            found = tuple(_changes(path, link, goal))
        return place, Diff(found) if found else NO_DIFF

    def _carry_out(self, link: Symlink, goal: Goal) -> None:
        path = os.path.join(self._base, link.path)
        with errors_of(path):
            if not any(_changes(path, link, goal)):
                return
            if goal is Goal.PRESENT:
                make_folder(self._protected, path, always=link.make_parents)
            with disk.held(path) as held:
                require_unprotected(self._protected, path, disk.real(held))
                _put(path, held, link, goal)
                if self._fsync:
                    disk.sync_directory(held)


def _payload(target: Target, read: Reader) -> Symlink:
    if target.goal is not Goal.PRESENT and target.goal not in SymlinkPlugin.traits.goals:
        raise StalledError(
            f"a {SYMLINK} cannot be {target.goal}",
            code="FIL116",
            fix="use a turndown, which fences and removes it",
        )
    return read.payload(target.id, Symlink)


def _changes(path: str, link: Symlink, goal: Goal) -> Iterator[Change]:
    """Everything at and next to `path` that does not match `goal`."""
    if disk.kind_of(disk.temporary_of(path)) is not None:
        yield Change("temporary", None, "left by an unfinished push")
    kind = disk.kind_of(path)
    if goal is not Goal.PRESENT:
        if kind is not None:
            yield Change("type", None, kind.value)
    elif kind is None:
        yield Change("target", link.target, None)
    elif kind is not EntryKind.SYMLINK:
        yield Change("type", EntryKind.SYMLINK.value, kind.value)
    elif (found := os.readlink(path)) != link.target:
        yield Change("target", link.target, found)
    if goal is not Goal.FENCED and (aside := disk.kind_of(disk.fenced_of(path))) is not None:
        yield Change("fenced", None, aside.value)


def _put(path: str, held: str, link: Symlink, goal: Goal) -> None:
    """Change the entry at `held`; `path` is its name in messages."""
    aside = disk.fenced_of(held)
    _require_link(path, held)
    _require_link(disk.fenced_of(path), aside)
    disk.remove_leftover(disk.temporary_of(held))
    if goal is Goal.PRESENT:
        disk.link(held, link.target)
        disk.remove(aside)
        return
    _require_target(path, held, link)
    if goal is Goal.FENCED:
        if disk.kind_of(held) is not None:
            disk.move_aside(held)
        return
    _require_target(disk.fenced_of(path), aside, link)
    disk.remove(held)
    disk.remove(aside)


def _require_link(path: str, held: str) -> None:
    kind = disk.kind_of(held)
    if kind not in (None, EntryKind.SYMLINK):
        raise StalledError(
            f"{path} is a {kind}",
            code="FIL117",
            why=f"a {SYMLINK} replaces or removes only symbolic links",
            fix="remove it by hand, or choose another path",
        )


def _require_target(path: str, held: str, link: Symlink) -> None:
    if disk.kind_of(held) is not None and (found := os.readlink(held)) != link.target:
        raise StalledError(
            f"{path} links to {found}, not to {link.target}",
            code="FIL118",
            why="a turndown removes only the link that intent declares",
            fix="remove it by hand, or link it to the declared target again",
        )
