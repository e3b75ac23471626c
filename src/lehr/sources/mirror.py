"""The bare repository in the state directory that snapshots are read from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pygit2

from lehr.base.digest import digest_bytes, short
from lehr.base.durable import sync
from lehr.base.errors import LehrError, StalledError, TransientError, raised_as
from lehr.base.log import Log
from lehr.sources.command import run_git
from lehr.sources.new_objects import NewObject, write_objects
from lehr.sources.tree import TreeReader

KEPT = "refs/lehr/"
_TIPS = "refs/tips/"
_WRITE_FAILURES = (KeyError, ValueError, OSError, pygit2.GitError)


class Mirror:
    """Holds the tips that were fetched, and the revisions that were kept.

    `lehr.sources.mirror` packs it. Made on first use, and again if it was removed.

    Args:
        timeout: maximum seconds for a fetch.
        lender: another mirror of the repository, which outlives this one; its objects are not fetched again.
    """

    def __init__(self, path: Path, *, timeout: float = 120.0, lender: Path | None = None) -> None:
        self.path = path
        self._timeout = timeout
        self._lender = lender
        self._opened: tuple[pygit2.Repository, TreeReader] | None = None

    @property
    def repository(self) -> pygit2.Repository:
        """The repository, opened.

        Raises:
            StalledError: it cannot be made or opened.
        """
        return self._open()[0]

    @property
    def reader(self) -> TreeReader:
        """Reads this repository's trees."""
        return self._open()[1]

    def tip(self, name: str) -> str | None:
        """Id of the commit that was newest at the last fetch of the ref `name`; None before it."""
        target = self._lookup(_tip_of(name))
        if target is None:
            return None
        try:
            return str(self.repository[target].peel(pygit2.Commit).id)  # an annotated tag leads to its commit
        except (KeyError, ValueError, pygit2.GitError):
            return target  # damaged, which reading it reports

    def has(self, commit: str) -> bool:
        """Whether a commit is here."""
        return commit in self.repository

    def fetch(self, location: str, name: str) -> str:
        """Fetch the ref `name` of the repository at `location`; returns the commit's id.

        Raises:
            TransientError, StalledError: it could not be fetched; nothing has changed.
        """
        _ = self.repository
        run_git(
            [
                f"--git-dir={self.path}",
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--update-shallow",
                "--",
                location,
                f"+{name}:{_tip_of(name)}",
            ],
            timeout=self._timeout,
            location=location,
        )
        tip = self.tip(name)
        if tip is None:
            raise TransientError(f"{name} was fetched but is missing", code="SRC119", fix="run again")
        return tip

    def add(self, objects: Sequence[NewObject], name: str, tip: str) -> None:
        """Make the commit `tip` the tip of the ref `name`, with the objects that are missing here for that.

        Raises:
            TransientError: the mirror could not be written; the tip is the one before.
        """
        repository, ref = self.repository, _tip_of(name)
        what, fix = f"{name} could not be copied to the mirror", f"check that {self.path} is writable"
        with raised_as(TransientError, what, code="SRC159", fix=fix, on=_WRITE_FAILURES):
            write_objects(objects, self.path / "objects")
            repository.create_reference_direct(ref, pygit2.Oid(hex=tip), force=True)
            sync(self.path / ref)
            sync((self.path / ref).parent)

    def head_of(self, location: str) -> str | None:
        """The full name of the default branch of the repository at `location`; None if it has none.

        Raises:
            TransientError, StalledError: it cannot be queried.
        """
        arguments = [f"--git-dir={self.path}", "ls-remote", "--symref", "--", location, "HEAD"]
        _ = self.repository
        output = run_git(arguments, timeout=self._timeout, location=location).decode(errors="surrogateescape")
        for line in output.splitlines():
            target, _tab, name = line.partition("\t")
            if name == "HEAD" and target.startswith("ref: "):
                return target.removeprefix("ref: ")
        return None

    def keep(self, revision: str, target: str) -> None:
        """Keep the commit or tree `target`, which `revision` names, until it is forgotten."""
        if self.kept(revision) is not None:
            return
        name = KEPT + revision
        what, fix = f"the revision {revision} could not be stored", f"check that {self.path} is writable"
        with raised_as(TransientError, what, code="SRC120", fix=fix, on=_WRITE_FAILURES):
            self.repository.create_reference_direct(name, pygit2.Oid(hex=target), force=True)
            sync(self.path / name)
            sync((self.path / name).parent)

    def kept(self, revision: str) -> str | None:
        """Id of the object that `revision` names if it was kept; else None."""
        return self._lookup(KEPT + revision)

    def root(self, target: str, path: str = "") -> bytes:
        """Id of the tree of a commit (or tree), or of the directory at `path` in it.

        Raises:
            StalledError: the repository has no such commit, or the commit no such directory.
        """
        try:
            root = self.repository[target].peel(pygit2.Tree)
        except (KeyError, ValueError, pygit2.GitError) as err:
            raise StalledError(
                f"the revision {short(target)} can no longer be read",
                code="SRC121",
                why="it was not stored, and the source no longer has it",
                fix="choose a newer incarnation",
            ) from err
        found = _below(root, path)
        if not isinstance(found, pygit2.Tree):
            raise StalledError(
                f"the commit {short(target)} has no directory {path}",
                code="SRC122",
                why="git commits do not contain empty directories",
                fix="add it with at least one file, or name a different directory",
            )
        return bytes(found.id.raw)

    def _lookup(self, name: str) -> str | None:
        reference = self.repository.references.get(name)
        return None if reference is None else str(reference.target)

    def _open(self) -> tuple[pygit2.Repository, TreeReader]:
        if self._opened is None or not (self.path / "HEAD").exists():
            self._opened = self._make()
        return self._opened

    def _make(self) -> tuple[pygit2.Repository, TreeReader]:
        what, fix = f"the mirror {self.path} cannot be opened", "move it away; Lehr creates it again"
        with raised_as(StalledError, what, code="SRC123", fix=fix, on=(OSError, pygit2.GitError)):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self.path / "HEAD").exists():
                arguments = ["init", "--quiet", "--bare", "--template=", "--", str(self.path)]
                run_git(arguments, timeout=self._timeout, location=str(self.path))
                if self._lender is not None and (self._lender / "HEAD").exists():
                    alternates = self.path / "objects" / "info" / "alternates"
                    alternates.write_text(f"{self._lender.absolute() / 'objects'}\n")
            repository = pygit2.Repository(str(self.path), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        return repository, TreeReader(repository)


def _below(root: pygit2.Tree, path: str) -> pygit2.Object | None:
    try:
        return root[path] if path else root
    except KeyError:
        return None


def _tip_of(name: str) -> str:
    return _TIPS + digest_bytes(name.encode())


# --- keeps mirrors small: forgets unused revisions, packs the rest ---------------
# Safe while others read and write: git makes a pack before it removes the packed files, readers look again
# for missing objects, and unreferenced objects stay for a day, so that objects being written are not lost.

log = Log()

_MIRRORS = "sources"
_MOST_LOOSE = 200
_TIMEOUT = 600.0
_GRACE = "1.day.ago"


def forget(state: Path, kept: Collection[str]) -> int:
    """Forget all revisions but `kept` in all mirrors of the state folder `state`; return their number.

    No revision may be kept during the call: its incarnation is written afterwards.
    """
    known, gone = frozenset(kept), 0
    for repository in mirrors(state):
        names = [name for name in repository.references if name.startswith(KEPT)]
        for name in names:
            if name.removeprefix(KEPT) not in known:
                repository.references.delete(name)
                gone += 1
    return gone


def pack(state: Path, most_loose: int = _MOST_LOOSE) -> None:
    """Pack mirrors with more than `most_loose` loose files. Takes seconds and a full core."""
    for repository in mirrors(state):
        path = Path(repository.path)
        if _loose(path) <= most_loose:
            continue
        try:
            run_git(
                [f"--git-dir={path}", "gc", "--quiet", f"--prune={_GRACE}"],
                timeout=_TIMEOUT,
                location=str(path),
            )
        except LehrError as error:
            log.warning("a mirror could not be packed and stays as it is", mirror=str(path), error=str(error))


def mirrors(state: Path) -> list[pygit2.Repository]:
    """All mirrors in the state folder `state`, but damaged ones."""
    found = []
    for folder in sorted((state / _MIRRORS).glob("*.git")):
        try:
            found.append(pygit2.Repository(str(folder), pygit2.enums.RepositoryOpenFlag.NO_SEARCH))
        except pygit2.GitError:
            continue  # reading it reports the damage
    return found


def _loose(path: Path) -> int:
    """Number of loose objects and refs."""
    objects = sum(1 for _ in path.glob("objects/[0-9a-f][0-9a-f]/*"))
    return objects + sum(1 for _ in (path / KEPT).glob("*"))
