"""Compares a file with its intent. Blocks.

Never shows the content of files, which may be a secret and would be stored with each decision. Shows sizes,
digests and numbers of lines, except for content that is known to be secret. Plans show texts (`texts`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from lehr.base.digest import digest_bytes, short
from lehr.base.errors import StalledError
from lehr.model.diff import Change, Goal
from lehr.plugins.file import disk
from lehr.plugins.file.disk import DiskEntry, EntryKind
from lehr.plugins.file.owners import owner_changes
from lehr.plugins.file.payload import Intended
from lehr.sdk.secrets import DIFFERS


class Found(NamedTuple):
    """Entries at and next to a path.

    Attributes:
        entry: the entry at the path; with the content of a file only if it should be there.
        temporary: whether an unfinished push has left something.
        fenced: whether there is something that was moved aside.
    """

    entry: DiskEntry | None
    temporary: bool
    fenced: bool


def look(path: str, intended: Intended, goal: Goal) -> Found:
    """The entries at and next to `path`.

    Raises:
        OSError: it cannot be read.
    """
    temporary = disk.kind_of(disk.temporary_of(path)) is not None
    if goal is Goal.PRESENT:
        entry = disk.look(path, as_blob=intended.file.workspace_file is not None)
    else:
        kind = disk.kind_of(path)
        entry = None if kind is None else DiskEntry(kind)
    return Found(entry, temporary, disk.kind_of(disk.fenced_of(path)) is not None)


def differences(found: Found, intended: Intended, goal: Goal) -> Iterator[Change]:
    """Everything that was found and does not match `goal`.

    Raises:
        StalledError: the owner or group does not exist.
    """
    if found.temporary:
        yield Change("temporary", None, "left by an unfinished push")
    if goal is Goal.PRESENT:
        yield from _content_changes(intended, found.entry)
    elif found.entry is not None:
        yield Change("type", None, found.entry.kind.value)
    if found.fenced and goal is not Goal.FENCED:
        yield Change("fenced", None, EntryKind.FILE.value)


def changes(path: str, intended: Intended, goal: Goal) -> Iterator[Change]:
    """Everything at and next to `path` that does not match `goal`.

    Raises:
        OSError: it cannot be read.
        StalledError: the owner or group does not exist.
    """
    return differences(look(path, intended, goal), intended, goal)


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
    elif file.workspace_file is not None and found.blob != file.workspace_file.digest:
        observed = {"size": found.size, "digest": found.blob and short(found.blob)}
        yield Change("content", _wanted(intended), observed | _line_of_source(intended, found))
    elif file.data is not None and found.data != file.data:
        observed = _described(found.data, found.size)
        observed["line"] = _first_line_that_differs(file.data, found.data)
        yield Change("content", _wanted(intended), observed)
    if found.mode != file.permissions:
        yield Change("mode", f"{file.permissions:04o}", f"{found.mode:04o}")
    yield from owner_changes(file.owner, file.group, (found.uid, found.gid))


def _wanted(intended: Intended) -> dict[str, Any]:
    if intended.file.content_secret is not None:
        return {"secret": intended.file.content_secret.secret}
    source = intended.file.workspace_file
    if source is not None:
        return {"size": source.size, "digest": source.digest and short(source.digest), "file": source.file}
    data = intended.file.data or b""
    return _described(data, len(data))


def _described(data: bytes, size: int) -> dict[str, Any]:
    """Content without its text, which may be a secret. A huge file is not read for its digest."""
    return {"size": size, "digest": short(digest_bytes(data)) if size == len(data) else None}


def _line_of_source(intended: Intended, found: DiskEntry) -> dict[str, Any]:
    """The first line that differs; nothing for content that is large, not text or not available."""
    source = intended.file.workspace_file
    if source is None or max(source.size or 0, found.size) > disk.MOST_READ or b"\0" in found.data:
        return {}
    with contextlib.suppress(StalledError):
        return {"line": _first_line_that_differs(intended.data(), found.data)}
    return {}


def _first_line_that_differs(intended: bytes, observed: bytes) -> int:
    """Counts from 1."""
    ours, theirs = intended.split(b"\n"), observed.split(b"\n")
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if mine != other:
            return number
    return min(len(ours), len(theirs)) + 1
