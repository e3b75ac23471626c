"""Owners and groups of files: from names to numbers, and back."""

from __future__ import annotations

import contextlib
import grp
import pwd
from collections.abc import Iterator

from lehr.base.errors import StalledError
from lehr.model.diff import Change

ANY = -1
"""Any owner or group, as in chown(2)."""


def uid_of(owner: str | None) -> int:
    """The uid of a name or number; `ANY` for none.

    Raises:
        StalledError: the user does not exist.
    """
    if owner is None:
        return ANY
    try:
        return int(owner) if owner.isdecimal() else pwd.getpwnam(owner).pw_uid
    except KeyError as error:
        raise StalledError(
            f"user {owner} does not exist", code="FIL105", fix="create the user, or change `owner`"
        ) from error


def gid_of(group: str | None) -> int:
    """The gid of a name or number; `ANY` for none.

    Raises:
        StalledError: the group does not exist.
    """
    if group is None:
        return ANY
    try:
        return int(group) if group.isdecimal() else grp.getgrnam(group).gr_gid
    except KeyError as error:
        raise StalledError(
            f"group {group} does not exist", code="FIL106", fix="create the group, or change `group`"
        ) from error


def user_of(uid: int) -> str:
    """The name of a uid, or the number where it has none."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)


def group_of(gid: int) -> str:
    """The name of a gid, or the number where it has none."""
    with contextlib.suppress(KeyError):
        return grp.getgrgid(gid).gr_name
    return str(gid)


def owner_of(owner: str | None, group: str | None) -> tuple[int, int]:
    """The uid and gid of two names or numbers; raises as `uid_of` and `gid_of`."""
    return uid_of(owner), gid_of(group)


def owner_changes(owner: str | None, group: str | None, found: tuple[int, int]) -> Iterator[Change]:
    """How the uid and gid `found` differ from intent; raises as `uid_of` and `gid_of`."""
    if owner is not None and found[0] != uid_of(owner):
        yield Change("owner", owner, user_of(found[0]))
    if group is not None and found[1] != gid_of(group):
        yield Change("group", group, group_of(found[1]))
