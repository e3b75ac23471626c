"""Opens the source for a location as users write it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.digest import digest_bytes, short
from lehr.base.errors import StalledError, TransientError
from lehr.sources.branch import BranchMemory
from lehr.sources.directory import EXCLUDED, DirectorySource
from lehr.sources.git import GitSource
from lehr.sources.origin import local_path
from lehr.sources.signatures import Signers, SignersFile

Kind = Literal["git", "directory"]

_PREFIX = "git+"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


def open_source(
    location: str,
    state: Path,
    *,
    clock: Clock,
    kind: Kind | None = None,
    branch: str | None = None,
    path: str = "",
    poll_seconds: float | None = None,
    blocking: Blocking | None = None,
    signers: Signers | SignersFile | None = None,
    remember: bool = False,
    exact: bool = False,
) -> GitSource | DirectorySource:
    """The source at `location`. Nothing is read before the first `newest`.

    A URL, `host:path`, a bare repository, a name that ends in `.git`, and a directory with a `.git` in it are
    git repositories; so is anything after `git+`. A directory below a work tree is a plain directory. A git
    location may end in `#BRANCH` or `#BRANCH:PATH`.

    Args:
        location: path or URL.
        state: the state directory, where sources keep what they have read.
        kind: overrides the rules above.
        branch, path: as for `GitSource`; they override `location`.
        poll_seconds: longest time between two hints; None for the kind's default.
        blocking: runs checks of file systems that may hang.
        signers: one of them must have signed the newest commit; None requires no signature.
        remember: follow one branch, recorded in `state`, instead of the checked-out one.
        exact: a detached HEAD may be read, if `state` has no recorded branch.

    Raises:
        StalledError: `path` is outside the repository; or commits must be signed, and there are none.
    """
    found, repository, named_branch, named_path = parse_location(location, kind)
    if found == "directory":
        directory = Path(repository).expanduser().absolute()
        if signers is not None:
            raise StalledError(
                f"the directory {directory} cannot be signed",
                code="SRC124",
                why="only commits can be signed, and --signed-by requires a signature of the newest one",
                fix="use a git repository, or start without --signed-by",
            )
        return DirectorySource(
            directory,
            place_of(state / "sources", str(directory)),
            clock=clock,
            exclude=excluded_names(directory, state),
            poll_seconds=poll_seconds or 2.0,
            blocking=blocking,
        )
    return GitSource(
        repository,
        place_of(state / "sources", repository),
        clock=clock,
        branch=branch or named_branch or None,
        path=path or named_path,
        poll_seconds=poll_seconds or 10.0,
        blocking=blocking,
        signers=signers,
        memory=BranchMemory(state / "sources" / "branch.json") if remember else None,
        exact=exact,
    )


def parse_location(location: str, kind: Kind | None) -> tuple[Kind, str, str, str]:
    """Parse `location` by the rules of `open_source`: kind, directory or repository, branch, path."""
    found = kind or _kind(location)
    if found == "directory":
        return found, location, "", ""
    return found, *_parts(location.removeprefix(_PREFIX))


def place_of(folder: Path, location: str) -> Path:
    """Path in `folder` of the mirror of `location`: recognizable and unique."""
    digest = short(digest_bytes(location.encode(errors="surrogateescape")))
    name = _NOT_IN_NAMES.sub("-", location.rstrip("/").rsplit("/", 1)[-1]).removesuffix(".git")[:40]
    return folder / f"{name}-{digest}.git"


def require_location(location: str) -> None:
    """Check that a location on this machine exists.

    Only then can a repository be distinguished from a plain directory. A wrong guess would publish
    uncommitted changes as soon as the location is back.

    Raises:
        TransientError: it does not exist.
    """
    directory = local_path(_parts(location.removeprefix(_PREFIX))[0])
    if directory is not None and not directory.exists():
        raise TransientError(
            f"{directory} does not exist",
            code="SRC125",
            why="it was moved or deleted, or its file system is not mounted",
            fix="put it back, or name a different place",
        )


def _kind(location: str) -> Kind:
    if location.startswith(_PREFIX):
        return "git"
    repository = _parts(location)[0]
    directory = local_path(repository)
    if directory is None or "://" in repository or repository.rstrip("/").endswith(".git"):
        return "git"
    bare = all((directory / name).exists() for name in ("HEAD", "objects", "refs"))
    return "git" if bare or (directory / ".git").exists() else "directory"


def _parts(location: str) -> tuple[str, str, str]:
    """Repository, branch and path. A `#` in the name of an existing directory is not a separator."""
    directory = None if "://" in location else local_path(location)
    if directory is not None and directory.exists():
        return location, "", ""
    repository, _, fragment = location.partition("#")
    branch, _, path = fragment.partition(":")
    return repository, branch, path


def excluded_names(directory: Path, state: Path) -> tuple[str, ...]:
    """Names to leave out, including the state directory if it is inside the source."""
    try:
        inside = state.resolve().relative_to(directory.resolve())
    except ValueError:
        return EXCLUDED
    return (*EXCLUDED, f"/{inside.as_posix()}")
