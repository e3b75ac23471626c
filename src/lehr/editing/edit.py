"""A complete edit: read, apply, check, write, and retry after a concurrent write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lehr.base.clock import Clock
from lehr.base.diagnostics import Diagnostic, Position, errors, file_problem
from lehr.base.errors import StalledError, TransientError
from lehr.base.patches import unified_diff
from lehr.editing.branch import LocalBranch, RemoteBranch
from lehr.editing.changes import Change, Compute, EditError
from lehr.editing.file_edit import apply, shown
from lehr.editing.folder import Folder
from lehr.editing.partial_changes import same
from lehr.editing.places import Edited, EditTarget, MovedError, Tip
from lehr.sdk.source import Snapshot
from lehr.sources.location import Kind, parse_location, place_of
from lehr.sources.origin import local_path

_TRIES = 20

Check = Callable[[Snapshot], Sequence[Diagnostic]]
"""Checks all files in their future state; an error among its diagnostics prevents the edit."""


class FileChange(msgspec.Struct, frozen=True):
    """The bytes of a file before and after an edit."""

    file: str
    before: bytes
    after: bytes


class Commit(msgspec.Struct, frozen=True):
    """The result of an edit.

    Attributes:
        id: id of the new commit; "" if there is none: nothing changed, the place is a plain directory, or it
            was only a rehearsal.
        parent: id of its parent commit; "" in a plain directory.
        place: the branch or directory, named as a source.
        files: the changed files.
    """

    id: str
    parent: str
    place: str
    files: tuple[FileChange, ...]

    @property
    def patch(self) -> str:
        """The changes in the format of `diff -u`."""
        return "".join(_patch(change) for change in self.files)


def edit(
    location: str,
    changes: Sequence[Change],
    message: str,
    *,
    state: Path,
    clock: Clock,
    kind: Kind | None = None,
    branch: str | None = None,
    path: str = "",
    author: str | None = None,
    check: Check | None = None,
    rehearse: bool = False,
) -> Commit:
    """Make `changes`, in order, as one commit on a branch, or in place in a plain directory. Blocks.

    Compare-and-swap: the commit is made on the newest one, or not at all. After a concurrent write, the
    changes are applied to the new state, unless one of the values itself has changed.

    Args:
        location: as `lehr.sources.open_source` reads it.
        message: message of the commit.
        state: directory for objects fetched from remotes.
        branch, path: branch and directory of a git repository; files are relative to `path`.
        author: `NAME <EMAIL>`; None for who git's configuration names.
        check: checks the result before it is written.
        rehearse: do not write anything.

    Raises:
        EditError: a change cannot be made, a value is not as expected, or `check` found an error.
        StalledError: the place is not writable, or an uncommitted edit is in the way.
        TransientError: it cannot be reached now, or others keep writing.
    """
    if not changes or not message.strip():
        raise StalledError(
            "an edit needs a change and a message",
            code="EDT117",
            fix="give at least one change, and a message",
        )
    for change in changes:
        _check_file(change.file)
    place = _place(location, state, clock, kind, branch, path)
    text = message.strip() + "\n"
    seen: dict[int, Any] = {}
    with place.held():
        for _ in range(_TRIES):
            tip = place.tip()
            files = _applied(tip, changes, seen, place.name)
            if files and check is not None:
                found = errors(check(Edited(tip.snapshot(), {item.file: item.after for item in files})))
                if found:
                    raise EditError(tuple(found))
            if not files or rehearse:
                return Commit("", tip.id, place.name, files)
            try:
                written = place.write(tip, {item.file: item.after for item in files}, text, author)
            except MovedError:
                continue
            return Commit(written, tip.id, place.name, files)
    raise TransientError(
        f"{place.name} changed {_TRIES} times during the edit",
        code="EDT118",
        why="others keep writing to it",
        fix="try again",
    )


def _place(
    location: str, state: Path, clock: Clock, kind: Kind | None, branch: str | None, path: str
) -> EditTarget:
    found, repository, named_branch, named_path = parse_location(location, kind)
    if found == "directory":
        return Folder(Path(repository), state, clock=clock)
    branch = branch or named_branch or None
    inside = "/".join(part for part in (path or named_path).split("/") if part not in {"", "."})
    directory = local_path(repository)
    if directory is not None and "://" not in repository:
        return LocalBranch(directory, branch, inside, clock=clock)
    return RemoteBranch(repository, branch, inside, place_of(state / "editing", repository), clock=clock)


def _applied(tip: Tip, changes: Sequence[Change], seen: dict[int, Any], place: str) -> tuple[FileChange, ...]:
    """The files that change. `seen` are the values found in the first attempt, by number of the change.

    Raises:
        EditError: all problems of all changes.
    """
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    problems: list[Diagnostic] = []
    for number, change in enumerate(changes):
        file = change.file
        try:
            if file not in before:
                before[file] = after[file] = _read(tip, file, place)
            applied = apply(after[file], change)
            if not isinstance(change, Compute) and not _still(
                seen.setdefault(number, applied.before), applied.before
            ):
                raise _overtaken(change, seen[number], applied.before)
        except EditError as err:
            problems.extend(err.diagnostics)
        else:
            after[file] = applied.content
    if problems:
        raise EditError(tuple(dict.fromkeys(problems)))
    return tuple(
        FileChange(file, content, after[file]) for file, content in before.items() if content != after[file]
    )


def _read(tip: Tip, file: str, place: str) -> bytes:
    content = tip.read(file)
    if content is None:
        diagnostic = file_problem(
            "EDT009",
            Position(file),
            what=f"there is no file {file}",
            why=f"{place} does not have it" + (f" at commit {tip.id[:12]}" if tip.id else ""),
            fix="fix the name; a new file must be committed first",
        )
        raise EditError((diagnostic,))
    return content


def _still(before: Any, now: Any) -> bool:
    return before is now or (msgspec.UNSET not in (before, now) and same(before, now))


def _overtaken(change: Change, before: Any, now: Any) -> EditError:
    diagnostic = file_problem(
        "EDT005",
        Position(change.file),
        what=f"{change.path} changed during the edit: from {shown(before)} to {shown(now)}",
        why="another commit changed it",
        fix="review the new value, and edit again",
    )
    return EditError((diagnostic,))


def _check_file(file: str) -> None:
    if file.startswith("/") or any(part in {"", ".", "..", ".git"} for part in file.split("/")):
        raise StalledError(
            f"{file!r} is not a path inside the source",
            code="EDT119",
            fix="write the path from the source's root",
        )


def _patch(change: FileChange) -> str:
    lines = unified_diff(change.before.decode(), change.after.decode())
    return "".join(f"{line}\n" for line in (f"--- a/{change.file}", f"+++ b/{change.file}", *lines))
