"""The repository that a git source follows: its place and its newest commit."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Hashable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pygit2

from lehr.base.errors import StalledError, TransientError
from lehr.sources.command import ownership_problem
from lehr.sources.new_objects import NewObject, new_objects

TAGS = "refs/tags/"

_HOST_AND_PATH = re.compile(r"(?:[^/@:]+@)?[^/:]+:(?!//)")  # as in git@example.org:team/intent.git


def local_path(location: str) -> Path | None:
    """The directory of `location` on this machine; None when it is remote."""
    if location.startswith("file://"):
        return Path(unquote(urlsplit(location).path))
    if "://" in location:
        return None
    path = Path(location).expanduser()
    if not path.exists() and _HOST_AND_PATH.match(location):
        return None
    return Path(os.path.abspath(path))


class RefFiles(NamedTuple):
    """Files of a repository that git replaces when it moves a ref, whether they exist or not.

    Attributes:
        directories: of the repository, of git for this work tree, and the one that all work trees share.
        marker: makes the repository a work tree; a bare one has none.
        refs: the ref's own file, and those in which git keeps many refs.
    """

    directories: tuple[Path, Path, Path]
    marker: Path
    head: Path
    refs: tuple[Path, Path, Path]


class LocalRepository:
    """A repository on this machine, bare or not. Only read, and only through objects."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tip(self, name: str) -> str | None:
        """Id of the commit that the ref `name` (or `HEAD`) leads to.

        None when only the git command can find out, because the repository's format is too new.

        Raises:
            TransientError: the repository does not exist, or is damaged.
            StalledError: it is not a repository, has no such ref, or may not be read.
        """
        repository = self._open()
        if repository is None:
            return None
        try:
            reference = repository.lookup_reference(name).resolve()
        except KeyError:
            raise _no_such_ref(self._path, repository, name) from None
        except (ValueError, pygit2.GitError) as err:
            raise _unreadable(self._path, name, err) from err
        try:
            return str(reference.peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError) as err:  # KeyError: its object is missing
            raise _unreadable(self._path, name, err) from err

    def new_objects(self, tip: str, known: str) -> list[NewObject] | None:
        """As `lehr.sources.new_objects.new_objects`; None also when the repository's format is too new.

        Raises:
            TransientError, StalledError: as `tip`.
        """
        repository = self._open()
        return None if repository is None else new_objects(repository, tip, known)

    def head(self) -> str | None:
        """The full name of the branch that HEAD is on; None if HEAD is detached.

        In a linked work tree, it is that work tree's own HEAD.

        Raises:
            TransientError, StalledError: as `tip`.
        """
        repository = self._open()
        if repository is None:  # the format is too new, but that of HEAD has not changed
            found = _first_line(self._directories()[0] / "HEAD")
            return found.removeprefix(_SYMBOLIC) if found.startswith(_SYMBOLIC) else None
        try:
            target = repository.lookup_reference("HEAD").target
        except (KeyError, ValueError, pygit2.GitError) as err:
            raise _unreadable(self._path, "HEAD", err) from err
        return target if isinstance(target, str) else None

    def _directories(self) -> tuple[Path, Path]:
        """Git's directory for this work tree, and the one that all work trees share."""
        git = self._path / ".git"
        directory = git if git.is_dir() else self._path
        if not git.is_file():
            return directory, directory
        directory = self._path / _first_line(git).removeprefix("gitdir: ")  # a linked work tree
        return directory, directory / (_first_line(directory / "commondir") or ".")

    def glance(self, name: str) -> Hashable:
        """A value that differs when `name` or HEAD may have moved. Costs a few stat calls."""
        files = self.files_of(name)
        return (_first_line(files.head), *map(_stamp, files.refs))

    def files_of(self, name: str) -> RefFiles:
        """The files that change when `name` or HEAD moves."""
        directory, common = self._directories()
        head = directory / "HEAD"
        followed = _first_line(head).removeprefix(_SYMBOLIC) if name == "HEAD" else name
        refs = (common / followed, common / "packed-refs", common / "reftable" / "tables.list")
        return RefFiles((self._path, directory, common), self._path / ".git", head, refs)

    def _open(self) -> pygit2.Repository | None:
        if not self._path.exists():
            raise TransientError(
                f"the repository {self._path} does not exist",
                code="SRC126",
                why="it was moved or deleted, or its file system is not mounted",
                fix="put it back, or start with a different source",
            )
        try:
            return pygit2.Repository(str(self._path), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        except pygit2.GitError as err:
            message = str(err)
        if "not owned by current user" in message:
            raise ownership_problem(self._path)
        if any(part in message for part in ("unsupported", "extension", "object format")):
            return None
        raise StalledError(
            f"{self._path} is not a git repository",
            code="SRC127",
            why=message,
            fix="run `git init` there and commit, or name another directory",
        )


def _unreadable(path: Path, name: str, err: Exception) -> TransientError:
    return TransientError(
        f"the ref {name} of {path} cannot be read", code="SRC128", why=str(err), fix="run `git fsck` there"
    )


_SYMBOLIC = "ref: "


def _no_such_ref(path: Path, repository: pygit2.Repository, name: str) -> StalledError:
    if name.startswith(TAGS):
        tags = [ref.removeprefix(TAGS) for ref in repository.references if ref.startswith(TAGS)]
        return _no_such("tag", path, name.removeprefix(TAGS), sorted(tags))
    branches = sorted(repository.branches.local)
    if not branches:
        return StalledError(
            f"the repository {path} has no commits yet",
            code="SRC129",
            why="it has no intent to read",
            fix="commit to it",
        )
    wanted = name.removeprefix("refs/heads/")
    if name == "HEAD":
        wanted = str(repository.references["HEAD"].target).removeprefix("refs/heads/")
    return _no_such("branch", path, wanted, branches)


def _no_such(kind: str, path: Path, wanted: str, known: list[str]) -> StalledError:
    near = difflib.get_close_matches(wanted, known, 1)
    names = ", ".join(known[:10]) + (" and more" if len(known) > 10 else "")
    return StalledError(
        f"the repository {path} has no {kind} {wanted}",
        code="SRC130",
        why=f"it has {names or 'none'}",
        fix=f"did you mean {near[0]}?" if near else f"name another {kind}, or push this one",
    )


def _first_line(path: Path) -> str:
    try:
        with path.open(errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
