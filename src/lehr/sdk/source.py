"""Sources of truth: places where intent is edited, read as immutable snapshots.

The contract, for authors:

* A snapshot never changes, and can be read again later by its revision.
* A source that cannot be read raises; it never returns a part or an empty snapshot instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import StalledError, TransientError
from lehr.model.incarnation import SourceRevision


class FileEntry(msgspec.Struct, frozen=True):
    """A file of a snapshot.

    Attributes:
        path: relative, with slashes, UTF-8.
        content_id: equal for equal content within one source (git's blob id, a digest).
        size: bytes.
    """

    path: str
    content_id: str
    size: int


class Snapshot(Protocol):
    """The files of a source at one revision."""

    @property
    def revision(self) -> SourceRevision:
        """Names this snapshot for ever."""
        ...

    def files(self) -> Mapping[str, FileEntry]:
        """All files by path. Cheap: no content is read."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            KeyError: the snapshot has no such file.
            TransientError: it could not be read.
        """
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """A snapshot that reports what exists and is not part of it. Offered by snapshots that have reason to."""

    @property
    def skipped(self) -> tuple[str, ...]:
        """Paths of what is neither read nor followed: symbolic links, submodules, special files."""
        ...


class Compound(Protocol):
    """A snapshot that is made of several sources. Its own revision names them all together."""

    @property
    def revisions(self) -> tuple[SourceRevision, ...]:
        """The revision of each source, that of the one with `lehr.yaml` first."""
        ...


REMARK = "PUB009"
"""Code of what sources remark."""


@runtime_checkable
class Remarks(Protocol):
    """A source that reports remarks, whatever the result for its newest snapshot."""

    @property
    def remarks(self) -> tuple[Diagnostic, ...]:
        """Warnings with the code `REMARK`, as things are now. Blocks."""
        ...


def revisions_of(snapshot: Snapshot) -> tuple[SourceRevision, ...]:
    """The exact revision of each source that `snapshot` was read from."""
    # Not `isinstance`, which takes 50 us for a protocol, and is asked several times in each pass.
    if hasattr(snapshot, "revisions"):
        return cast(Compound, snapshot).revisions
    return (snapshot.revision,)


class SourcesError(TransientError):
    """Some of several sources cannot be read, so no snapshot can: a part is never taken for the whole.

    Attributes:
        diagnostics: one for each problem.
        declaring: the files that declare the sources, into which the diagnostics point.
        refused: the newest revision of every source, where all could be read and some are refused (see
            `RefusedRevisionError`): the whole is refused then. Empty otherwise.
    """

    def __init__(
        self,
        diagnostics: Sequence[Diagnostic],
        declaring: Snapshot,
        refused: Sequence[SourceRevision] = (),
    ) -> None:
        self.diagnostics = tuple(diagnostics)
        self.declaring = declaring
        self.refused = tuple(refused)
        first = self.diagnostics[0]
        more = tuple(item.what for item in self.diagnostics[1:])
        super().__init__("; ".join((first.what, *more)), code=first.code, why=first.why, fix=first.fix)


class RefusedRevisionError(StalledError):
    """The newest revision can be read, and will never be taken: for example, it is too large.

    Attributes:
        revision: which; the next one may be taken.
    """

    def __init__(self, revision: SourceRevision, error: StalledError) -> None:
        super().__init__(error.what, code=error.code, why=error.why, fix=error.fix)
        self.revision = revision


class Rows(msgspec.Struct, frozen=True):
    """The result of a query: names of columns, and rows of as many values each."""

    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]


class Source(Protocol):
    """A place where intent is edited."""

    @property
    def name(self) -> str:
        """Kind and place, as in `SourceRevision.source`."""
        ...

    def newest(self) -> Snapshot:
        """The newest snapshot. Blocks; the caller keeps it off the event loop.

        Raises:
            TransientError: the source cannot be read now.
            StalledError: it cannot be read until a person fixes it.
        """
        ...

    def keep(self, revision: SourceRevision) -> None:
        """An incarnation was made from `revision`: ensure that it can be read for ever."""
        ...

    def changes(self) -> AsyncIterator[None]:
        """Yields whenever there may be something new (a poll, a notification). Hints only."""
        ...
