"""Another partition's incarnation as a source, pinned by its digest: one file for each asset."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.digest import canonical
from lehr.base.errors import StalledError
from lehr.model.asset import Asset
from lehr.model.declared_sources import PartitionPlace
from lehr.model.incarnation import SourceRevision
from lehr.sources.archive import Archive, ArchivedSource, HeldSnapshot
from lehr.sources.hints import Hints
from lehr.sources.tree import TreeSnapshot

ReadReleased = Callable[[PartitionPlace], Iterable[Asset]]
"""The assets of an incarnation whose digest was verified. Raises `TransientError` or `StalledError`."""

_POLL = 60.0


class ReleasedSource(ArchivedSource):
    """One incarnation, which never changes. Its revision is its digest.

    Once kept, it is read from the archive: a partition does not stop because another one is gone.

    Args:
        declared: the incarnation and its location.
        archive: where the files of kept revisions are or will be stored.
        read: reads and verifies it.
    """

    def __init__(
        self, declared: PartitionPlace, archive: Path, read: ReadReleased, *, clock: Clock, blocking: Blocking
    ) -> None:
        super().__init__(Archive(archive), Hints(clock, _POLL, blocking=blocking))
        self._declared = declared
        self._read = read

    @property
    def name(self) -> str:
        """`partition:NAME@SEQUENCE`."""
        return f"partition:{self._declared.name}"

    def newest(self) -> HeldSnapshot | TreeSnapshot:
        """The incarnation.

        Raises:
            TransientError, StalledError: it cannot be read, or its digest differs.
        """
        revision = SourceRevision(self.name, self._declared.digest)
        found = self._archive.kept(revision)
        if found is None:
            found = HeldSnapshot(revision, documents_of(self._read(self._declared)))
            self._archive.hold(found)
        return found


def documents_of(assets: Iterable[Asset]) -> dict[str, bytes]:
    """A file for each asset: `TYPE/ID.json`, an asset's document in canonical JSON.

    Raises:
        StalledError: one asset's file is needed as a folder for another's.
    """
    files = {f"{asset.type}/{asset.id}.json": canonical(_document(asset)) + b"\n" for asset in assets}
    for path in files:
        above = next((str(folder) for folder in PurePosixPath(path).parents if str(folder) in files), None)
        if above is not None:
            raise StalledError(
                f"{above} and {path} cannot both be files",
                code="SRC131",
                why="assets are mounted as TYPE/ID.json, and the file of one is the folder of the other",
                fix="give one of the two assets a different id, and promote again",
            )
    return files


def _document(asset: Asset) -> dict[str, Any]:
    """The asset as in an asset file, with type versions: the reader may know later versions of the types."""
    document = asset.document()
    document["versions"] = {name: asset.version(name) for name in document["addons"]}
    return document | {"version": asset.version(asset.type)}
