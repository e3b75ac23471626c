"""The asset plugin of `lehr.File`: plugin authors can read it from top to bottom.

Its neighbours: `payload` is what people write; `compare` finds differences, and `texts` shows them in plans;
`pushes` carries out pushes, and `disk` replaces, moves and removes one file, each in a way that survives a
crash; `watch` gets notified of changes by the kernel; `owners` knows names and numbers; `validation` runs the
command that accepts new content; `discovery` drafts intent from existing files.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lehr.base.blocking import Blocking, Tracked
from lehr.base.clock import Clock, SystemClock
from lehr.base.errors import LehrError
from lehr.base.gathered import GatheredByGroup
from lehr.base.inotify import WatchedEntry
from lehr.model.asset import AssetKey, Partition
from lehr.model.diff import NO_DIFF, Diff, Goal, Target
from lehr.model.operation import DONE, Operation, Outcome, Progress
from lehr.plugins.file import discovery
from lehr.plugins.file.compare import changes
from lehr.plugins.file.entries import require_goal
from lehr.plugins.file.errors import errors_of
from lehr.plugins.file.payload import FILE, Contents, File, Intended
from lehr.plugins.file.pushes import FilePush, FilePushes
from lehr.plugins.file.texts import text_changes
from lehr.plugins.file.watch import Watch
from lehr.sdk import plugin
from lehr.sdk.plugin import AssetPlugin, IndexedDiff, Push, Reader, Traits
from lehr.sdk.protected import Protected
from lehr.sdk.secrets import NoSecrets, Secrets

_BRIEF_SECONDS = 0.1
"""How long one thread looks at the files of a batch alone, because several would wait for each other after
each system call. A file system that is slow is then asked by many threads."""

_PART = 16
"""Files for each of them."""

_THREADS = 16
"""Maximum number of threads that look at the files of one batch."""


_BATCHES = 2
"""Batches of pushes in one folder at the same time: one is written while the other waits for the disk."""

_PUSHES = 128
"""Pushes at the same time. The more there are, the more go together: into a folder, and into a commit."""

_MOST_TOGETHER = 64
"""Pushes in a batch. They end together."""

_SYNCS = 3
"""Threads that wait for the disk, for one batch: files that are synced at the same time share a write of the
file system's journal. More of them save little of that, and cost more than they save."""

_Seen = tuple[WatchedEntry | None, Diff]


class _Look(NamedTuple):
    number: int
    target: Target
    intended: Intended


class FilePlugin(AssetPlugin):
    """Keeps files as intended, by replacing them whole.

    * Production is a path of this machine, and files that a push may have left next to it.
    * A diff names `content` (by size and digest), `mode`, `owner`, `group`, or that something else is at the
      path.
    * A push writes a new file next to the old one and renames it over that, so that readers see the old
      content or the new, and a crash leaves one of them. FENCED moves the file aside, PRESENT brings it back,
      ABSENT removes both.
    * Its outcome is never in doubt for long: `status` waits for the thread that writes, and a push that died
      with Lehr has left at most a temporary file, which the next diff finds.
    * New content takes its place only once the `validate` command, if any, has accepted it.
    * It never follows a symbolic link at the path, or replaces a directory, device or pipe.
    * It shows content only for a plan (`texts`), and then neither secrets nor files that others may not read.

    Args:
        base: the directory that relative paths start from.
        blocking: a pool of this plugin's own, closed with it.
        looking: another one, for short calls: comparisons one by one, and the writing of pushes that wait for
            the disk in `blocking`; by default the same.
        fsync: whether a push ends only when the file would last through a crash of the machine.
            Without it such a crash can leave files empty, which the next diff finds.
        secrets: provides the content of files whose content is a secret.
        protected: folders in which nothing is changed.
        validating: a pool for pushes that wait for a `validate` command, so that one that hangs delays no
            other file; closed with the plugin.
        clock: time, for such commands.
        contents: provides the content of files whose content is a file of the workspace.
    """

    types = (FILE,)
    traits = Traits(goals=frozenset({Goal.FENCED, Goal.ABSENT}), turns=32, pushes=_PUSHES)

    def __init__(
        self,
        base: Path,
        blocking: Blocking,
        *,
        looking: Blocking | None = None,
        fsync: bool = True,
        secrets: Secrets | None = None,
        protected: Protected | None = None,
        validating: Blocking | None = None,
        clock: Clock | None = None,
        contents: Contents = lambda path, digest: None,
    ) -> None:
        self._base = base.absolute()
        self._blocking = blocking
        self._looking = looking or blocking
        self._writes = Tracked(blocking)
        self._validating = validating or blocking
        self._validated_writes = Tracked(self._validating)
        self._watch = Watch()
        self._secrets = secrets or NoSecrets()
        self._contents = contents
        self._pushes = FilePushes(
            str(self._base), protected or Protected({}), clock or SystemClock(), fsync=fsync
        )
        self._together = GatheredByGroup(self._push_together, at_once=_BATCHES, most=_MOST_TOGETHER)

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare the file with intent; see `compare.changes` for the paths."""
        intended = await self._intended(target, read)
        place, diff = await self._looking.run(self._look, intended, target.goal)
        self._watch.note(target.key, place)
        return diff

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        """Compare in few calls of threads: to call one takes eight times as long as to look at a file.

        Files whose content is a secret are left out.
        """
        looks: deque[_Look] = deque()
        for index, (target, read) in enumerate(requests):
            try:
                file = self._file(target, read)
            except LehrError as error:
                yield index, error
            else:
                if file.content_secret is None:
                    looks.append(_Look(index, target, Intended(file, contents=self._contents)))
        seen: deque[tuple[_Look, _Seen | LehrError]] = deque()
        calls: set[asyncio.Future[None]] = set()
        try:
            while looks or calls:
                more = min(-(-len(looks) // _PART), _THREADS - len(calls)) if calls else 1
                for _ in range(more):
                    calls.add(asyncio.ensure_future(self._blocking.run(self._look_at_all, looks, seen)))
                done, calls = await asyncio.wait(
                    calls, timeout=_BRIEF_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for call in done:
                    call.result()
                while seen:
                    look, found = seen.popleft()
                    if isinstance(found, LehrError):
                        yield look.number, found
                    else:
                        self._watch.note(look.target.key, found[0])
                        yield look.number, found[1]
        finally:
            looks.clear()  # a thread cannot be cancelled
            for call in calls:
                call.cancel()

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Compare again, since time has passed, and fix the differences."""
        intended = await self._intended(target, read)
        file = intended.file
        begun = self._pushes.begin(self._path(file), intended, target.goal)
        if file.validate is not None:
            [error] = await self._validated_writes.run(target.key, self._pushes.together([begun]).carry_out)
        elif file.owner is not None or file.group is not None:  # to find them may take long
            [error] = await self._writes.run(target.key, self._pushes.together([begun]).carry_out)
        else:
            pushing = self._together.ask(os.path.dirname(begun.path), begun)
            error = await self._writes.follow(target.key, pushing)
        if error is not None:
            raise error
        return DONE

    async def _push_together(self, folder: str, pushes: Sequence[FilePush]) -> Sequence[Exception | None]:
        batch = self._pushes.together(pushes)
        await self._looking.run(batch.write)
        if batch.unsynced <= 1:
            return await self._blocking.run(batch.finish)
        syncs = min(_SYNCS, batch.unsynced)
        await asyncio.gather(*(self._blocking.run(batch.sync) for _ in range(syncs)))
        await self._looking.run(batch.put_in_place)
        return await self._blocking.run(batch.finish)

    async def texts(self, target: Target, read: Reader) -> Sequence[plugin.TextChange]:
        """The content now and after a push; see `texts.text_changes` for what is hidden."""
        if target.goal is not Goal.PRESENT:
            return ()
        intended = Intended(self._file(target, read), contents=self._contents)
        return await self._blocking.run(self._texts, intended)

    async def status(self, operation: Operation) -> Progress:
        """RUNNING while the thread of a push that was cancelled has not returned."""
        return Progress.RUNNING if self._busy(operation.key) else Progress.ENDED

    async def watch(self) -> AsyncIterator[AssetKey]:
        """Keys of assets for whose files the kernel reported an event, except during their pushes.

        The event is then most likely the push, and the file is compared after it in any case.
        """
        async for key in self._watch.keys():
            if not self._busy(key):
                yield key

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[plugin.Found]:
        """Drafts of the files that paths and patterns name; relative ones as in intent."""
        base = str(self._base)
        paths = await self._blocking.run(discovery.matching, base, query)
        drafts = discovery.drafts(base, paths)
        while (draft := await self._blocking.run(next, drafts, None)) is not None:
            yield draft
        hidden = await self._blocking.run(discovery.hidden, base, query)
        for found in discovery.skipped(base, hidden):
            yield found

    async def close(self) -> None:
        self._watch.close()
        self._blocking.close()
        self._looking.close()
        self._validating.close()

    def _file(self, target: Target, read: Reader) -> File:
        require_goal(self, target)
        return read.payload(target.id, File)

    def _busy(self, key: AssetKey) -> bool:
        return self._writes.busy(key) or self._validated_writes.busy(key)

    async def _intended(self, target: Target, read: Reader) -> Intended:
        file = self._file(target, read)
        if file.content_secret is None or target.goal is not Goal.PRESENT:
            return Intended(file, contents=self._contents)
        return Intended(file, await self._secrets.read(file.content_secret))

    # --- in a thread -------------------------------------------------------------

    def _look_at_all(self, looks: deque[_Look], seen: deque[tuple[_Look, _Seen | LehrError]]) -> None:
        """Move from `looks` to `seen` until nothing is left. Several threads may share both."""
        while True:
            try:
                look = looks.popleft()
            except IndexError:
                return
            try:
                seen.append((look, self._look(look.intended, look.target.goal)))
            except LehrError as error:
                seen.append((look, error))

    def _look(self, intended: Intended, goal: Goal) -> _Seen:
        path = self._path(intended.file)
        # Watched before it is read, so that no change is missed in between.
        place = self._watch.place(path)
        with errors_of(path):
            found = tuple(changes(path, intended, goal))
        return place, Diff(found) if found else NO_DIFF

    def _texts(self, intended: Intended) -> tuple[plugin.TextChange, ...]:
        path = self._path(intended.file)
        with errors_of(path):
            return text_changes(path, intended)

    def _path(self, file: File) -> str:
        return os.path.join(self._base, file.path)
