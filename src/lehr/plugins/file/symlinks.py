"""The asset plugin of `lehr.Symlink`: one symbolic link, which is never followed.

Only links are replaced, since replacing one loses nothing but its target. A turndown removes only a link to
the declared target.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from lehr.base.errors import StalledError
from lehr.model.diff import Change, Goal
from lehr.plugins.file import disk
from lehr.plugins.file.disk import EntryKind
from lehr.plugins.file.entries import EntryPlugin
from lehr.plugins.file.owners import ANY, owner_changes, owner_of
from lehr.plugins.file.payload import SYMLINK, Symlink
from lehr.sdk.plugin import Traits


class SymlinkPlugin(EntryPlugin[Symlink]):
    """Keeps symbolic links as intended, by replacing them whole.

    * A diff names `target`, `owner`, `group`, or that something other than a link is at the path.
    * A push makes a new link next to the old one and renames it over that. FENCED moves the link aside,
      PRESENT brings it back, ABSENT removes both.
    * Files, directories and other entries are never replaced, moved or removed. A turndown leaves a link to
      another target alone.
    """

    types = (SYMLINK,)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}))
    _payload = Symlink

    def _changes(self, path: str, intended: Symlink, goal: Goal) -> Iterator[Change]:
        if disk.kind_of(disk.temporary_of(path)) is not None:
            yield Change("temporary", None, "left by an unfinished push")
        kind = disk.kind_of(path)
        if goal is not Goal.PRESENT:
            if kind is not None:
                yield Change("type", None, kind.value)
        elif kind is None:
            yield Change("target", intended.target, None)
        elif kind is not EntryKind.SYMLINK:
            yield Change("type", EntryKind.SYMLINK.value, kind.value)
        else:
            if (found := os.readlink(path)) != intended.target:
                yield Change("target", intended.target, found)
            yield from owner_changes(intended.owner, intended.group, _owner_at(path))
        if goal is not Goal.FENCED and (aside := disk.kind_of(disk.fenced_of(path))) is not None:
            yield Change("fenced", None, aside.value)

    def _put(self, path: str, held: str, intended: Symlink, goal: Goal) -> None:
        aside = disk.fenced_of(held)
        _require_link(path, held)
        _require_link(disk.fenced_of(path), aside)
        disk.remove_leftover(disk.temporary_of(held))
        if goal is Goal.PRESENT:
            disk.link(held, intended.target, owner_of(intended.owner, intended.group), _owner_at(held))
            disk.remove(aside)
            return
        _require_target(path, held, intended)
        if goal is Goal.FENCED:
            if disk.kind_of(held) is not None:
                disk.move_aside(held)
            return
        _require_target(disk.fenced_of(path), aside, intended)
        disk.remove(held)
        disk.remove(aside)


def _owner_at(path: str) -> tuple[int, int]:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return ANY, ANY
    return status.st_uid, status.st_gid


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
