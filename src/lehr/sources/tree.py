"""Snapshots read from git trees, straight from the object store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec
import pygit2

from lehr.base.errors import StalledError, TransientError
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry

_DIRECTORY = b"40000"
_FILE_PREFIX = b"100"  # 100644, 100755 and, in old repositories, 100664
_MAX_DEPTH = 64


class Directory(msgspec.Struct, frozen=True):
    """A directory and all below it.

    Attributes:
        tree: git's id of it.
        files: all files below it, by path from the root of the snapshot.
        skipped: paths of symbolic links and submodules.
        inner: the directories in it, by name.
    """

    tree: bytes
    files: Mapping[str, FileEntry]
    skipped: tuple[str, ...]
    inner: Mapping[str, Directory]


class TreeReader:
    """Lists trees. Reads again only what differs from the tree it listed last."""

    def __init__(self, repository: pygit2.Repository) -> None:
        self._objects = repository.odb
        self._last: Directory | None = None

    def list(self, tree: bytes) -> Directory:
        """Everything below `tree`.

        Raises:
            TransientError: an object is missing or damaged.
            StalledError: the tree holds names that cannot be paths.
        """
        self._last = self._list(tree, "", self._last, 0)
        return self._last

    def read(self, content_id: str) -> bytes:
        """The content of a file.

        Raises:
            TransientError: the object is missing or damaged.
        """
        return self._object(pygit2.Oid(hex=content_id))

    def _object(self, id: pygit2.Oid) -> bytes:
        try:
            return bytes(self._objects.read(id)[1])
        except (KeyError, pygit2.GitError) as err:
            raise _damaged(id, err) from err

    def _size(self, id: bytes) -> int:
        oid = pygit2.Oid(raw=id)
        try:
            return int(self._objects.read_header(oid)[1])
        except (KeyError, pygit2.GitError) as err:
            raise _damaged(oid, err) from err

    def _list(self, tree: bytes, prefix: str, last: Directory | None, depth: int) -> Directory:
        if last is not None and last.tree == tree:
            return last
        if depth > _MAX_DEPTH:
            raise StalledError(f"directories are nested too deeply: {prefix}", fix="make them flatter")
        known: Mapping[str, FileEntry] = last.files if last else {}
        before: Mapping[str, Directory] = last.inner if last else {}
        files: dict[str, FileEntry] = {}
        skipped: list[str] = []
        inner: dict[str, Directory] = {}
        for mode, name, id in _entries(self._object(pygit2.Oid(raw=tree)), prefix):
            path = prefix + name
            if mode == _DIRECTORY:
                directory = self._list(id, path + "/", before.get(name), depth + 1)
                inner[name] = directory
                files.update(directory.files)
                skipped.extend(directory.skipped)
            elif mode.startswith(_FILE_PREFIX):
                content_id = id.hex()
                entry = known.get(path)
                if entry is None or entry.content_id != content_id:
                    entry = FileEntry(path, content_id, self._size(id))
                files[path] = entry
            else:
                skipped.append(path)
        return Directory(tree, MappingProxyType(files), tuple(skipped), inner)


class TreeSnapshot:
    """The files of a git tree, as `lehr.sdk.source.Snapshot`. Lists them when first asked."""

    def __init__(self, revision: SourceRevision, tree: bytes, reader: TreeReader) -> None:
        self._revision = revision
        self._tree = tree
        self._reader = reader
        self._directory: Directory | None = None

    @property
    def revision(self) -> SourceRevision:
        return self._revision

    @property
    def skipped(self) -> tuple[str, ...]:
        """Symbolic links and submodules, which are not part of the snapshot."""
        return self._listed().skipped

    def files(self) -> Mapping[str, FileEntry]:
        return self._listed().files

    def read(self, path: str) -> bytes:
        return self._reader.read(self.files()[path].content_id)

    def _listed(self) -> Directory:
        if self._directory is None:
            self._directory = self._reader.list(self._tree)
        return self._directory


def _entries(content: bytes, prefix: str) -> Iterator[tuple[bytes, str, bytes]]:
    """Mode, name and id of each entry of a tree object.

    Parsed here because pygit2 makes an object for each entry, which takes half as long again.
    """
    start = 0
    while start < len(content):
        space = content.index(b" ", start)
        end = content.index(b"\0", space)
        raw_name = content[space + 1 : end]
        try:
            name = raw_name.decode()
        except UnicodeDecodeError as err:
            raise StalledError(
                f"a file name is not UTF-8: {prefix}{raw_name!r}", fix="rename the file"
            ) from err
        if name in {"", ".", ".."} or "/" in name:
            raise StalledError(
                f"a tree holds the name {name!r} in {prefix or 'its root'}",
                why="no file can have it, so the repository is damaged or forged",
                fix="rewrite the commit",
            )
        yield content[start:space], name, content[end + 1 : end + 21]
        start = end + 21


def _damaged(id: pygit2.Oid, err: Exception) -> TransientError:
    return TransientError(
        f"the object {id} cannot be read",
        why=f"the mirror in the state directory is damaged: {err}",
        fix="move the mirror away: it is fetched again",
    )
