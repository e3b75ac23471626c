"""Snapshots held in memory, and kept as git trees once an incarnation was made from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pygit2

from lehr.base.digest import short
from lehr.base.errors import StalledError, TransientError, raised_as
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry
from lehr.sources.hints import Hints
from lehr.sources.mirror import Mirror
from lehr.sources.tree import TreeSnapshot

_HELD = 3
_FILE_MODE = pygit2.enums.FileMode.BLOB


def entry_of(path: str, content: bytes) -> FileEntry:
    """The entry of a file; content ids are git blob ids."""
    return FileEntry(path, str(pygit2.hash(content)), len(content))


class HeldSnapshot:
    """A past state of files, held in memory.

    Attributes:
        skipped: symbolic links and special files, which are not part of the snapshot.
    """

    def __init__(
        self,
        revision: SourceRevision,
        contents: Mapping[str, bytes],
        entries: Mapping[str, FileEntry] | None = None,
        skipped: tuple[str, ...] = (),
    ) -> None:
        """Hold `contents` by path, with their `entries` if known."""
        if entries is None:
            entries = {path: entry_of(path, content) for path, content in contents.items()}
        self.revision = revision
        self._contents = contents
        self._files = MappingProxyType(dict(entries))
        self.skipped = skipped

    def files(self) -> Mapping[str, FileEntry]:
        return self._files

    def read(self, path: str) -> bytes:
        return self._contents[path]


class Archive:
    """The last few snapshots of a source, in memory, and those kept in a mirror.

    Args:
        path: where the contents of kept revisions are or will be stored.
    """

    def __init__(self, path: Path) -> None:
        self._mirror = Mirror(path)
        self._held: dict[str, HeldSnapshot] = {}

    def held(self, revision: str) -> HeldSnapshot | None:
        """The snapshot of a revision if it is in memory; else None."""
        return self._held.get(revision)

    def hold(self, snapshot: HeldSnapshot) -> None:
        """Hold it in memory as the newest."""
        revision = snapshot.revision.revision
        self._held.pop(revision, None)
        self._held[revision] = snapshot  # the newest is last
        while len(self._held) > _HELD:
            del self._held[next(iter(self._held))]

    def kept(self, revision: SourceRevision) -> HeldSnapshot | TreeSnapshot | None:
        """The snapshot of a revision that is held or was kept; else None."""
        held = self._held.get(revision.revision)
        if held is not None:
            return held
        tree = self._mirror.kept(revision.revision)
        if tree is None:
            return None
        return TreeSnapshot(revision, self._mirror.root(tree), self._mirror.reader)

    def at(self, revision: SourceRevision) -> HeldSnapshot | TreeSnapshot:
        """As `kept`.

        Raises:
            StalledError: it was neither held nor kept.
        """
        found = self.kept(revision)
        if found is None:
            raise _not_kept(revision)
        return found

    def keep(self, revision: SourceRevision) -> None:
        """Store the contents of a revision that is held. Idempotent.

        Survives a crash of this program. After a crash of the machine, the objects written
        last may be damaged; that is noticed when they are read.

        Raises:
            TransientError: the archive could not be written.
            StalledError: the revision is not held in memory any more.
        """
        if self._mirror.kept(revision.revision) is not None:
            return
        snapshot = self._held.get(revision.revision)
        if snapshot is None:
            raise _not_kept(revision)
        what = f"the contents of {revision.source} could not be stored"
        fix = "check that the state directory is writable and has free space"
        with raised_as(TransientError, what, code="SRC101", fix=fix, on=(OSError, pygit2.GitError)):
            tree = self._store(snapshot)
        self._mirror.keep(revision.revision, tree)

    def _store(self, snapshot: HeldSnapshot) -> str:
        repository = self._mirror.repository
        objects = repository.odb
        index = pygit2.Index()
        for path, entry in snapshot.files().items():
            id = pygit2.Oid(hex=entry.content_id)
            if not objects.exists(id):
                repository.create_blob(snapshot.read(path))
            index.add(pygit2.IndexEntry(path, id, _FILE_MODE))
        return str(index.write_tree(repository))


def _not_kept(revision: SourceRevision) -> StalledError:
    return StalledError(
        f"the revision {short(revision.revision)} of {revision.source} can no longer be read",
        code="SRC102",
        why="it was not stored, and the source has changed since",
        fix="choose a newer incarnation",
    )


class ArchivedSource:
    """The common part of sources that keep their contents in an archive and give hints at intervals."""

    def __init__(self, archive: Archive, hints: Hints) -> None:
        self._archive = archive
        self._hints = hints

    def at(self, revision: SourceRevision) -> HeldSnapshot | TreeSnapshot:
        """The snapshot of an earlier revision of this source.

        Raises:
            StalledError: it was not kept.
        """
        return self._archive.at(revision)

    def keep(self, revision: SourceRevision) -> None:
        """Store the contents of a revision that `newest` returned recently: see `Archive.keep`."""
        self._archive.keep(revision)

    def changes(self) -> AsyncIterator[None]:
        """A hint whenever there may be something new."""
        return self._hints.changes()
