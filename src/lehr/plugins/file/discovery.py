"""Drafts `lehr.File` from existing files. Blocks; read-only."""

from __future__ import annotations

import base64
import glob
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from lehr.base.errors import StalledError
from lehr.model.asset import MAX_ASSET_BYTES
from lehr.plugins.file import disk
from lehr.plugins.file.disk import DiskEntry, EntryKind
from lehr.plugins.file.owners import group_of, user_of
from lehr.plugins.file.payload import FILE, path_problem
from lehr.sdk import plugin
from lehr.sdk.discovered_ids import Ids

MOST_FILES = 1000
_MOST_HIDDEN = 100_000

LINK = f"it is a symbolic link; a {FILE} must be a regular file"
TWICE = "it is reached through a symbolic link; the draft uses its real path"
HIDDEN = "its name begins with a dot, and patterns skip such names"

_MOST_BYTES = MAX_ASSET_BYTES * 3 // 4  # as base64, and with the rest of the asset, they still fit
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]*")


def matching(base: str, query: Sequence[str]) -> list[str]:
    """Paths of the files in `query`: paths and shell patterns; relative ones below `base`.

    Skips directories that a pattern matches.

    Raises:
        StalledError: a pattern matches nothing, a path is a directory, or there are too many.
    """
    found: dict[str, None] = {}
    for pattern in query:
        matches = sorted(glob.glob(pattern, root_dir=base, recursive=True, include_hidden=False))
        files = [
            path for path in matches if disk.kind_of(os.path.join(base, path)) is not EntryKind.DIRECTORY
        ]
        if matches == [pattern] and not files:
            raise StalledError(
                f"{pattern} is a directory",
                code="FIL101",
                fix=f"name files, or write '{pattern.rstrip('/')}/**'",
            )
        if not files:
            raise StalledError(
                f"no file matches {pattern}",
                code="FIL102",
                why=f"relative paths start from {base}",
                fix="correct it",
            )
        found.update((_shown(base, path), None) for path in files)
    if len(found) > MOST_FILES:
        raise StalledError(
            f"{len(found):,} files match, more than {MOST_FILES:,}",
            code="FIL103",
            why="each draft needs a review",
            fix="adopt them in several runs",
        )
    return list(found)


def hidden(base: str, query: Sequence[str]) -> list[str]:
    """Paths that patterns skip because a name begins with a dot, relative to `base` if below it.

    Of a hidden directory, only itself.
    """
    found: dict[str, None] = {}
    for pattern in query:
        if not glob.has_magic(pattern):
            continue
        matches = glob.iglob(pattern, root_dir=base, recursive=True, include_hidden=True)
        shown = set(glob.glob(pattern, root_dir=base, recursive=True, include_hidden=False))
        for path in itertools.islice(matches, _MOST_HIDDEN):
            if path not in shown and (top := _hidden_part(path)):
                found[_shown(base, top)] = None
    return sorted(found)


def _hidden_part(path: str) -> str:
    """`path` up to its first part that begins with a dot; empty if none does."""
    parts = path.split("/")
    for end, part in enumerate(parts, 1):
        if part.startswith(".") and part not in (".", ".."):
            return "/".join(parts[:end])
    return ""


def skipped(base: str, paths: Sequence[str]) -> Iterator[plugin.Found]:
    """Report files that are not drafted because a name begins with a dot, so none seems adopted."""
    ids = Ids()
    for path in paths:
        folder = disk.kind_of(os.path.join(base, path)) is EntryKind.DIRECTORY
        name = f"'{path}/**'" if folder else path
        yield plugin.Found(
            id=ids.propose(f"file/{path}"),
            type=FILE,
            payload={"path": path},
            notes=(f"to adopt it, name it: lehr adopt {FILE} {name}",),
            obstacle=HIDDEN,
        )


def drafts(base: str, paths: Sequence[str]) -> Iterator[plugin.Found]:
    """A draft of each of `paths`; if several lead to one file, for the path without links."""
    ids = Ids()
    real = {path: _real(base, path) for path in paths}
    straight = {real[path] for path in paths if real[path] == os.path.normpath(os.path.join(base, path))}
    for path in paths:
        full = os.path.join(base, path)
        payload, notes, obstacle = _draft(full, path)
        if real[path] != os.path.normpath(full) and real[path] in straight and not obstacle:
            payload, notes, obstacle = {"path": path}, (f"it is {real[path]}",), TWICE
        yield plugin.Found(
            id=ids.propose(f"file/{path}"), type=FILE, payload=payload, notes=notes, obstacle=obstacle
        )


def _real(base: str, path: str) -> str:
    folder, name = os.path.split(os.path.join(os.path.realpath(base), path))
    return os.path.join(os.path.realpath(folder), name)


def _shown(base: str, path: str) -> str:
    """Relative where it lies below `base`, otherwise absolute; without `.` and `..`."""
    full = os.path.normpath(os.path.join(base, path))
    relative = os.path.relpath(full, base)
    return full if os.path.isabs(path) or relative.startswith("..") else relative


def _draft(full: str, path: str) -> tuple[dict[str, Any], tuple[str, ...], str]:
    payload: dict[str, Any] = {"path": path}
    try:
        found = disk.look(full)
    except OSError as error:
        return payload, (), f"it cannot be read: {error.strerror}"
    problem = path_problem(path)
    if problem is not None:
        return payload, (), f"its path {problem}"
    if found is None:
        return payload, (), "it no longer exists"
    if found.kind is EntryKind.SYMLINK:
        return payload, (f"it leads to {os.readlink(full)}",), LINK
    if found.kind is not EntryKind.FILE:
        return payload, (), f"it is a {found.kind}; a {FILE} must be a regular file"
    if found.size > _MOST_BYTES:
        size = f"{found.size:,} bytes"
        return payload, (), f"it has {size}, more than an asset can hold; name it by digest instead"
    payload |= _content(found.data) | _rights(found)
    left = [place for place in (disk.temporary_of(full), disk.fenced_of(full)) if disk.kind_of(place)]
    return payload, _notes(found), f"Lehr would remove {', '.join(left)}" if left else ""


def _content(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if _UNPRINTABLE.search(text):
        return {"content_base64": base64.b64encode(data).decode()}
    return {"content": text}


def _rights(found: DiskEntry) -> dict[str, str]:
    """Mode, owner and group, where they differ from those of a file that Lehr creates."""
    rights = {} if found.mode == 0o644 else {"mode": f"{found.mode:04o}"}
    if found.uid != os.geteuid():
        rights["owner"] = _named(user_of(found.uid), found.uid)
    if found.gid != os.getegid():
        rights["group"] = _named(group_of(found.gid), found.gid)
    return rights


def _named(name: str, number: int) -> str:
    return name if _NAME.fullmatch(name) and len(name) <= 64 else str(number)


def _notes(found: DiskEntry) -> tuple[str, ...]:
    if found.mode & 0o077 == 0:
        return ("only its owner can read it now; everyone who reads intent could if it were adopted",)
    return ()
