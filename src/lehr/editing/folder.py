"""A plain directory: each file is replaced whole, in place."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from lehr.base.clock import Clock
from lehr.base.durable import replace
from lehr.base.errors import StalledError, raised_as
from lehr.editing.folder_lock import locked
from lehr.editing.places import MovedError, Tip
from lehr.sdk.source import Snapshot
from lehr.sources.directory import DirectorySource


class FolderTip:
    """The current files, as `Tip`. `Folder.write` expects them unchanged since they were read."""

    id = ""

    def __init__(self, folder: Path, source: DirectorySource) -> None:
        self.contents: dict[str, bytes] = {}
        self._folder = folder
        self._source = source

    def read(self, file: str) -> bytes | None:
        content = _content(self._folder, file)
        if content is not None:
            self.contents[file] = content
        return content

    def snapshot(self) -> Snapshot:
        return self._source.newest()


class Folder:
    """A directory on this machine.

    In an edit of several files, each is written atomically; all are prepared before any is written.
    """

    def __init__(self, path: Path, state: Path, *, clock: Clock) -> None:
        self._path = path.expanduser().absolute()
        self._source = DirectorySource(self._path, state / "editing" / "directory.git", clock=clock)

    @property
    def name(self) -> str:
        """Its name as a directory source."""
        return self._source.name

    def held(self) -> AbstractContextManager[None]:
        return locked(self._path)

    def tip(self) -> FolderTip:
        return FolderTip(self._path, self._source)

    def write(self, tip: Tip, contents: Mapping[str, bytes], message: str, author: str | None) -> str:
        """As `Place.write`, but without a commit: there is no id, and the message is ignored."""
        assert isinstance(tip, FolderTip)
        if any(_content(self._path, file) != tip.contents[file] for file in contents):
            raise MovedError
        for file, content in contents.items():
            what = f"{self._path / file} cannot be written"
            fix = "check that this user can write there and that there is free space"
            with raised_as(StalledError, what, code="EDT120", fix=fix):
                before = (self._path / file).stat()
                mode, owner = stat.S_IMODE(before.st_mode), (before.st_uid, before.st_gid)
                replace(self._path / file, content, mode, owner)
        return ""


def _content(folder: Path, file: str) -> bytes | None:
    """The content of a regular file; no symbolic link on the way is followed."""
    path = folder
    for part in file.split("/"):
        path /= part
        if path.is_symlink():
            raise StalledError(
                f"{path} is a symbolic link",
                code="EDT121",
                why="it is never followed: it could lead anywhere",
                fix="name the file itself",
            )
    with raised_as(StalledError, f"{path} cannot be read", code="EDT122", fix="let this user read it"):
        return path.read_bytes() if path.is_file() else None
