"""The bare repository in the state directory that snapshots are read from."""

from __future__ import annotations

import os
from pathlib import Path

import pygit2

from lehr.base.digest import digest_bytes, short
from lehr.base.errors import StalledError, TransientError
from lehr.sources.command import run_git
from lehr.sources.tree import TreeReader

KEPT = "refs/lehr/"
_TIPS = "refs/tips/"


class Mirror:
    """Holds the tips that were fetched, and the revisions that were kept.

    `lehr.sources.mirror_upkeep` packs it. Made on first use, and again if it was removed.

    Args:
        timeout: maximum seconds for a fetch.
        lender: another mirror of the repository, which outlives this one; its objects are not fetched again.
    """

    def __init__(self, path: Path, *, timeout: float = 120.0, lender: Path | None = None) -> None:
        self._path = path
        self._timeout = timeout
        self._lender = lender
        self._opened: tuple[pygit2.Repository, TreeReader] | None = None

    @property
    def path(self) -> Path:
        """Its path."""
        return self._path

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
                f"--git-dir={self._path}",
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
            raise TransientError(f"{name} was fetched and is not there", code="SRC119", fix="run again")
        return tip

    def head_of(self, location: str) -> str | None:
        """The full name of the default branch of the repository at `location`; None if it has none.

        Raises:
            TransientError, StalledError: it cannot be queried.
        """
        arguments = [f"--git-dir={self._path}", "ls-remote", "--symref", "--", location, "HEAD"]
        _ = self.repository
        said = run_git(arguments, timeout=self._timeout, location=location).decode(errors="surrogateescape")
        for line in said.splitlines():
            target, _tab, name = line.partition("\t")
            if name == "HEAD" and target.startswith("ref: "):
                return target.removeprefix("ref: ")
        return None

    def keep(self, revision: str, target: str) -> None:
        """Keep the commit or tree `target`, which `revision` names, until it is forgotten."""
        if self.kept(revision) is not None:
            return
        name = KEPT + revision
        try:
            self.repository.create_reference_direct(name, pygit2.Oid(hex=target), force=True)
            _sync(self._path / name)
        except (KeyError, ValueError, OSError, pygit2.GitError) as err:
            raise TransientError(
                f"the revision {revision} could not be kept",
                code="SRC120",
                why=str(err),
                fix=f"see that {self._path} can be written",
            ) from err

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
                f"the revision {short(target)} cannot be read any more",
                code="SRC121",
                why="it was not kept, and the source has it no longer",
                fix="choose a newer incarnation",
            ) from err
        found = _below(root, path)
        if not isinstance(found, pygit2.Tree):
            raise StalledError(
                f"the commit {short(target)} has no directory {path}",
                code="SRC122",
                why="a git commit holds no empty directories",
                fix="add it with at least one file, or name another directory",
            )
        return bytes(found.id.raw)

    def _lookup(self, name: str) -> str | None:
        reference = self.repository.references.get(name)
        return None if reference is None else str(reference.target)

    def _open(self) -> tuple[pygit2.Repository, TreeReader]:
        if self._opened is None or not (self._path / "HEAD").exists():
            self._opened = self._make()
        return self._opened

    def _make(self) -> tuple[pygit2.Repository, TreeReader]:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self._path / "HEAD").exists():
                arguments = ["init", "--quiet", "--bare", "--template=", "--", str(self._path)]
                run_git(arguments, timeout=self._timeout, location=str(self._path))
                if self._lender is not None and (self._lender / "HEAD").exists():
                    alternates = self._path / "objects" / "info" / "alternates"
                    alternates.write_text(f"{self._lender.absolute() / 'objects'}\n")
            repository = pygit2.Repository(str(self._path), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        except (OSError, pygit2.GitError) as err:
            raise StalledError(
                f"the mirror {self._path} cannot be opened",
                code="SRC123",
                why=str(err),
                fix="move it away: it is made again",
            ) from err
        return repository, TreeReader(repository)


def _below(root: pygit2.Tree, path: str) -> pygit2.Object | None:
    try:
        return root[path] if path else root
    except KeyError:
        return None


def _tip_of(name: str) -> str:
    return _TIPS + digest_bytes(name.encode())


def _sync(path: Path) -> None:
    """Make a new file survive a crash of the machine."""
    for part in (path, path.parent):
        descriptor = os.open(part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
