"""Plain directories as sources: the files that are there now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pygit2

from lehr.base.blocking import Blocking, Inline
from lehr.base.clock import Clock
from lehr.base.digest import Digest, digest_all
from lehr.base.errors import StalledError
from lehr.base.text import writable
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry
from lehr.sources.archive import Archive, ArchivedSource, HeldSnapshot, entry_of
from lehr.sources.hints import Hints
from lehr.sources.scan import Scan, Stamp, changed_while_read, read_file, scan

EXCLUDED = (".git", ".lehr", ".venv", "__pycache__")
"""Names that are left out at any depth, as are directories that git ignores."""

_MAX_BYTES = 256_000_000
_SETTLED = 2.0


class _Known(msgspec.Struct, frozen=True):
    """A file that was read; `settled` if its next change will certainly change its stamp."""

    stamp: Stamp
    entry: FileEntry
    content: bytes
    settled: bool


class DirectorySource(ArchivedSource):
    """Reads a directory. Revisions are digests of all paths and contents.

    A snapshot is all or nothing: every file is read, then the directory is listed again, and if anything
    differs from the first listing, that is a `TransientError`. Files whose stamp (inode, size, times) has not
    changed are not read again.

    Args:
        path: the directory.
        archive: where the contents of kept revisions are or will be stored.
        exclude: names that are left out at any depth; with a leading slash, one path from the root.
        poll_seconds: time between two hints of `changes`.
    """

    def __init__(
        self,
        path: Path,
        archive: Path,
        *,
        clock: Clock,
        exclude: tuple[str, ...] = EXCLUDED,
        poll_seconds: float = 2.0,
        blocking: Blocking | None = None,
    ) -> None:
        self._path = path.expanduser().absolute()
        super().__init__(Archive(archive), Hints(clock, poll_seconds, blocking=blocking or Inline()))
        self._clock = clock
        self._exclude = frozenset(exclude)
        self._known: dict[str, _Known] = {}
        self._last: tuple[Scan, HeldSnapshot] | None = None

    @property
    def name(self) -> str:
        """`directory:PATH`."""
        return writable(f"directory:{self._path}")

    def newest(self) -> HeldSnapshot:
        """The directory as it is now. One call at a time.

        Raises:
            TransientError: it does not exist, or changed while it was being read.
            StalledError: it is empty, too large, or has something that may not be read.
        """
        ignored = _ignored_by_git(self._path)
        found = scan(self._path, self._exclude, ignored)
        self._check_size(found)
        stale = {path for path, stamp in found.files.items() if not self._is_known(path, stamp)}
        if self._last is not None and self._last[0] == found and not stale:
            return self._last[1]
        known = {path: self._known[path] for path in found.files if path not in stale}
        known |= {path: self._read(path, found.files[path]) for path in stale}
        if scan(self._path, self._exclude, ignored) != found:
            raise changed_while_read(self._path)
        self._known = {path: known[path] for path in found.files}
        snapshot = self._snapshot(found)
        self._last = (found, snapshot)
        return snapshot

    def notify(self) -> None:
        """Make `changes` give a hint at once, as after an external notification."""
        self._hints.notify()

    def _is_known(self, path: str, stamp: Stamp) -> bool:
        known = self._known.get(path)
        return known is not None and known.settled and known.stamp == stamp

    def _read(self, path: str, stamp: Stamp) -> _Known:
        # A second change within the file system's tick would not change the stamp.
        settled = stamp.changed_ns / 1e9 < self._clock.now() - _SETTLED
        content = read_file(f"{self._path}/{path}", stamp)
        return _Known(stamp, entry_of(path, content), content, settled)

    def _check_size(self, found: Scan) -> None:
        total = sum(stamp.size for stamp in found.files.values())
        if total > _MAX_BYTES:
            largest = max(found.files, key=lambda path: found.files[path].size)
            raise StalledError(
                f"the files in {self._path} have {total:,} bytes together, more than {_MAX_BYTES:,}",
                code="SRC116",
                why=f"they are all held in memory; the largest is {largest}",
                fix="move files that are not intent elsewhere, or use a git repository",
            )

    def _snapshot(self, found: Scan) -> HeldSnapshot:
        revision = self._revision()
        held = self._archive.held(revision)
        if held is None or held.skipped != found.skipped:
            contents = {path: item.content for path, item in self._known.items()}
            entries = {path: item.entry for path, item in self._known.items()}
            held = HeldSnapshot(SourceRevision(self.name, revision), contents, entries, found.skipped)
        self._archive.hold(held)
        return held

    def _revision(self) -> Digest:
        return digest_all(
            part for path in sorted(self._known) for part in (path, self._known[path].entry.content_id)
        )


def _repository_of(root: Path) -> pygit2.Repository | None:
    """The repository that contains `root`; None if there is none, or it may not be read.

    Does not use `pygit2.discover_repository`: each time it finds nothing, pygit2 1.21 releases a reference to
    None that it never took, and Python aborts a program that calls it every two seconds within hours.
    """
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    try:
        flags = pygit2.enums.RepositoryOpenFlag.NO_SEARCH
        return None if top is None or not root.is_dir() else pygit2.Repository(str(top), flags)
    except pygit2.GitError:
        return None  # such as another user's repository: then git's ignore rules do not apply


def _ignored_by_git(root: Path) -> Callable[[str], bool]:
    """Directories below `root` that git ignores: they hold output of programs, not intent."""
    repository = _repository_of(root)
    work_tree = None if repository is None or repository.workdir is None else Path(repository.workdir)
    if repository is None or work_tree is None or not root.resolve().is_relative_to(work_tree.resolve()):
        return lambda path: False
    prefix = root.resolve().relative_to(work_tree.resolve()).as_posix()
    below = "" if prefix == "." else prefix + "/"
    return lambda path: bool(repository.path_is_ignored(below + path))
