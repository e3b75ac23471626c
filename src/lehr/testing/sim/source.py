"""A simulated source of truth: files in memory, and a control plane's view of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from types import MappingProxyType

import msgspec

from lehr.base.clock import Clock
from lehr.base.digest import digest_all, digest_bytes
from lehr.base.errors import TransientError
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry
from lehr.testing.sim.trace import Trace

NAME = "simulated:intent"
"""As in `SourceRevision.source`."""


class Files(msgspec.Struct, frozen=True):
    """One revision of the files. A `lehr.sdk.source.Snapshot`."""

    revision: SourceRevision
    entries: Mapping[str, FileEntry]
    contents: Mapping[str, bytes]

    def files(self) -> Mapping[str, FileEntry]:
        return self.entries

    def read(self, path: str) -> bytes:
        return self.contents[path]


def files(contents: Mapping[str, bytes]) -> Files:
    """The revision that consists of `contents`, by path."""
    entries = {
        path: FileEntry(path, digest_bytes(content), len(content))
        for path, content in sorted(contents.items())
    }
    revision = digest_all(part for entry in entries.values() for part in (entry.path, entry.content_id))
    return Files(SourceRevision(NAME, revision), MappingProxyType(entries), MappingProxyType(dict(contents)))


class Repository:
    """Where intent is edited. Outlives every control plane.

    Attributes:
        newest: the revision that is there now.
        unreadable: True while it cannot be read.
        announcing: False while edits are not announced.
        past: every revision that was there, oldest first.
        garble: text that cannot be encoded, if its errors contain such text.
        kept: revisions that incarnations were made from.
    """

    def __init__(self, trace: Trace) -> None:
        self.newest = files({})
        self.unreadable = False
        self.announcing = True
        self.past: list[str] = []
        self.kept: set[str] = set()
        self._trace = trace
        self.garble = ""
        self._failed = 0
        self._readers: list[asyncio.Event] = []

    def read(self) -> Files:
        """The files that a control plane finds when it reads now.

        Raises:
            TransientError: it cannot be read.
            ValueError: it cannot either, and the source's author has not foreseen that.
        """
        if self.unreadable:
            self._failed += bool(self.garble)
            if self._failed % 2:
                raise ValueError(self.garble)
            raise TransientError("the repository cannot be read", why=f"no route to host{self.garble}")
        return self.newest

    def edit(self, contents: Mapping[str, bytes], what: str) -> None:
        """Replace everything by `contents`."""
        self.newest = files(contents)
        self.past.append(self.newest.revision.revision)
        self._trace.note("edit", what)
        self.announce()

    @contextlib.contextmanager
    def lost(self) -> Iterator[None]:
        """Within the block, it cannot be read; then every reader is notified."""
        self.unreadable = True
        try:
            yield
        finally:
            self.unreadable = False
            self.announce()

    @property
    def followed(self) -> bool:
        """True while there are readers to notify."""
        return bool(self._readers)

    def announce(self) -> None:
        """Notify every reader that there may be something new."""
        for reader in self._readers if self.announcing else ():
            reader.set()

    @contextlib.contextmanager
    def following(self) -> Iterator[asyncio.Event]:
        """An event that is set at every edit within the block."""
        reader = asyncio.Event()
        self._readers.append(reader)
        try:
            yield reader
        finally:
            self._readers.remove(reader)


class SimulatedSource:
    """One control plane's `lehr.sdk.source.Source` over a `Repository`."""

    name = NAME

    def __init__(self, repository: Repository, clock: Clock, poll: float) -> None:
        """Look every `poll` seconds on its own."""
        self._repository = repository
        self._clock = clock
        self._poll = poll

    def newest(self) -> Files:
        return self._repository.read()

    def keep(self, revision: SourceRevision) -> None:
        self._repository.kept.add(revision.revision)

    async def changes(self) -> AsyncIterator[None]:
        with self._repository.following() as edited:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._poll):
                        await edited.wait()
                edited.clear()
                yield
