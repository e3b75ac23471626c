"""Processes: started, awaited for a time, ended with their whole group; output is bounded.

`asyncio.subprocess` would start them on the event loop, where one program on a hung file system stops
everything, and would wait for daemons that keep a pipe open.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable
from typing import NamedTuple, Self

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.text import one_line
from lehr.plugins.launch import Launch, start
from lehr.plugins.mark import Mark
from lehr.sdk.secrets import HIDDEN, NOTHING_HIDDEN, Hidden

MOST_OUTPUT = 2000
"""Bytes kept from the beginning and from the end of each stream."""

_CHUNK = 1 << 16
_MOST_CHUNKS_AFTER_END = 32
_SHORT_WHILE = 0.02
_DYING = 5.0  # seconds after which a killed process counts as one that cannot be killed


class ProcessResult(NamedTuple):
    """How a process ended.

    Attributes:
        code: exit code; negative for the signal that killed it; None if it could not be killed.
        timed_out: it was ended because its time was over.
        survivors: processes that it started may still run.
        whole, whole_errors: standard output and error, where asked for; None if longer than that.
    """

    code: int | None
    output: Excerpt
    errors: Excerpt
    timed_out: bool = False
    survivors: bool = False
    whole: bytes | None = None
    whole_errors: bytes | None = None


class Excerpt:
    """The beginning and the end of a stream of any length.

    Args:
        hidden: secrets that are not shown. Enough extra bytes are kept that no secret is cut in two.
    """

    def __init__(self, hidden: Hidden = NOTHING_HIDDEN) -> None:
        self._hidden = hidden
        self._most = MOST_OUTPUT + hidden.longest
        self._first = b""
        self._last = b""
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._first += chunk[: self._most - len(self._first)]
        self._last = (self._last + chunk)[-self._most :]

    def first(self) -> str:
        """The first lines, on one line."""
        shown = self._hidden.blotted(self._first)[:MOST_OUTPUT]
        return _one_line(shown) + (" ..." if self._size > MOST_OUTPUT else "")

    def last(self) -> str:
        """The last lines, on one line."""
        shown = self._hidden.blotted(self._last)[-MOST_OUTPUT:]
        return ("... " if self._size > MOST_OUTPUT else "") + _one_line(shown)


class WholeStream(Excerpt):
    """A stream that is kept whole up to `most` bytes, and its excerpt."""

    def __init__(self, hidden: Hidden, most: int) -> None:
        super().__init__(hidden)
        self._rest = most
        self._parts: list[bytes] = []

    def add(self, chunk: bytes) -> None:
        super().add(chunk)
        self._rest -= len(chunk)
        if self._rest >= 0:
            self._parts.append(chunk)

    def whole(self) -> bytes | None:
        """All of it; None if it was too long to be kept."""
        return b"".join(self._parts) if self._rest >= 0 else None


class Processes:
    """Runs processes, each in a session and a process group of its own."""

    def __init__(self, blocking: Blocking, clock: Clock, *, grace: float) -> None:
        """Run processes.

        Args:
            grace: seconds from asking a process to end until it is killed.
        """
        self._blocking = blocking
        self._clock = clock
        self._grace = grace
        self._tasks: dict[asyncio.Task[ProcessResult], Launch] = {}

    async def run(self, launch: Launch) -> ProcessResult:
        """Run to its end or time-out. If this call is cancelled, the process is ended (or `outlives` it).

        Raises:
            StalledError: the program or the directory does not exist, or may not be used.
            TransientError: the machine could not start it.
        """
        stop = asyncio.Event()
        # A separate task, since ending a process takes longer than a cancelled caller has.
        task = asyncio.ensure_future(self._supervise(launch, stop))
        self._tasks[task] = launch
        task.add_done_callback(self._done)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            if not launch.outlives:
                stop.set()
            raise
        return task.result()

    def runs(self, mark: Mark) -> bool:
        """Whether this object started a process with this mark and has not finished with it."""
        return any(
            launch.mark is not None and launch.mark.path == mark.path for launch in self._tasks.values()
        )

    async def ended(self, concerns: Callable[[Launch], bool]) -> None:
        """Wait until none of these processes runs, also of those that are being ended."""
        while tasks := [task for task, launch in self._tasks.items() if concerns(launch)]:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        """End what still runs, except what outlives Lehr."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _done(self, task: asyncio.Task[ProcessResult]) -> None:
        del self._tasks[task]
        if not task.cancelled():
            task.exception()  # if no caller waits any more, none misses it

    async def _supervise(self, launch: Launch, stop: asyncio.Event) -> ProcessResult:
        process = await self._started(launch)
        with _Child(process, launch) as child:
            try:
                await self._first_of(launch.timeout, child.ended, stop)
                timed_out = not child.ended.is_set()
                if timed_out:
                    await self._end(child, launch)
            except asyncio.CancelledError:
                await self._abandon(child, launch)
                raise
            finally:
                code = child.reap()
            ended = ProcessResult(
                *(code, child.output, child.errors, timed_out),
                whole=child.output.whole(),
                whole_errors=child.errors.whole(),
            )
        if launch.mark is None:
            return ended
        if timed_out:
            return ended._replace(survivors=not await self._all_ended(launch.mark))
        await self._blocking.run(launch.mark.forget)
        return ended

    async def _started(self, launch: Launch) -> subprocess.Popen[bytes]:
        """A new process. If this call is cancelled, the thread still starts it, and it is then abandoned."""
        starting = asyncio.ensure_future(self._blocking.run(start, launch))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            if starting.exception() is None:
                with _Child(starting.result(), launch) as child:
                    await self._abandon(child, launch)
                    child.reap()
            raise

    async def _end(self, child: _Child, launch: Launch) -> None:
        if launch.interrupt is None:
            child.signal(signal.SIGTERM)
        else:
            child.interrupt(launch.interrupt)
        await self._first_of(self._grace if launch.grace is None else launch.grace, child.ended)
        await self._kill(child)  # including those of the group that outlive their leader

    async def _abandon(self, child: _Child, launch: Launch) -> None:
        if launch.interrupt is not None and not launch.outlives:
            await self._end(child, launch)
        elif not launch.outlives:
            await self._kill(child)

    async def _kill(self, child: _Child) -> None:
        child.signal(signal.SIGKILL)
        await self._first_of(_DYING, child.ended)

    async def _all_ended(self, mark: Mark) -> bool:
        """Wait briefly for killed processes, which end a little later."""
        deadline = self._clock.monotonic() + _DYING
        while await self._blocking.run(mark.running):
            if self._clock.monotonic() > deadline:
                return False
            await self._clock.sleep(_SHORT_WHILE)
        return True

    async def _first_of(self, seconds: float, *events: asyncio.Event) -> None:
        """Return when one of `events` is set, or after `seconds`."""
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait([*waits, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*waits, timer):
                task.cancel()


class _Child:
    """A process as seen by the event loop."""

    def __init__(self, process: subprocess.Popen[bytes], launch: Launch) -> None:
        hidden = Hidden(launch.secrets.values())
        self.ended = asyncio.Event()
        self.output = WholeStream(hidden, launch.whole)
        self.errors = WholeStream(hidden, launch.whole)
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._pipes: dict[int, Excerpt] = {}

    def __enter__(self) -> Self:
        self._handle = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._handle, self._end)
        for pipe, excerpt in ((self._process.stdout, self.output), (self._process.stderr, self.errors)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._pipes[pipe.fileno()] = excerpt
                self._loop.add_reader(pipe.fileno(), self._read, pipe.fileno())
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (self._handle, *self._pipes):
            self._loop.remove_reader(descriptor)
        os.close(self._handle)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def signal(self, number: int) -> None:
        """Signal the whole group. Only before `reap`: afterwards the number may be another's."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def interrupt(self, number: int) -> None:
        """Signal the first process alone. Only before `reap`."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._process.pid, number)

    def reap(self) -> int | None:
        """The exit code, after reading what is still in the pipes; None if it has not ended.

        Pipes that daemons keep open are not waited for: the output of the process itself is complete.
        """
        for descriptor in list(self._pipes):
            for _ in range(_MOST_CHUNKS_AFTER_END):
                if not self._read(descriptor):
                    break
        return self._process.poll()

    def _end(self) -> None:
        self._loop.remove_reader(self._handle)
        self.ended.set()

    def _read(self, descriptor: int) -> bool:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._loop.remove_reader(descriptor)
            return False
        self._pipes[descriptor].add(chunk)
        return True


def _one_line(data: bytes) -> str:
    """`data` on one line. NUL bytes count as a hidden secret, even if the program printed them itself."""
    return one_line(re.sub("\0+", HIDDEN, data.decode(errors="replace")))
