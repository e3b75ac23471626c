"""A branch of a local or remote repository."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pygit2

from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError, raised_as
from lehr.editing.commits import GIT_SECONDS, CommitWriter, Draft, common_folder, read_file
from lehr.editing.folder_lock import locked
from lehr.editing.places import MovedError, Tip
from lehr.model.incarnation import SourceRevision
from lehr.sources.command import public, run_git
from lehr.sources.mirror import Mirror
from lehr.sources.origin import LocalRepository
from lehr.sources.tree import TreeReader, TreeSnapshot

_HEADS = "refs/heads/"
_HEAD_LINE = "ref: "


class BranchTip:
    """A commit, and the edited directory in it, as `Tip`."""

    def __init__(self, repository: pygit2.Repository, commit: str, inside: str, name: str) -> None:
        self._repository = repository
        self._inside = inside
        self._name = name
        self.id = commit
        root = repository[commit].peel(pygit2.Tree)
        found = _below(root, inside)
        if found is None:
            raise StalledError(
                f"{name} has no directory {inside}", code="EDT101", fix="name another directory"
            )
        self._tree = found

    def read(self, file: str) -> bytes | None:
        return read_file(self._repository, self._tree, file)

    def snapshot(self) -> TreeSnapshot:
        revision = SourceRevision(self._name, self.id)
        return TreeSnapshot(revision, self._tree.id.raw, TreeReader(self._repository))


class LocalBranch:
    """A branch of a repository on this machine, bare or with work trees.

    If the branch is checked out, the work tree is updated: only the edited files change there. If one of them
    has uncommitted edits, the edit is refused.

    Args:
        path: the repository.
        branch: its name, or a full ref; None for the checked-out one.
        inside: directory in it that files are relative to; "" for its root.
    """

    def __init__(self, path: Path, branch: str | None, inside: str, *, clock: Clock) -> None:
        self._path = path
        self._origin = LocalRepository(path)
        self._origin.tip("HEAD") if branch is None else self._origin.tip(_ref(branch))
        self._repository = _opened(path)
        self._ref = _checked_out(self._repository, path) if branch is None else _ref(branch)
        self._inside = inside
        self._writer = CommitWriter(self._repository, str(path), clock)

    @property
    def name(self) -> str:
        """Its name as a git source."""
        return f"git:{self._path}#{self._ref.removeprefix(_HEADS)}"

    def held(self) -> AbstractContextManager[None]:
        return locked(common_folder(self._repository))

    def tip(self) -> BranchTip:
        commit = self._origin.tip(self._ref)
        if commit is None:
            raise StalledError(
                f"the repository format of {self._path} is too new", code="EDT102", fix="use a file:// URL"
            )
        return BranchTip(self._repository, commit, self._inside, self.name)

    def write(self, tip: Tip, contents: Mapping[str, bytes], message: str, author: str | None) -> str:
        """As `Place.write`.

        The work tree is updated first: a crash in between leaves an uncommitted edit there. In the other
        order it would leave an old file, and the next commit would accidentally revert the edit.
        """
        self._check_rebase()
        checkouts = self._checkouts()
        commit = self._writer.commit(Draft(tip.id, _under(self._inside, contents), message, author))
        followed: list[Path] = []
        try:
            for checkout in checkouts:
                self._follow(checkout, tip.id, commit)
                followed.append(checkout)
            self._move(tip.id, commit, message)
        except BaseException as err:
            newest = self._origin.tip(self._ref) or tip.id
            for checkout in followed:
                self._switch(checkout, commit, newest)
            if newest != tip.id and isinstance(err, LehrError):
                raise MovedError from err
            raise
        return commit

    def _move(self, before: str, after: str, message: str) -> None:
        """Move the branch to `after`, if it still points to `before`."""
        reason = f"lehr: {message.splitlines()[0]}"
        try:
            self._git("update-ref", "-m", reason, self._ref, after, before)
        except LehrError as err:
            if self._origin.tip(self._ref) != before:
                raise MovedError from err
            raise StalledError(
                f"the branch {self._ref.removeprefix(_HEADS)} of {self._path} cannot be moved",
                code="EDT103",
                why=err.why,
                fix="check that this user can write there and that no git command is running",
            ) from err

    def _checkouts(self) -> list[Path]:
        """Work trees that have the branch checked out."""
        listed = self._git("worktree", "list", "--porcelain").decode(errors="surrogateescape")
        found = []
        for block in listed.split("\n\n"):
            lines = block.split("\n")
            path = Path(lines[0].removeprefix("worktree "))
            if f"branch {self._ref}" in lines and "bare" not in lines and path.exists():
                found.append(path)
        return found

    def _check_rebase(self) -> None:
        for kind in ("rebase-merge", "rebase-apply"):
            try:
                rebased = (Path(self._repository.path) / kind / "head-name").read_text().strip()
            except OSError:
                continue
            if rebased == self._ref:
                raise StalledError(
                    f"a rebase of {self._ref.removeprefix(_HEADS)} is under way in {self._path}",
                    code="EDT104",
                    why="it moves the branch at its end",
                    fix="git rebase --continue, or --abort",
                )

    def _follow(self, checkout: Path, before: str, after: str) -> None:
        """Move a work tree from one commit to the next. Git refuses if that would overwrite an edit."""
        with contextlib.suppress(LehrError):  # it fails if a file was edited, even one that we do not touch
            self._git("update-index", "-q", "--refresh", at=checkout)
        try:
            self._switch(checkout, before, after)
        except LehrError as err:
            if "index.lock" in err.why:
                raise TransientError(
                    f"another git command is under way in {checkout}",
                    code="EDT105",
                    why=err.why,
                    fix="try again",
                ) from err
            raise StalledError(
                f"the work tree {checkout} has uncommitted edits in the same files",
                code="EDT106",
                why=err.why,
                fix="commit them, or put them aside with `git stash`, and try again",
            ) from err

    def _switch(self, checkout: Path, before: str, after: str) -> None:
        self._git("read-tree", "-m", "-u", before, after, at=checkout)

    def _git(self, *arguments: str, at: Path | None = None) -> bytes:
        place = ["-C", str(at)] if at is not None else [f"--git-dir={self._repository.path}"]
        return run_git([*place, *arguments], timeout=GIT_SECONDS, location=str(self._path))


class RemoteBranch:
    """A branch of a repository that is accessed by fetch and push.

    Args:
        location: URL or `host:path`.
        branch: its name, or a full ref; None for the repository's default.
        inside: directory in it that files are relative to; "" for its root.
        mirror: where fetched objects are kept.
    """

    def __init__(self, location: str, branch: str | None, inside: str, mirror: Path, *, clock: Clock) -> None:
        self._location = location
        self._path = mirror
        self._mirror = Mirror(mirror, timeout=GIT_SECONDS)
        self._clock = clock
        self._inside = inside
        self._ref = self._default() if branch is None else _ref(branch)

    @property
    def name(self) -> str:
        """Its name as a git source."""
        return f"git:{public(self._location)}#{self._ref.removeprefix(_HEADS)}"

    def held(self) -> AbstractContextManager[None]:
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)  # locked before the mirror is created in it
        return locked(self._path)

    def tip(self) -> BranchTip:
        commit = self._mirror.fetch(self._location, self._ref)
        return BranchTip(self._mirror.repository, commit, self._inside, self.name)

    def write(self, tip: Tip, contents: Mapping[str, bytes], message: str, author: str | None) -> str:
        writer = CommitWriter(self._mirror.repository, str(self._path), self._clock)
        commit = writer.commit(Draft(tip.id, _under(self._inside, contents), message, author))
        lease = f"--force-with-lease={self._ref}:{tip.id}"  # a branch that was reset stays reset
        try:
            self._git(
                f"--git-dir={self._path}",
                "push",
                "--quiet",
                lease,
                "--",
                self._location,
                f"{commit}:{self._ref}",
            )
        except LehrError as err:
            if self._mirror.fetch(self._location, self._ref) not in {tip.id, commit}:
                raise MovedError from err
            if self._mirror.tip(self._ref) != commit:
                raise _refused(self.name, err) from err
        return commit

    def _default(self) -> str:
        """The branch that the repository's HEAD names."""
        listed = self._git("ls-remote", "--symref", "--", self._location, "HEAD").decode(errors="replace")
        for line in listed.splitlines():
            if line.startswith(_HEAD_LINE):
                return line.removeprefix(_HEAD_LINE).split("\t")[0]
        raise StalledError(
            f"{public(self._location)} has no default branch",
            code="EDT107",
            why="its HEAD names none, or it has no commits yet",
            fix="name the branch",
        )

    def _git(self, *arguments: str) -> bytes:
        return run_git(list(arguments), timeout=GIT_SECONDS, location=self._location)


def _refused(name: str, err: LehrError) -> LehrError:
    kind = StalledError if isinstance(err, StalledError) or "rejected" in err.why else TransientError
    return kind(
        f"{name} did not accept the commit",
        code="EDT108",
        why=err.why,
        fix="check whether `git push` works on this machine",
    )


def _ref(branch: str) -> str:
    ref = branch if branch.startswith("refs/") else f"{_HEADS}{branch}"
    if not ref.startswith(_HEADS):
        raise StalledError(
            f"{ref} is not a branch",
            code="EDT109",
            why="tags and other refs should not move",
            fix="name a branch",
        )
    return ref


def _opened(path: Path) -> pygit2.Repository:
    what, fix = f"{path} cannot be opened for writing", "use a file:// URL"
    with raised_as(StalledError, what, code="EDT110", fix=fix, on=pygit2.GitError):
        return pygit2.Repository(str(path), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)


def _checked_out(repository: pygit2.Repository, path: Path) -> str:
    target = repository.lookup_reference("HEAD").target
    if isinstance(target, str):
        return target
    raise StalledError(
        f"no branch is checked out in {path}",
        code="EDT111",
        why="its HEAD is detached: it names a commit, or a rebase is under way",
        fix="check out a branch, or name one",
    )


def _below(root: pygit2.Tree, path: str) -> pygit2.Tree | None:
    try:
        found = root[path] if path else root
    except KeyError:
        return None
    return found if isinstance(found, pygit2.Tree) else None


def _under(inside: str, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{inside}/{path}" if inside else path: content for path, content in contents.items()}
