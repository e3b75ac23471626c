"""Reads an incarnation's inputs again: its files (also by content id), and who last changed each line."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import pygit2

from lehr.model.incarnation import SourceRevision
from lehr.model.provenance import Commit
from lehr.sdk.source import FileEntry
from lehr.sources.mirror import Mirror, mirrors
from lehr.sources.tree import TreeSnapshot


def kept_content(state: Path, content_id: str) -> bytes | None:
    """The content that `content_id` names, if any mirror in the state folder has it.

    Content ids are git's in all kinds of sources: any mirror that has it has the same content.

    Args:
        state: the state folder.
        content_id: as in `lehr.sdk.source.FileEntry`.
    """
    try:
        id = pygit2.Oid(hex=content_id)
    except ValueError:
        return None
    for repository in mirrors(state):
        with contextlib.suppress(KeyError, pygit2.GitError):  # another mirror may have it
            return bytes(repository.odb.read(id)[1])
    return None


def content_at(path: Path, content_id: str) -> bytes | None:
    """The content of the file at `path`, if `content_id` names it: for unpublished files."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if str(pygit2.hash(content)) == content_id else None


_MIRRORS = "sources"


class PastRevision:
    """A revision that was kept when an incarnation was made from it. Implements `lehr.query.joined.Past`."""

    def __init__(self, mirror: Mirror, revision: SourceRevision, target: str) -> None:
        """Read the commit or tree `target` of `mirror`, which `revision` names."""
        self._repository = mirror.repository
        self._commit = _as_commit(mirror.repository[target])
        self._path = "" if self._commit is None else _path(revision.source, self._commit)
        self._snapshot = TreeSnapshot(revision, mirror.root(target, self._path), mirror.reader)

    @property
    def commit(self) -> Commit | None:
        return None if self._commit is None else _commit(self._commit)

    def files(self) -> Mapping[str, FileEntry]:
        return self._snapshot.files()

    def read(self, path: str) -> bytes:
        return self._snapshot.read(path)

    def last_change(self, path: str, line: int = 0) -> Commit | None:
        if self._commit is None:
            return None
        inside = f"{self._path}/{path}" if self._path else path
        try:
            found = last_change(self._repository, self._commit, inside, line)
        except (KeyError, ValueError, pygit2.GitError):
            return None  # history is not whole
        # Where history was cut off, the commit at the cut appears to have changed everything.
        return None if found is None or str(found.id) in self._cut_off() else _commit(found)

    def _cut_off(self) -> set[str]:
        try:
            return set((Path(self._repository.path) / "shallow").read_text().split())
        except FileNotFoundError:
            return set()


def past_revision(state: Path, revision: SourceRevision) -> PastRevision | None:
    """The stored `revision` in the state folder `state`; None if it is not stored.

    A refused commit is not kept, but it remains in the mirror until git collects it.

    Raises:
        StalledError: the kept data is damaged.
    """
    for folder in sorted((state / _MIRRORS).glob("*.git")):
        mirror = Mirror(folder)
        target = mirror.kept(revision.revision) or _fetched(mirror, revision.revision)
        if target is not None:
            return PastRevision(mirror, revision, target)
    return None


def _fetched(mirror: Mirror, revision: str) -> str | None:
    try:
        return revision if pygit2.Oid(hex=revision) in mirror.repository else None
    except ValueError:
        return None  # not a commit, but a version, for example


def _as_commit(found: pygit2.Object) -> pygit2.Commit | None:
    try:
        return found.peel(pygit2.Commit)
    except (ValueError, pygit2.GitError):
        return None  # a plain directory is kept as a tree


def _path(source: str, commit: pygit2.Commit) -> str:
    """The directory in the repository that `source` names (`git:LOCATION[#BRANCH][:PATH]`); "" for all."""
    path = source.rpartition(":")[2]
    try:
        return path if path and commit.tree[path].type == pygit2.enums.ObjectType.TREE else ""
    except (KeyError, ValueError):
        return ""  # the text after the last colon is part of the location


def last_change(
    repository: pygit2.Repository, newest: pygit2.Commit, path: str, line: int = 0
) -> pygit2.Commit | None:
    """The commit that gave a file, or a line of it, its content at `newest`.

    Follows parents with the same file, as `git log` does, and for a line, parents with that line, even if the
    file was renamed. Unlike libgit2's blame, it never attributes the line to another file, and it reads only
    a few trees of most commits.

    Args:
        line: counted from 1; 0 means the whole file.

    Returns:
        None if `newest` has no such file.
    """
    commit, blob = newest, _blob(newest, path)
    while blob is not None:
        unchanged = next((parent for parent in commit.parents if _blob(parent, path) == blob), None)
        if unchanged is not None:
            commit = unchanged
            continue
        earlier = _with_line(repository, commit, path, line) if line else None
        if earlier is None:
            return commit
        commit, path, line = earlier
        blob = _blob(commit, path)
    return None


def _with_line(
    repository: pygit2.Repository, commit: pygit2.Commit, path: str, line: int
) -> tuple[pygit2.Commit, str, int] | None:
    """A parent that has the line, with the file's path and the line's number there; None if it is new."""
    new = repository[commit.tree[path].id].peel(pygit2.Blob)
    for parent in commit.parents:
        before = path if _blob(parent, path) is not None else _renamed(repository, parent, commit, path)
        if before is None:
            continue
        old = repository[parent.tree[before].id].peel(pygit2.Blob)
        number = _number_before(pygit2.Patch.create_from(old, new, context_lines=0), line)
        if number is not None:
            return parent, before, number
    return None


def _renamed(
    repository: pygit2.Repository, parent: pygit2.Commit, commit: pygit2.Commit, path: str
) -> str | None:
    """The name of `path` in `parent`; None if it did not exist."""
    diff = repository.diff(parent, commit)
    diff.find_similar(pygit2.enums.DiffFind.FIND_RENAMES)
    for delta in diff.deltas:
        if delta.status == pygit2.enums.DeltaStatus.RENAMED and delta.new_file.path == path:
            return delta.old_file.path
    return None


def _number_before(patch: pygit2.Patch, line: int) -> int | None:
    """The number of a newer file's line in the older file; None if it does not exist there."""
    shift = 0
    for hunk in patch.hunks:
        # A hunk that only deletes names the line before the place.
        first = hunk.new_start if hunk.new_lines else hunk.new_start + 1
        if line < first:
            break
        if line < first + hunk.new_lines:
            return None
        shift += hunk.old_lines - hunk.new_lines
    return line + shift


def _blob(commit: pygit2.Commit, path: str) -> pygit2.Oid | None:
    try:
        return commit.tree[path].id
    except KeyError:
        return None


def _commit(found: pygit2.Commit) -> Commit:
    author, subject = found.author, found.message.strip().partition("\n")[0]
    return Commit(str(found.id), f"{author.name} <{author.email}>", float(author.time), subject)
