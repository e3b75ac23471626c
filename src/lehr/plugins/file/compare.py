"""Compares a file with its intent. Blocks.

Never shows the content of files, which may be a secret. Shows sizes, digests and numbers of lines, except for
content that is known to be secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lehr.base.digest import digest_bytes, short
from lehr.model.diff import Change, Goal
from lehr.plugins.file import disk
from lehr.plugins.file.disk import DiskEntry, EntryKind
from lehr.plugins.file.owners import owner_changes
from lehr.plugins.file.payload import Intended
from lehr.sdk.secrets import DIFFERS


def changes(path: str, intended: Intended, goal: Goal) -> Iterator[Change]:
    """Everything at and next to `path` that does not match `goal`.

    Raises:
        OSError: it cannot be read.
        StalledError: the owner or group does not exist.
    """
    if disk.kind_of(disk.temporary_of(path)) is not None:
        yield Change("temporary", None, "left by an unfinished push")
    if goal is Goal.PRESENT:
        yield from _content_changes(intended, disk.look(path))
    elif (kind := disk.kind_of(path)) is not None:
        yield Change("type", None, kind.value)
    if goal is not Goal.FENCED and disk.kind_of(disk.fenced_of(path)) is not None:
        yield Change("fenced", None, EntryKind.FILE.value)


def _content_changes(intended: Intended, found: DiskEntry | None) -> Iterator[Change]:
    file = intended.file
    if found is None:
        yield Change("content", _wanted(intended), None)
        return
    if found.kind is not EntryKind.FILE:
        yield Change("type", EntryKind.FILE.value, found.kind.value)
        return
    if intended.secret is not None and not intended.secret.equals(found.data):
        yield Change("content", _wanted(intended), DIFFERS)
    elif intended.secret is None and found.data != intended.data:
        observed = _described(found.data, found.size)
        observed["line"] = _first_line_that_differs(intended.data, found.data)
        yield Change("content", _wanted(intended), observed)
    if found.mode != file.permissions:
        yield Change("mode", f"{file.permissions:04o}", f"{found.mode:04o}")
    yield from owner_changes(file.owner, file.group, (found.uid, found.gid))


def _wanted(intended: Intended) -> dict[str, Any]:
    if intended.file.content_secret is not None:
        return {"secret": intended.file.content_secret.secret}
    return _described(intended.data, len(intended.data))


def _described(data: bytes, size: int) -> dict[str, Any]:
    """Content without its text, which may be a secret. A huge file is not read for its digest."""
    return {"size": size, "digest": short(digest_bytes(data)) if size == len(data) else None}


def _first_line_that_differs(intended: bytes, observed: bytes) -> int:
    """Counts from 1."""
    ours, theirs = intended.split(b"\n"), observed.split(b"\n")
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if mine != other:
            return number
    return min(len(ours), len(theirs)) + 1
