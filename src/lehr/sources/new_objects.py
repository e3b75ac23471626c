"""The objects that a repository has got since a commit, if they are few: copied without running git.

A commit of a few files makes a handful of objects. `git fetch` runs half a dozen programs to copy them. While
libgit2 wrote them, no other thread could run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pygit2

from lehr.base.durable import sync

_MOST_COMMITS = 20
_MOST_OBJECTS = 100
_MOST_BYTES = 10_000_000
_MOST_DEPTH = 64

_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
_DIRECTORY = b"40000"
_SUBMODULE = b"160000"


_KINDS = {
    pygit2.enums.ObjectType.COMMIT: b"commit",
    pygit2.enums.ObjectType.TREE: b"tree",
    pygit2.enums.ObjectType.BLOB: b"blob",
}
_LEVEL = 1
_MODE = 0o444


class NewObject(NamedTuple):
    """A git object: its id, and its content behind git's header."""

    id: pygit2.Oid
    content: bytes


class _UnsuitedError(Exception):
    """The objects are too many, or git itself has to find out which they are."""


def new_objects(repository: pygit2.Repository, tip: str, known: str) -> list[NewObject] | None:
    """The objects of the commit `tip` that its ancestor `known` lacks, each before those that name it.

    None if git has to fetch them: they are many or large, `known` is not an ancestor in a line without
    merges, or something is missing or damaged.
    """
    try:
        return _NewObjects(repository).since(known, tip)
    except (_UnsuitedError, KeyError, ValueError, pygit2.GitError):
        return None


def write_objects(objects: Sequence[NewObject], folder: Path) -> None:
    """Write objects as files into git's folder `objects`, in this order, and sync them.

    Raises:
        OSError: not all of them could be written.
        ValueError: one does not have its id.
    """
    written: dict[Path, None] = {}
    for item in objects:
        name = hashlib.sha1(item.content, usedforsecurity=False).hexdigest()
        if name != str(item.id):
            raise ValueError(f"the object {item.id} is damaged")
        path = folder / name[:2] / name[2:]
        with contextlib.suppress(FileNotFoundError):
            os.utime(path)  # so that git does not prune it before something refers to it
            continue
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir()
            written[folder] = None
        _write(path, zlib.compress(item.content, _LEVEL))
        written[path.parent] = None
    for changed in written:
        sync(changed)


def _write(path: Path, content: bytes) -> None:
    # Git removes files with such names, once they are old.
    descriptor, temporary = tempfile.mkstemp(prefix="tmp_obj_", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), _MODE)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


class _NewObjects:
    def __init__(self, repository: pygit2.Repository) -> None:
        self._repository = repository
        self._objects = repository.odb
        self._found: dict[pygit2.Oid, NewObject] = {}
        self._bytes = 0

    def since(self, known: str, tip: str) -> list[NewObject]:
        line = self._line(pygit2.Oid(hex=known), pygit2.Oid(hex=tip))
        before = self._commit(line[-1]).tree_id
        for id in reversed(line[:-1]):
            tree = self._commit(id).tree_id
            self._tree(tree, before, 0)
            self._add(id)
            before = tree
        return list(self._found.values())

    def _line(self, known: pygit2.Oid, tip: pygit2.Oid) -> list[pygit2.Oid]:
        """The commits from `tip` back to `known`, both included."""
        line = [tip]
        while line[-1] != known:
            parents = self._commit(line[-1]).parent_ids
            if len(parents) != 1 or len(line) > _MOST_COMMITS:
                raise _UnsuitedError
            line.append(parents[0])
        return line

    def _commit(self, id: pygit2.Oid) -> pygit2.Commit:
        return self._repository[id].peel(pygit2.Commit)

    def _tree(self, id: pygit2.Oid, before: pygit2.Oid | None, depth: int) -> None:
        """Add a tree and what it holds, except what the tree `before` holds in the same place."""
        if id == before or id in self._found:
            return
        if depth > _MOST_DEPTH:
            raise _UnsuitedError
        known = {} if before is None else self._entries(before)
        for name, (mode, child) in self._entries(id).items():
            if known.get(name) == (mode, child) or mode == _SUBMODULE:
                continue
            oid = pygit2.Oid(raw=child)
            if mode == _DIRECTORY:
                old_mode, old = known.get(name, (b"", b""))
                self._tree(oid, pygit2.Oid(raw=old) if old_mode == _DIRECTORY else None, depth + 1)
            else:
                self._add(oid)
        self._add(id)

    def _entries(self, id: pygit2.Oid) -> dict[bytes, tuple[bytes, bytes]]:
        """Mode and id of what a tree holds, by name."""
        type, content = self._objects.read(id)
        found = _ENTRY.findall(content)
        read = sum(len(mode) + len(name) + 22 for mode, name, _child in found)
        if type != pygit2.enums.ObjectType.TREE or read != len(content):
            raise _UnsuitedError
        return {name: (mode, child) for mode, name, child in found}

    def _add(self, id: pygit2.Oid) -> None:
        if id in self._found:
            return
        _type, size = self._objects.read_header(id)
        self._bytes += size
        if self._bytes > _MOST_BYTES or len(self._found) >= _MOST_OBJECTS:
            raise _UnsuitedError
        type, content = self._objects.read(id)
        self._found[id] = NewObject(id, b"%s %d\0%s" % (_KINDS[type], len(content), content))
