"""A snapshot in memory, for tests of what reads snapshots."""

from __future__ import annotations

from collections.abc import Mapping

from lehr.base.digest import digest, digest_bytes
from lehr.model.incarnation import SourceRevision
from lehr.sdk.source import FileEntry


class MemorySnapshot:
    """A snapshot of files given as text or bytes. Implements `lehr.sdk.source.Snapshot`.

    Attributes:
        reads: every path that was read, in order.
    """

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self.reads: list[str] = []
        self._contents = {
            path: content.encode() if isinstance(content, str) else content for path, content in files.items()
        }
        self._files = {
            path: FileEntry(path, digest_bytes(content), len(content))
            for path, content in self._contents.items()
        }

    @property
    def revision(self) -> SourceRevision:
        return SourceRevision(
            "memory:", digest(sorted((path, self._files[path].content_id) for path in self._files))
        )

    def files(self) -> Mapping[str, FileEntry]:
        return self._files

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return self._contents[path]
