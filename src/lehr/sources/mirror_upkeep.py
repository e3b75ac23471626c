"""Keeps mirrors small: forgets revisions that no incarnation was made from, and packs the rest.

Safe while others read and write: git makes a pack before it removes the packed files, readers look again for
missing objects, and unreferenced objects stay for a day, so that objects being written are not lost.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pygit2
import structlog

from lehr.base.errors import LehrError
from lehr.sources.command import run_git
from lehr.sources.mirror import KEPT

log = structlog.get_logger()

_MIRRORS = "sources"
_MOST_LOOSE = 200
_TIMEOUT = 600.0
_GRACE = "1.day.ago"


def forget(state: Path, kept: Collection[str]) -> int:
    """Forget all revisions but `kept` in all mirrors of the state folder `state`; return their number.

    No revision may be kept during the call: its incarnation is written afterwards.
    """
    known, gone = frozenset(kept), 0
    for repository in _mirrors(state):
        names = [name for name in repository.references if name.startswith(KEPT)]
        for name in names:
            if name.removeprefix(KEPT) not in known:
                repository.references.delete(name)
                gone += 1
    return gone


def pack(state: Path, most_loose: int = _MOST_LOOSE) -> None:
    """Pack mirrors with more than `most_loose` loose files. Takes seconds and a full core."""
    for repository in _mirrors(state):
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
            log.warning("a mirror could not be packed, it stays as it is", mirror=str(path), error=str(error))


def _mirrors(state: Path) -> list[pygit2.Repository]:
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
