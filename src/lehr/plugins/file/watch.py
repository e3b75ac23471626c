"""Hints that a file may have changed, from the kernel's inotify.

Not noticed, and left to the resync: writes through a file that stays open, and what inotify does not report.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from lehr.base.errors import TransientError
from lehr.base.inotify import GONE, DirectoryEvent, Inotify, On, WatchedEntry
from lehr.base.log import Log
from lehr.model.asset import AssetKey

_log = Log()


class Watch:
    """Finds assets whose files may have changed.

    `place` may run in any thread; everything else belongs to the event loop.
    """

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._noted: dict[AssetKey, WatchedEntry | None] = {}
        self._keys: dict[int, dict[str, set[AssetKey]]] = {}
        self._unclaimed: set[int] = set()
        self._hints: dict[AssetKey, None] = {}
        self._wake = asyncio.Event()
        self._complained = False

    def place(self, path: str) -> WatchedEntry | None:
        """Have the kernel watch the directory of `path`, or the nearest above it that exists.

        A path that ends in a slash stands for everything in that directory.

        Called again for each read of a file, since the directory may have been replaced.
        """
        inotify = self._inotify
        if inotify is None:
            return None
        try:
            return inotify.place(path)
        except OSError as error:
            self._complain(error)
            return None

    def note(self, key: AssetKey, place: WatchedEntry | None) -> None:
        """The file of the asset `key` is watched at `place`; None if it is not watched."""
        before = self._noted.get(key)
        self._noted[key] = place
        if place == before:
            return
        if before is not None:
            self._keys.get(before.wd, {}).get(before.name, set()).discard(key)
        if place is not None:
            self._keys.setdefault(place.wd, {}).setdefault(place.name, set()).add(key)
            if place.wd in self._unclaimed:
                self._unclaimed.discard(place.wd)
                self._hint([key])

    async def keys(self) -> AsyncIterator[AssetKey]:
        """Keys of assets whose files may have changed, forever.

        Raises:
            TransientError: the machine has no inotify instance to spare.
        """
        self._inotify = self._open()
        asyncio.get_running_loop().add_reader(self._inotify.fileno(), self._read)
        try:
            self._hint(self._noted)  # files read before had no watch
            while True:
                await self._wake.wait()
                self._wake.clear()
                hints, self._hints = self._hints, {}
                for key in hints:
                    yield key
        finally:
            self.close()

    def close(self) -> None:
        """Stop watching."""
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno())
            self._inotify = None  # a thread may still use it
            self._keys.clear()
            self._unclaimed.clear()
            self._noted = dict.fromkeys(self._noted)

    def _open(self) -> Inotify:
        try:
            return Inotify()
        except OSError as error:
            raise TransientError(
                "files cannot be watched",
                code="FIL111",
                why=str(error.strerror),
                fix="raise fs.inotify.max_user_instances; until then drift is found by the resync",
            ) from error

    def _read(self) -> None:
        if self._inotify is not None:
            for event in self._inotify.read():
                self._take(event, self._inotify)

    def _take(self, event: DirectoryEvent, inotify: Inotify) -> None:
        if event.mask & On.OVERFLOW:
            self._hint(self._noted)
            return
        names = self._keys.get(event.wd)
        if names is None:
            # Watched by a thread that has not yet returned with the asset.
            self._unclaimed.add(event.wd)
        elif event.mask & GONE:
            for keys in names.values():
                self._hint(keys)
            if event.mask & On.MOVE_SELF:
                inotify.forget(event.wd)
            if event.mask & On.IGNORED:
                del self._keys[event.wd]
        else:
            self._hint(names.get(event.name, ()))
            self._hint(names.get("", ()) if event.name else ())

    def _hint(self, keys: Iterable[AssetKey]) -> None:
        self._hints.update(dict.fromkeys(keys))
        if self._hints:
            self._wake.set()

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            _log.warning("directory not watched", directory=error.filename, reason=error.strerror)
