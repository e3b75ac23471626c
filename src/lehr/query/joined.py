"""The past of several sources as one, with the files of each in the same folder as during generation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec.structs import replace

from lehr.model.incarnation import SourceRevision
from lehr.model.provenance import Commit
from lehr.sdk.source import FileEntry


class Past(Protocol):
    """A revision of a source that an incarnation was made from."""

    @property
    def commit(self) -> Commit | None:
        """The commit that the revision is; None if it is not one."""
        ...

    def files(self) -> Mapping[str, FileEntry]:
        """All its files by path."""
        ...

    def read(self, path: str) -> bytes:
        """The content of one of its files."""
        ...

    def last_change(self, path: str, line: int = 0) -> Commit | None:
        """The last commit that changed a file, or a line of it (from 1); None where that is not known."""
        ...


History = Callable[[SourceRevision], Past | None]
"""The stored past of a revision; None if there is none."""


def past_of(sources: Iterable[SourceRevision], history: History) -> Past | None:
    """The stored part of the past that an incarnation was made from; None if nothing is stored."""
    found = {source.folder: past for source in sources if (past := history(source)) is not None}
    if not found.keys() - {""}:
        return found.get("")
    return _Joined(found)


class _Joined:
    """Pasts by folder; "" for the one whose files are not in a folder."""

    def __init__(self, parts: Mapping[str, Past]) -> None:
        self._parts = parts
        self._files: dict[str, FileEntry] | None = None

    @property
    def commit(self) -> Commit | None:
        return self._parts[""].commit if "" in self._parts else None

    def files(self) -> Mapping[str, FileEntry]:
        if self._files is None:
            self._files = {}
            for folder, past in self._parts.items():
                for path, entry in past.files().items():
                    whole = f"{folder}/{path}" if folder else path
                    self._files[whole] = replace(entry, path=whole)
        return self._files

    def read(self, path: str) -> bytes:
        past, inside = self._part(path)
        return past.read(inside)

    def last_change(self, path: str, line: int = 0) -> Commit | None:
        try:
            past, inside = self._part(path)
        except KeyError:
            return None
        return past.last_change(inside, line)

    def _part(self, path: str) -> tuple[Past, str]:
        """The owner of the file, and its path there. Raises `KeyError` if it has none."""
        for folder, past in self._parts.items():
            if folder and path.startswith(folder + "/"):
                return past, path[len(folder) + 1 :]
        return self._parts[""], path
