"""Git repositories as sources: the newest commit of a branch, read without a checkout."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from lehr.base.blocking import Blocking, Inline
from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError, StalledError
from lehr.base.text import writable
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import RefusedRevisionError
from lehr.sources.branch import HEADS, BranchMemory, checked_out, detached
from lehr.sources.command import public
from lehr.sources.hints import Hints
from lehr.sources.mirror import Mirror
from lehr.sources.origin import TAGS, LocalRepository, local_path
from lehr.sources.ref_sight import RefSight
from lehr.sources.signatures import Signers, SignersFile
from lehr.sources.tree import TreeSnapshot


class GitSource:
    """Follows a branch or a tag, or reads a fixed commit. Revisions are commit ids.

    After a force-push the newest snapshot is simply the new tip; commits that were kept stay readable, even
    if the repository loses them. For a local repository, a check that finds nothing new or a few new commits
    runs no program.

    Args:
        repository: a path (bare or not), a URL (`https`, `ssh`, `git`, `file`) or `host:path`.
        mirror: where the mirror of this repository is or will be made.
        branch: its name, or a full ref; None follows the repository's HEAD.
        tag, commit: read this instead: the name of a tag, or the full id of a commit.
        path: directory in the repository that is the root of the snapshots; "" for all.
        poll_seconds: longest time between two hints of `changes`.
        blocking: runs the checks of a local repository for `changes`.
        timeout: maximum seconds for a fetch.
        signers: one of them must have signed a commit before it is read; None requires no signature.
        lender: another mirror of this repository, from which this one borrows objects.
        memory: remembers which branch is followed if none is named; None always follows HEAD.
        exact: True if HEAD may be detached; that commit is then read, but not remembered.
    """

    def __init__(
        self,
        repository: str,
        mirror: Path,
        *,
        clock: Clock,
        branch: str | None = None,
        tag: str | None = None,
        commit: str | None = None,
        path: str = "",
        poll_seconds: float = 10.0,
        blocking: Blocking | None = None,
        timeout: float = 120.0,
        signers: Signers | SignersFile | None = None,
        lender: Path | None = None,
        memory: BranchMemory | None = None,
        exact: bool = False,
    ) -> None:
        directory = local_path(repository)
        self._location = repository if directory is None else str(directory)
        self._origin = None if directory is None else LocalRepository(directory)
        self._followed = commit or (f"{TAGS}{tag}" if tag else branch)
        self._commit = commit
        self._ref = commit or _ref(self._followed)
        self._path = _inside(path)
        self._mirror = Mirror(mirror, timeout=timeout, lender=lender)
        self._signers = signers
        self._last: TreeSnapshot | None = None
        self._memory = memory if commit is None and tag is None else None
        self._exact = exact
        self._resolved = branch is not None or self._memory is None
        self._remembered: str | None = None
        origin = self._origin if commit is None else None
        self._hints = Hints(
            clock,
            poll_seconds,
            sight=None if origin is None else lambda wake: RefSight(origin, lambda: self._ref, wake),
            blocking=blocking or Inline(),
        )

    @property
    def name(self) -> str:
        """`git:LOCATION[#BRANCH][:PATH]`, without passwords."""
        branch = f"#{self._followed}" if self._followed else ""
        path = f":{self._path}" if self._path else ""
        return writable(f"git:{public(self._location)}{branch}{path}")

    def newest(self) -> TreeSnapshot:
        """The newest commit. One call at a time.

        Raises:
            TransientError: the repository does not exist or cannot be reached.
            RefusedRevisionError: the commit holds more than a source may, or names that cannot be paths.
            StalledError: it is not a repository, is empty, has no such branch, or may not be read; the
                branch's name is not UTF-8; or no allowed signer has signed the commit.
        """
        if not self._resolved:
            self._resolve()
        if writable(self._ref) != self._ref:
            raise StalledError(
                f"the name of the ref {self._ref} is not UTF-8",
                code="SRC158",
                fix="rename it, or name another branch",
            )
        commit = self._tip()
        self._remember()
        if self._ref == "HEAD" and self._memory is not None and self._origin is not None:
            self._commit = commit  # exactly this one, even if the checkout changes
        if self._last is None or self._last.revision.revision != commit:
            if self._signers is not None:
                self._signers.require(self._mirror.path, commit, self._location)
            self._last = self._whole(self._snapshot(commit))
        return self._last

    def _whole(self, snapshot: TreeSnapshot) -> TreeSnapshot:
        """Return `snapshot` after listing it, so that it is known to be within bounds."""
        try:
            snapshot.files()
        except StalledError as error:
            raise RefusedRevisionError(snapshot.revision, error) from error
        return snapshot

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """The remark that the checked-out branch is not the followed one. Blocks."""
        if self._memory is None or self._origin is None or self._followed or self._ref == "HEAD":
            return ()
        try:
            head = self._origin.head()
        except LehrError:
            return ()  # the reader of the source reports it
        return () if head == self._ref else (checked_out(public(self._location), head, self._ref),)

    def _resolve(self) -> None:
        """Find out which branch is followed: the remembered one, or else that of HEAD."""
        assert self._memory is not None
        self._remembered = ref = self._memory.recall()
        if ref is None:
            origin = self._origin
            ref = self._mirror.head_of(self._location) if origin is None else origin.head()
            if ref is None and origin is not None and not self._exact:
                raise detached(public(self._location))
        if ref is not None and not ref.startswith(HEADS):
            raise StalledError(f"{ref} is not a branch", code="SRC117", fix="name a branch with --branch")
        self._ref = ref or "HEAD"
        self._resolved = True

    def _remember(self) -> None:
        """Follow the branch that was read from now on."""
        if self._memory is not None and self._ref.startswith(HEADS) and self._remembered != self._ref:
            self._memory.remember(self._ref)
            self._remembered = self._ref

    def _tip(self) -> str:
        """Fetch if needed; return the id of the newest commit, which is then in the mirror."""
        if self._commit is not None:
            if self._mirror.has(self._commit):
                return self._commit
            return self._mirror.fetch(self._location, self._ref)
        tip = None if self._origin is None else self._origin.tip(self._ref)
        known = self._mirror.tip(self._ref)
        if tip is None or known is None or self._origin is None:
            return self._mirror.fetch(self._location, self._ref)
        if tip == known:
            return known
        objects = None if self._ref.startswith(TAGS) else self._origin.new_objects(tip, known)
        if objects is None:
            return self._mirror.fetch(self._location, self._ref)
        self._mirror.add(objects, self._ref, tip)
        return tip

    def at(self, revision: SourceRevision) -> TreeSnapshot:
        """The snapshot of an earlier revision of this source.

        Raises:
            StalledError: it was not kept and no longer exists.
        """
        return self._snapshot(revision.revision)

    def keep(self, revision: SourceRevision) -> None:
        """Add a ref to the commit, so that it stays readable forever. Idempotent.

        Raises:
            TransientError: the mirror could not be written.
        """
        self._mirror.keep(revision.revision, revision.revision)

    def notify(self) -> None:
        """Make `changes` give a hint at once, as after an external notification."""
        self._hints.notify()

    def changes(self) -> AsyncIterator[None]:
        """A hint at each poll and notification and, for a local repository, when a ref moves."""
        return self._hints.changes()

    def _snapshot(self, commit: str) -> TreeSnapshot:
        tree = self._mirror.root(commit, self._path)
        return TreeSnapshot(SourceRevision(self.name, commit), tree, self._mirror.reader)


def _ref(branch: str | None) -> str:
    if branch is None:
        return "HEAD"
    return branch if branch.startswith("refs/") else f"refs/heads/{branch}"


def _inside(path: str) -> str:
    """`path`, normalized; refuses one that is outside the repository."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts or path.startswith("/"):
        raise StalledError(
            f"{path} is outside the repository",
            code="SRC118",
            fix="write a path relative to the repository's root",
        )
    return "/".join(parts)
