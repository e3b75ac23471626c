"""Makes a commit from another one and a few new contents, without an index or a work tree."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pygit2

from lehr.base.clock import Clock
from lehr.base.durable import sync
from lehr.base.errors import StalledError, raised_as
from lehr.sources.command import run_git

GIT_SECONDS = 120.0
"""Maximum seconds of one git command."""

_AUTHOR = re.compile(r"\s*([^<>\n]+?)\s*<([^<>\s]+)>\s*")
_FILES = {pygit2.enums.FileMode.BLOB, pygit2.enums.FileMode.BLOB_EXECUTABLE}


class Draft(msgspec.Struct, frozen=True):
    """The content of a new commit.

    Attributes:
        contents: new contents by path from the root of the repository.
        message: not empty.
        author: `NAME <EMAIL>`; None for the one in git's configuration.
    """

    parent: str
    contents: Mapping[str, bytes]
    message: str
    author: str | None


def read_file(repository: pygit2.Repository, tree: pygit2.Tree, path: str) -> bytes | None:
    """The content of a regular file; None if it is not in the tree.

    Raises:
        StalledError: it is a symbolic link or a submodule.
    """
    try:
        entry = tree[path]
    except KeyError:
        return None
    if entry.filemode in _FILES and isinstance(entry, pygit2.Blob):
        return entry.data
    if isinstance(entry, pygit2.Tree):
        return None
    raise StalledError(
        f"{path} is a symbolic link or a submodule",
        code="EDT112",
        why="it is never followed: it could lead anywhere",
        fix="name the file itself",
    )


def common_folder(repository: pygit2.Repository) -> Path:
    """The directory that all work trees of a repository share."""
    folder = Path(repository.path)
    try:
        return folder / (folder / "commondir").read_text().strip()
    except FileNotFoundError:
        return folder


class CommitWriter:
    """Writes commits durably into a repository, without a ref to them."""

    def __init__(self, repository: pygit2.Repository, location: str, clock: Clock) -> None:
        self._repository = repository
        self._location = location
        self._clock = clock

    def commit(self, draft: Draft) -> str:
        """Id of a new commit.

        Raises:
            StalledError: it has no author, cannot be signed, or cannot be written.
        """
        committer, author = self._people(draft.author)
        what = f"no commit can be written to {self._location}"
        fix = "check that this user can write there and that there is free space"
        with raised_as(StalledError, what, code="EDT113", fix=fix, on=(OSError, KeyError, pygit2.GitError)):
            tree = self._repository[draft.parent].peel(pygit2.Tree)
            for path, content in draft.contents.items():
                blob = self._repository.create_blob(content)
                self._sync(blob)
                tree = self._repository[self._with_file(tree, path.split("/"), blob)].peel(pygit2.Tree)
            if self._signs():
                return self._signed(draft, tree.id, author, committer)
            commit = self._repository.create_commit(
                None, author, committer, draft.message, tree.id, [pygit2.Oid(hex=draft.parent)]
            )
            self._sync(commit)
        return str(commit)

    def _people(self, named: str | None) -> tuple[pygit2.Signature, pygit2.Signature]:
        """Committer and author."""
        now = int(self._clock.now())
        committer, author = self._configured("COMMITTER", now), self._configured("AUTHOR", now)
        if named is not None:
            found = _AUTHOR.fullmatch(named)
            if found is None:
                raise StalledError(
                    f"{named!r} is not an author", code="EDT114", fix="write it as NAME <EMAIL>"
                )
            author = pygit2.Signature(found[1], found[2], now, 0)
        if author is None:
            raise StalledError(
                "the commit has no author",
                code="EDT115",
                why="git's configuration has no user.name and user.email",
                fix="git config --global user.name NAME, and user.email; or name an author",
            )
        return committer or author, author

    def _configured(self, role: str, now: int) -> pygit2.Signature | None:
        """The identity that git would use; the environment takes precedence."""
        config = self._repository.config
        found = []
        for part in ("name", "email"):
            named = os.environ.get(f"GIT_{role}_{part.upper()}")
            if not named and f"user.{part}" in config:
                named = config[f"user.{part}"]
            found.append(named or "")
        name, email = found
        return pygit2.Signature(name, email, now, 0) if name and email else None

    def _signs(self) -> bool:
        config = self._repository.config
        return "commit.gpgsign" in config and config.get_bool("commit.gpgsign")

    def _signed(
        self, draft: Draft, tree: pygit2.Oid, author: pygit2.Signature, committer: pygit2.Signature
    ) -> str:
        """Have git write a signed commit, as configured."""
        people = {"AUTHOR": author, "COMMITTER": committer}
        variables = {}
        for role, person in people.items():
            variables[f"GIT_{role}_NAME"] = person.name
            variables[f"GIT_{role}_EMAIL"] = person.email
            variables[f"GIT_{role}_DATE"] = f"@{person.time} +0000"
        try:
            written = run_git(
                [f"--git-dir={self._repository.path}", "commit-tree", "-S", "-p", draft.parent, str(tree)],
                timeout=GIT_SECONDS,
                location=self._location,
                feed=draft.message.encode(),
                variables=variables,
            )
        except StalledError:
            raise
        except Exception as err:
            raise StalledError(
                "the commit could not be signed",
                code="EDT116",
                why=getattr(err, "why", str(err)),
                fix="commit.gpgsign is set: make the key usable without a terminal",
            ) from err
        return written.decode().strip()

    def _with_file(self, tree: pygit2.Tree, parts: list[str], blob: pygit2.Oid) -> pygit2.Oid:
        """A tree with `blob` at `parts`, where a file already exists."""
        name, *inner = parts
        entry = tree[name]
        builder = self._repository.TreeBuilder(tree)
        if inner:
            assert isinstance(entry, pygit2.Tree)
            builder.insert(name, self._with_file(entry, inner, blob), pygit2.enums.FileMode.TREE)
        else:
            builder.insert(name, blob, entry.filemode)
        written = builder.write()
        self._sync(written)
        return written

    def _sync(self, id: pygit2.Oid) -> None:
        """Make a new object survive a crash of the machine: a branch will refer to it."""
        name = str(id)
        folder = common_folder(self._repository) / "objects" / name[:2]
        for path in (folder / name[2:], folder):
            if path.exists():
                sync(path)
