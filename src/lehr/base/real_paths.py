"""Where a path really leads, and who can change where it leads.

Names are links: two paths may be one file, and a folder that looks like one's own may be reached
through another user's link. Code that compares or trusts paths therefore resolves them here first.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import NamedTuple

_MOST_LINKS = 40


def real_entry(path: str | os.PathLike[str], realpath: Callable[[str], str] = os.path.realpath) -> str:
    """The directory entry that `path` names: links in its folders are resolved, one at its end is not.

    This is what a rename to `path`, or a removal of it, changes. The path need not exist.

    Args:
        realpath: resolves the folder; one that remembers saves a system call for each part of it.
    """
    folder, name = os.path.split(path)
    return os.path.join(realpath(folder), name)


def real_target(path: str | os.PathLike[str]) -> str:
    """The file that opening `path` would read or write: all links are resolved. It need not exist."""
    return os.path.realpath(path)


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or below it; both are resolved already."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Weakness(NamedTuple):
    """A component of a path at which another user can put something else.

    Attributes:
        path: the component.
        why: its problem.
        fix: a command that ends that; empty where there is none.
    """

    path: str
    why: str
    fix: str = ""


def weakness(path: str | os.PathLike[str], user: int, *, itself: bool = True) -> Weakness | None:
    """The first component on the way to `path` that users other than `user` and root can replace.

    Every folder and every symbolic link that the kernel goes through is looked at. A path that does
    not exist yet is not a weakness: its creator looks again.

    Args:
        itself: False to leave out the folder in which the way ends.

    Raises:
        OSError: a folder on the way cannot be looked into, or the links go round in a cycle.
    """
    # In a user namespace root may have another number; the owner of `/` can replace anything
    # anyway.
    trusted = {user, 0, os.lstat("/").st_uid}
    current, links = "/", 0
    pending = _components(os.path.join(os.getcwd(), path))
    while pending:
        name = pending.pop()
        if name == "..":
            current = os.path.dirname(current)
            continue
        here = os.path.join(current, name)
        try:
            status = os.lstat(here)
        except FileNotFoundError:
            return None
        link = stat.S_ISLNK(status.st_mode)
        if (pending or link or itself) and (found := _weak(here, status, trusted, user)):
            return found
        if not link:
            current = here
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), here)
        target = os.readlink(here)
        current = "/" if target.startswith("/") else current
        pending.extend(_components(target))
    return None


def _components(path: str) -> list[str]:
    """The last one first. `..` stays: after a link it leads elsewhere than it looks."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _weak(path: str, status: os.stat_result, trusted: set[int], user: int) -> Weakness | None:
    if status.st_uid not in trusted:
        kind = "symbolic link" if stat.S_ISLNK(status.st_mode) else "folder"
        return Weakness(path, f"the {kind} belongs to user {status.st_uid}")
    # Entries of a sticky folder can be replaced by their owner alone, who is looked at next.
    if stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return None
    if status.st_mode & stat.S_IWOTH:
        return Weakness(path, "every user may write to it", f"chmod o-w {path}")
    if status.st_mode & stat.S_IWGRP and not _private_group(status.st_gid, user):
        return Weakness(path, f"group {status.st_gid} may write to it", f"chmod g-w {path}")
    return None


def _private_group(group: int, user: int) -> bool:
    """Whether `group` is the one that many systems make for each user, of whom it is the only member."""
    import grp  # noqa: PLC0415 - needed only where a group may write
    import pwd  # noqa: PLC0415

    try:
        owner, found = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return found.gr_name == owner.pw_name and not set(found.gr_mem) - {owner.pw_name}
