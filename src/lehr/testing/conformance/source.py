"""The rules of `lehr.sdk.source`, for any source of truth.

A test makes a fresh `Subject` for each rule and runs it:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    def test_keeps_the_contract(rule, tmp_path):
        asyncio.run(rule(subject(tmp_path)))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import msgspec

from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.base.text import writable
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry, Snapshot, Source
from lehr.testing.conformance.rules import Rules, hold, raises

_FIRST = {
    "lehr.yaml": b"partition: a\n",
    "assets/a.yaml": b"id: a\n",
    "assets/same.yaml": b"id: a\n",
    "assets/deep/er/b.yaml": b"id: b\r\n\ttab",
    "empty": b"",
    "binary": bytes(range(256)),
    "with space/größe-名前": b"x",
}
_ABSENT = ("no/such", "assets", "assets/", "/lehr.yaml", "./lehr.yaml", "../lehr.yaml", "")
_PATIENCE = 10.0

Edit = Mapping[str, bytes | None]


@dataclass(frozen=True)
class Subject:
    """A source without edits yet, and the place where people edit.

    Attributes:
        open: opens the source; called again, it is the same source after a restart.
        edit: makes one edit, which an observer sees whole or not at all: new contents by path, None
            to delete. Paths are relative, with slashes.
        troubles: each makes a context manager: entered, the source cannot be read; left, all is as
            before. One for each way that can be tested (gone, not permitted, damaged, unreachable).
        again: reads an earlier revision that was kept; None if the source cannot show the past.
        forget: takes the past away from where people edit, as a force-push does.
        patience: seconds after which a hint of `changes` that did not come is missing.
    """

    open: Callable[[], Source]
    edit: Callable[[Edit], None]
    troubles: tuple[Callable[[], AbstractContextManager[object]], ...]
    again: Callable[[Source, SourceRevision], Snapshot] | None = None
    forget: Callable[[], None] = lambda: None
    patience: float = _PATIENCE

    def filled(self) -> tuple[Source, Snapshot]:
        """The source and its newest snapshot, after a first edit."""
        self.edit(_FIRST)
        source = self.open()
        return source, source.newest()


Rule = Callable[[Subject], Coroutine[Any, Any, None]]


RULES: Rules[Rule] = Rules()


@RULES
async def snapshots_are_whole(subject: Subject) -> None:
    """Every file is there, byte for byte, and no other."""
    _, snapshot = subject.filled()
    hold(set(snapshot.files()) == set(_FIRST), f"the files are {set(_FIRST)}, not {set(snapshot.files())}")
    for path, content in _FIRST.items():
        hold(snapshot.read(path) == content, f"{path} is read byte for byte")


@RULES
async def entries_describe_files(subject: Subject) -> None:
    """Path (relative, with slashes) and size are the file's own, and each entry is listed by its path."""
    _, snapshot = subject.filled()
    for path, entry in snapshot.files().items():
        hold(entry.path == path, f"{path} is listed by its own path, not {entry.path!r}")
        plain = str(PurePosixPath(path)) == path and not path.startswith("/") and "\\" not in path
        hold(plain and ".." not in path.split("/"), f"{path!r} is relative, with slashes")
        hold(entry.size == len(snapshot.read(path)), f"the size of {path} is not {entry.size}")


@RULES
async def equal_content_has_an_equal_id(subject: Subject) -> None:
    """`content_id` is equal for equal content and for no other: between files, snapshots and restarts."""
    source, first = subject.filled()
    ids = {(snapshot_file.content_id, first.read(path)) for path, snapshot_file in first.files().items()}
    _one_to_one(ids)
    hold(len(ids) == len(set(_FIRST.values())), "files of equal content have one id")
    subject.edit({"assets/a.yaml": b"id: x\n", "moved": _FIRST["binary"], "binary": None})
    for snapshot in (source.newest(), subject.open().newest()):
        ids |= {(entry.content_id, snapshot.read(path)) for path, entry in snapshot.files().items()}
        _one_to_one(ids)


@RULES
async def unknown_paths_are_key_errors(subject: Subject) -> None:
    """A path that is not a file of the snapshot cannot be read: neither directories nor paths outside."""
    _, snapshot = subject.filled()
    for path in _ABSENT:
        with raises(KeyError, f"reading {path!r} raises KeyError"):
            snapshot.read(path)


@RULES
async def snapshots_never_change(subject: Subject) -> None:
    """Whatever is edited later, a snapshot lists and reads as on its first day, including deleted files."""
    source, snapshot = subject.filled()
    before = _contents(snapshot)
    revision = snapshot.revision
    unread = subject.open().newest()  # nothing of it was listed or read before the edit
    subject.edit({"assets/a.yaml": b"id: z\n", "empty": None, "new": b"new", "lehr.yaml": b"longer: text\n"})
    source.newest()
    for held in (snapshot, unread):
        hold(held.revision == revision, "the revision of a snapshot never changes")
        hold(_contents(held) == before, "the contents of a snapshot never change")


@RULES
async def edits_are_seen(subject: Subject) -> None:
    """The newest snapshot has the latest edits: changed, added and deleted."""
    source, _ = subject.filled()
    subject.edit({"assets/a.yaml": b"id: z\n", "new/file": b"new", "empty": None})
    wanted = {**_FIRST, "assets/a.yaml": b"id: z\n", "new/file": b"new"}
    del wanted["empty"]
    hold(_read(source.newest()) == wanted, "the newest snapshot has the newest edit")


@RULES
async def revisions_differ_with_the_content(subject: Subject) -> None:
    """A changed file, a new one, a moved one and a deleted one make another revision each."""
    source, first = subject.filled()
    revisions = [first.revision]
    for edit in (
        {"assets/a.yaml": b"id: b\n"},
        {"new": b""},
        {"new": None, "moved": b""},
        {"moved": None, "lehr.yaml": b"partition: b\n"},
    ):
        subject.edit(edit)
        revisions.append(source.newest().revision)
    hold(len(set(revisions)) == len(revisions), f"each edit makes another revision, not {revisions}")


@RULES
async def revisions_stay_while_nothing_changes(subject: Subject) -> None:
    """Looked at again, also after a restart, what was not edited has the same revision and entries."""
    source, first = subject.filled()
    for again in (source.newest(), source.newest(), subject.open().newest()):
        hold(again.revision == first.revision, "nothing changed, so the revision is the same")
        hold(dict(again.files()) == dict(first.files()), "nothing changed, so the files are the same")


@RULES
async def revisions_name_their_source(subject: Subject) -> None:
    """`revision.source` is the source's name, which stays the same over edits and restarts."""
    source, first = subject.filled()
    one_line = bool(source.name) and "\n" not in source.name
    hold(
        one_line and writable(source.name) == source.name,
        f"a source has a name of one line that can be encoded as UTF-8, not {source.name!r}",
    )
    subject.edit({"new": b"new"})
    for revision in (first.revision, source.newest().revision, subject.open().newest().revision):
        hold(revision.source == source.name, f"it is {source.name}'s, not {revision.source}'s")
        hold(bool(revision.revision), "a revision is not empty")


@RULES
async def what_cannot_be_read_raises(subject: Subject) -> None:
    """`TransientError` or `StalledError`, never a part, nothing or the past; once fixed, all is as before."""
    source, first = subject.filled()
    hold(bool(subject.troubles), "there is at least one way in which the source cannot be read")
    errors = (TransientError, StalledError)
    for trouble in subject.troubles:
        with trouble():
            for opened in (source, subject.open()):
                with raises(errors, "a source that cannot be read raises TransientError or StalledError"):
                    opened.newest()
        again = source.newest()
        hold(again.revision == first.revision, "after a repair, it has the same revision as before")
        hold(_contents(again) == _contents(first), "after a repair, it has the same contents as before")


@RULES
async def snapshots_read_rightly_or_not_at_all(subject: Subject) -> None:
    """While the source is in trouble, a snapshot reads what it held, or raises `TransientError`."""
    _, snapshot = subject.filled()
    entries = dict(snapshot.files())
    for trouble in subject.troubles:
        with trouble():
            for path in entries:
                try:
                    content = snapshot.read(path)
                except TransientError:
                    continue
                hold(content == _FIRST[path], f"{path} is read as it was, or not at all")


@RULES
async def kept_revisions_stay_readable(subject: Subject) -> None:
    """After `keep`, whatever is edited, forgotten or started again; keeping twice is keeping once."""
    if subject.again is None:
        return
    source, first = subject.filled()
    before = _contents(first)
    source.keep(first.revision)
    source.keep(first.revision)
    subject.edit({"assets/a.yaml": b"id: b\n", "empty": None})
    second = source.newest()
    after = _contents(second)
    source.keep(second.revision)
    subject.edit({"assets/a.yaml": b"id: c\n", "binary": None})
    subject.forget()
    source.newest()
    for opened in (source, subject.open()):
        for revision, contents in ((first.revision, before), (second.revision, after)):
            then = subject.again(opened, revision)
            hold(then.revision == revision, "a revision that was kept has its own name")
            hold(_contents(then) == contents, "a revision that was kept reads as it did")


@RULES
async def edits_are_hinted_at(subject: Subject) -> None:
    """A listener to `changes` gets a hint after an edit, again and again, and may stop listening."""
    source, _ = subject.filled()
    hints = source.changes()
    for number in range(2):
        hint = asyncio.ensure_future(anext(hints))
        await SystemClock().sleep(0)  # the listener begins to listen
        subject.edit({"assets/a.yaml": f"id: {number}\n".encode()})
        try:
            await asyncio.wait_for(hint, subject.patience)
        except (TimeoutError, StopAsyncIteration):  # of the wait, and of hints that end
            raise AssertionError("changes gives a hint after an edit") from None
    close = getattr(hints, "aclose", None)
    if close is not None:
        await close()


def _read(snapshot: Snapshot) -> dict[str, bytes]:
    return {path: snapshot.read(path) for path in snapshot.files()}


def _contents(snapshot: Snapshot) -> dict[str, tuple[FileEntry, bytes]]:
    # Copies of the entries: a snapshot that changes its own would change what it is compared with.
    return {
        path: (msgspec.structs.replace(entry), snapshot.read(path))
        for path, entry in snapshot.files().items()
    }


def _one_to_one(pairs: set[tuple[str, bytes]]) -> None:
    hold(len({id for id, _ in pairs}) == len(pairs), "different content has different ids")
    hold(len({content for _, content in pairs}) == len(pairs), "equal content has an equal id")
