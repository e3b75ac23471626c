"""Where edits go: what each kind of place must be able to do."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
import pygit2

from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry, Snapshot


class MovedError(Exception):
    """Somebody else has written meanwhile; nothing of ours was. Read again, and apply the edit to that."""


class Tip(Protocol):
    """What is there now."""

    @property
    def id(self) -> str:
        """Id of the newest commit; "" in a plain directory."""
        ...

    def read(self, file: str) -> bytes | None:
        """The content of a file; None if there is none.

        Raises:
            StalledError: it may not be read, or is no regular file.
        """
        ...

    def snapshot(self) -> Snapshot:
        """All files."""
        ...


class Place(Protocol):
    """A branch of a repository, or a directory."""

    @property
    def name(self) -> str:
        """What it is, for messages."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Keep other edits by program out; they wait. Whoever writes by other means is not kept out."""
        ...

    def tip(self) -> Tip:
        """What is there now.

        Raises:
            TransientError, StalledError: it cannot be read.
        """
        ...

    def write(self, tip: Tip, contents: Mapping[str, bytes], message: str, author: str | None) -> str:
        """Write new contents over what `tip` has, all or nothing; returns the id of the commit.

        Raises:
            MovedError: `tip` is not the newest any more.
            TransientError, StalledError: it cannot be written.
        """
        ...


class Edited:
    """A snapshot with other contents in some of its files, as `lehr.sdk.source.Snapshot`."""

    def __init__(self, before: Snapshot, contents: Mapping[str, bytes]) -> None:
        self._before = before
        self._contents = contents
        changed = {
            path: FileEntry(path, str(pygit2.hash(content)), len(content))
            for path, content in contents.items()
        }
        self._files = {**before.files(), **changed}

    @property
    def revision(self) -> SourceRevision:
        before = self._before.revision
        return msgspec.structs.replace(before, revision=f"{before.revision}+edited")

    def files(self) -> Mapping[str, FileEntry]:
        return self._files

    def read(self, path: str) -> bytes:
        edited = self._contents.get(path)
        return self._before.read(path) if edited is None else edited
