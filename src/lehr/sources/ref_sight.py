"""Sees whether a ref of a repository on this machine may have moved, at once where the kernel reports it."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping

from lehr.base.inotify import GONE, DirectoryEvent, Inotify, On, reports_all
from lehr.sources.origin import LocalRepository


class RefSight:
    """Watches the files of a ref, and those of HEAD, whether they exist or not.

    Each `look` watches what is there now: directories that were replaced, and refs that have moved to another
    file. Without inotify, and on file systems that other machines or programs change, nothing is watched.

    Args:
        ref: the full name of the ref now.
        wake: called when the ref may have moved.
    """

    def __init__(self, origin: LocalRepository, ref: Callable[[], str], wake: Callable[[], None]) -> None:
        self._origin = origin
        self._ref = ref
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._inotify = self._open()
        self._names: Mapping[int, set[str]] = {}
        self._reported = False

    @property
    def reported(self) -> bool:
        """Whether the kernel reports changes after the last look."""
        return self._reported

    def look(self) -> Hashable:
        """Watch first, so that no change is missed between this look and the next."""
        ref = self._ref()
        self._reported = self._watch(ref)
        return self._origin.glance(ref)

    def close(self) -> None:
        """Stop watching."""
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.fileno())
            self._inotify = None  # a thread may still use it

    def _open(self) -> Inotify | None:
        try:
            inotify = Inotify()
        except OSError:
            return None
        self._loop.add_reader(inotify.fileno(), self._read, inotify)
        return inotify

    def _watch(self, ref: str) -> bool:
        """Watch the files of `ref`. False if changes of some may not be reported."""
        inotify = self._inotify
        if inotify is None:
            return False
        names: defaultdict[int, set[str]] = defaultdict(set)
        files = self._origin.files_of(ref)
        reported = all(map(reports_all, files.directories))
        try:
            for path in (files.marker, files.head, *files.refs) if reported else ():
                entry = inotify.place(os.fspath(path))
                names[entry.wd].add(entry.name)
        except OSError:
            reported = False
        before, self._names = self._names, names
        for wd in before.keys() - names.keys():
            inotify.forget(wd)
        return reported

    def _read(self, inotify: Inotify) -> None:
        if any(map(self._concerns, inotify.read())):
            self._wake()

    def _concerns(self, event: DirectoryEvent) -> bool:
        names = self._names.get(event.wd)
        if names is None:  # either no longer watched, or watched by a look that has not yet returned
            return not event.mask & On.IGNORED
        return bool(event.mask & GONE) or event.name in names
