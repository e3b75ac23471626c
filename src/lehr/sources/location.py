"""From what a person writes as a location to the source that is meant."""

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

    A URL, `host:path`, a bare repository, a name that ends in `.git`, and a directory with a
    `.git` in it are git repositories; so is whatever follows `git+`. A directory below a work
    tree is a plain directory. A git location may end in `#BRANCH` or `#BRANCH:PATH`.

    Args:
        location: path or URL.
        state: the state directory, in which sources keep what they have read.
        kind: says it, where the rules above would say otherwise.
        branch, path: as for `GitSource`; they override what `location` says.
        poll_seconds: longest time between two hints; None for the kind's default.
        blocking: runs looks at file systems that may hang.
        signers: of whom one must have signed the newest commit; None for no such demand.
        remember: follow one branch, which `state` remembers, and not whatever is checked out.
        exact: a commit that is checked out without a branch may be read, if `state` remembers none.

    Raises:
        StalledError: `path` leads out of the repository; or commits are to be signed, and there are none.
    """
    found, repository, named_branch, named_path = taken_apart(location, kind)
    if found == "directory":
        directory = Path(repository).expanduser().absolute()
        if signers is not None:
            raise StalledError(
                f"the directory {directory} cannot be signed",
                code="SRC124",
                why="only commits are, and keys are named that must have signed the newest one",
                fix="name a git repository, or start without --signed-by",
            )
        return DirectorySource(
            directory,
            place_of(state / "sources", str(directory)),
            clock=clock,
            exclude=left_out(directory, state),
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


def taken_apart(location: str, kind: Kind | None) -> tuple[Kind, str, str, str]:
    """What `location` is, by the rules of `open_source`: kind, directory or repository, branch, path."""
    found = kind or _kind(location)
    if found == "directory":
        return found, location, "", ""
    return found, *_parts(location.removeprefix(_PREFIX))


def place_of(folder: Path, location: str) -> Path:
    """Where in `folder` the mirror of `location` is: a name that people recognise and that is unique."""
    digest = short(digest_bytes(location.encode()))
    name = _NOT_IN_NAMES.sub("-", location.rstrip("/").rsplit("/", 1)[-1]).removesuffix(".git")[:40]
    return folder / f"{name}-{digest}.git"


def require_location(location: str) -> None:
    """See that a location on this machine is there.

    What it is, a repository or a plain directory, shows only then. Taken for the wrong one, what
    nobody has committed would be published as soon as it is back.

    Raises:
        TransientError: it is not there.
    """
    directory = local_path(_parts(location.removeprefix(_PREFIX))[0])
    if directory is not None and not directory.exists():
        raise TransientError(
            f"{directory} is not there",
            code="SRC125",
            why="it was moved or deleted, or its file system is not mounted",
            fix="put it back, or name another place",
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
    """Repository, branch and path. A `#` in the name of a directory that is there is no mark."""
    directory = None if "://" in location else local_path(location)
    if directory is not None and directory.exists():
        return location, "", ""
    repository, _, fragment = location.partition("#")
    branch, _, path = fragment.partition(":")
    return repository, branch, path


def left_out(directory: Path, state: Path) -> tuple[str, ...]:
    """What to leave out: the state directory too, when it lies inside the source."""
    try:
        inside = state.resolve().relative_to(directory.resolve())
    except ValueError:
        return EXCLUDED
    return (*EXCLUDED, f"/{inside.as_posix()}")
