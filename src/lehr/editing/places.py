"""The interface of places that can be edited."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
import pygit2

from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry, Snapshot


class MovedError(Exception):
    """Another write came first, and nothing was written. Read again, and apply the edit to that."""


class Tip(Protocol):
    """The current content."""

    @property
    def id(self) -> str:
        """Id of the newest commit; "" in a plain directory."""
        ...

    def read(self, file: str) -> bytes | None:
        """The content of a file; None if there is none.

        Raises:
            StalledError: it may not be read, or is not a regular file.
        """
        ...

    def snapshot(self) -> Snapshot:
        """All files."""
        ...


class EditTarget(Protocol):
    """A branch of a repository, or a directory."""

    @property
    def name(self) -> str:
        """Its description, for messages."""
        ...

    def held(self) -> AbstractContextManager[None]:
        """Make other programmatic edits wait. Writes by other means are not blocked."""
        ...

    def tip(self) -> Tip:
        """The current content.

        Raises:
            TransientError, StalledError: it cannot be read.
        """
        ...

    def write(self, tip: Tip, contents: Mapping[str, bytes], message: str, author: str | None) -> str:
        """Write new contents on top of `tip`, all or nothing; returns the id of the commit.

        Raises:
            MovedError: `tip` is no longer the newest.
            TransientError, StalledError: it cannot be written.
        """
        ...


class Edited:
    """A snapshot with changed contents of some files, as `lehr.sdk.source.Snapshot`."""

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
