"""Snapshots of git trees, read directly from the object store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import pygit2

from lehr.base.errors import StalledError, TransientError
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry

_DIRECTORY = b"40000"
_FILE_PREFIX = b"100"  # 100644, 100755 and, in old repositories, 100664
_MAX_DEPTH = 64
_MAX_PATH = 4_096
_MAX_ENTRIES = 1_000_000
_MAX_BYTES = 4_000_000_000
_MAX_TREE_BYTES = 64_000_000
_MAX_PLACES = 8 * _MAX_ENTRIES


class Weight(NamedTuple):
    """The size of a directory tree, computed without listing repeated subtrees twice.

    Attributes:
        entries: files, directories, links and submodules.
        places: the same, each counted once per directory above it: the cost of a listing.
        path: characters in the longest path.
        depth: depth of directories.
    """

    entries: int = 0
    places: int = 0
    path: int = 0
    depth: int = 0


class Directory(msgspec.Struct, frozen=True):
    """A directory and everything below it.

    Attributes:
        tree: its git id.
        files: all files below it, by path from the root of the snapshot.
        skipped: paths of symbolic links and submodules.
        inner: the directories in it, by name.
        size: bytes in all files.
    """

    tree: bytes
    files: Mapping[str, FileEntry]
    skipped: tuple[str, ...]
    inner: Mapping[str, Directory]
    size: int


class TreeReader:
    """Lists trees. Rereads only what differs from the last listed tree."""

    def __init__(self, repository: pygit2.Repository) -> None:
        self._objects = repository.odb
        self._last: Directory | None = None
        self._weights: dict[bytes, Weight] = {}
        self._refused: tuple[bytes, StalledError] | None = None

    def list(self, tree: bytes) -> Directory:
        """Everything below `tree`.

        Raises:
            TransientError: an object is missing or damaged.
            StalledError: the tree holds names that cannot be paths, or more than a source may hold.
        """
        if self._refused is not None and self._refused[0] == tree:
            raise self._refused[1]
        try:
            self._weigh(tree)
            listed = self._list(tree, "", self._last)
            if listed.size > _MAX_BYTES:
                raise _too_much(f"files of {listed.size:,} bytes", f"{_MAX_BYTES:,}")
        except StalledError as error:
            self._refused = tree, error
            raise
        self._last = listed
        return listed

    def _weigh(self, tree: bytes) -> None:
        """Refuse an oversized tree before it is listed.

        A few trees that contain each other repeatedly can make more paths than fit in memory. So each tree is
        read once, however often it occurs, and only counted. Invariant: every listing is bounded.
        """
        known = self._weights
        self._weights = {}
        weight = self._weight(tree, known, "", 0)
        if weight.entries > _MAX_ENTRIES:
            raise _too_much(f"{_number(weight.entries)} files and directories", f"{_MAX_ENTRIES:,}")
        if weight.places > _MAX_PLACES:
            raise _too_much("too many files too deep in directories", f"{_MAX_PLACES:,} in all directories")
        if weight.path > _MAX_PATH:
            raise _too_much(f"a path of {weight.path:,} characters", f"{_MAX_PATH:,}")

    def _weight(self, tree: bytes, known: dict[bytes, Weight], prefix: str, above: int) -> Weight:
        found = self._weights.get(tree) or known.get(tree)
        if found is None:
            found = self._counted(tree, known, prefix, above)
        elif found.depth + above > _MAX_DEPTH:
            raise _too_deep()
        self._weights[tree] = found
        return found

    def _counted(self, tree: bytes, known: dict[bytes, Weight], prefix: str, above: int) -> Weight:
        if above > _MAX_DEPTH:
            raise _too_deep()
        if len(self._weights) > _MAX_ENTRIES:
            raise _too_much(f"more than {_MAX_ENTRIES:,} directories", f"{_MAX_ENTRIES:,}")
        id = pygit2.Oid(raw=tree)
        if (size := self._size(tree)) > _MAX_TREE_BYTES:
            raise _too_much(f"a directory of {size:,} bytes", f"{_MAX_TREE_BYTES:,}")
        entries = places = path = depth = 0
        for mode, name, child in _entries(self._object(id), prefix):
            entries += 1
            places += 1
            length = len(name)
            if mode == _DIRECTORY:
                below = self._weight(child, known, f"{prefix}{name}/", above + 1)
                entries += below.entries
                places += below.entries + below.places
                length += 1 + below.path
                depth = max(depth, 1 + below.depth)
            path = max(path, length)
        return Weight(entries, places, path, depth)

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

    def _list(self, tree: bytes, prefix: str, last: Directory | None) -> Directory:
        if last is not None and last.tree == tree:
            return last
        known: Mapping[str, FileEntry] = last.files if last else {}
        before: Mapping[str, Directory] = last.inner if last else {}
        files: dict[str, FileEntry] = {}
        skipped: list[str] = []
        inner: dict[str, Directory] = {}
        size = 0
        for mode, name, id in _entries(self._object(pygit2.Oid(raw=tree)), prefix):
            path = prefix + name
            if mode == _DIRECTORY:
                directory = self._list(id, path + "/", before.get(name))
                inner[name] = directory
                files.update(directory.files)
                skipped.extend(directory.skipped)
                size += directory.size
            elif mode.startswith(_FILE_PREFIX):
                content_id = id.hex()
                entry = known.get(path)
                if entry is None or entry.content_id != content_id:
                    entry = FileEntry(path, content_id, self._size(id))
                files[path] = entry
                size += entry.size
            else:
                skipped.append(path)
        return Directory(tree, MappingProxyType(files), tuple(skipped), inner, size)


class TreeSnapshot:
    """The files of a git tree, as `lehr.sdk.source.Snapshot`. Lists them on first use."""

    def __init__(self, revision: SourceRevision, tree: bytes, reader: TreeReader) -> None:
        self.revision = revision
        self._tree = tree
        self._reader = reader
        self._directory: Directory | None = None

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

    Parsed here because pygit2 makes an object for each entry, which takes 50% longer.
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
                f"a file name is not UTF-8: {prefix}{raw_name!r}", code="SRC153", fix="rename the file"
            ) from err
        if name in {"", ".", ".."} or "/" in name:
            raise StalledError(
                f"a tree contains the name {name!r} in {prefix or 'its root'}",
                code="SRC154",
                why="no file can have this name, so the repository is damaged or forged",
                fix="rewrite the commit",
            )
        yield content[start:space], name, content[end + 1 : end + 21]
        start = end + 21


def _too_much(what: str, most: str) -> StalledError:
    return StalledError(
        f"the commit contains {what}",
        code="SRC155",
        why=f"a source may contain at most {most}",
        fix="keep intent in a repository of its own, or name its directory: `--path`, `path` of the source",
    )


def _too_deep() -> StalledError:
    return StalledError(
        f"the commit nests directories more than {_MAX_DEPTH} deep",
        code="SRC156",
        why="a source may not nest deeper",
        fix="reduce the nesting",
    )


def _number(number: int) -> str:
    return f"{number:,}" if number < 10**12 else "more than 1,000,000,000,000"


def _damaged(id: pygit2.Oid, err: Exception) -> TransientError:
    return TransientError(
        f"the object {id} cannot be read",
        code="SRC157",
        why=f"the mirror in the state directory is damaged: {err}",
        fix="move the mirror away; Lehr fetches it again",
    )
