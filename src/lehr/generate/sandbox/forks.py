"""Runs a function in a fork of this process, limited in time and memory.

The fork has a copy of everything and can damage nothing. Its printed output is caught; it sends results in
frames over a pipe, and continues while the caller processes them; however it ends, the caller learns of it.
"""

from __future__ import annotations

import contextlib
import enum
import fcntl
import functools
import gc
import math
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import NoReturn

import msgspec

from lehr.base.clock import Clock
from lehr.generate.outcome.protocol import LENGTH_BYTES, SandboxLimits
from lehr.generate.sandbox.confinement import Confinement, leave_network
from lehr.generate.sandbox.denials import deny
from lehr.generate.sandbox.meter import GRACE_SECONDS, Meter, Overrun

Send = Callable[[bytes], None]
Take = Callable[[bytes], None]
Work = Callable[[Send], None]

_CHUNK = 1 << 20
_PRINTED = 2000
_EXIT_BROKEN = 70
EXIT_NO_MEMORY = 71
"""Exit code of a fork without enough memory to report that it is out of memory."""

_MANY_FILES = 1 << 16

_LOOK_SECONDS = 0.25
"""Interval between two checks of a fork's resource usage."""

_MOST_ANSWERED = 1 << 30
"""Total bytes beyond which the kernel's limit on processor time is not raised."""


class LimitError(BaseException):
    """The processor time is used up. Not an `Exception`, so that few handlers swallow it."""


class RunResult(msgspec.Struct):
    """How a run went.

    Attributes:
        printed: the first bytes of stdout and stderr.
        overran: the limit that ended it; nothing if it exited.
        status: as `os.waitstatus_to_exitcode` has it: an exit code, or minus a signal's number.
    """

    printed: bytes
    overran: Overrun
    status: int

    @property
    def clean(self) -> bool:
        """Whether it exited after completing its work."""
        return not self.overran and self.status == 0


def run(
    work: Work, limits: SandboxLimits, clock: Clock, take: Take, interrupt: int | None = None
) -> RunResult:
    """Call `work(send)` in a fork and wait until it ends.

    Only for single-threaded processes. `limits.wall_seconds` and `limits.cpu_seconds` count from frame to
    frame, of which there are at most `limits.calls`, and `limits.answer_bytes` applies to each.

    Args:
        take: called with each frame as it arrives.
        interrupt: descriptor; the fork is killed as soon as it is readable.
    """
    confinement = _confinement()

    def start(send_to: int, print_to: int) -> int:
        child = os.fork()
        if child == 0:
            leave_network()
            be_forked(work, limits, send_to, print_to, confinement)
        return child

    return supervise(start, lambda child: os.waitpid(child, 0)[1], limits, clock, take, interrupt)


def supervise(
    start: Callable[[int, int], int],
    reap: Callable[[int], int],
    limits: SandboxLimits,
    clock: Clock,
    take: Take,
    interrupt: int | None = None,
) -> RunResult:
    """Listen to a fork, and kill it when it exceeds a limit.

    Args:
        start: forks a process that sends and prints to these two descriptors; returns its id.
        reap: waits for the process with that id, and returns its status.
        take: called with each frame as it arrives.
        interrupt: descriptor; the fork is killed as soon as it is readable.
    """
    answers, send_to = os.pipe()
    output, print_to = os.pipe()
    _widen(send_to)
    child = start(send_to, print_to)
    os.close(send_to)
    os.close(print_to)
    handle = os.pidfd_open(child)
    collector = _Collector(answers, output, child, limits, clock, take)
    try:
        collector.collect(handle, interrupt)
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        status = reap(child)
        for descriptor in (answers, output, handle):
            os.close(descriptor)
    printed = bytes(collector.printed[:_PRINTED])
    return RunResult(printed, collector.overran, os.waitstatus_to_exitcode(status))


def _widen(pipe: int) -> None:
    """Let the fork continue with the next frames while one is processed."""
    with contextlib.suppress(OSError):  # the system does not allow more
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _CHUNK)


@contextlib.contextmanager
def cpu_limit(seconds: int) -> Iterator[None]:
    """Raise `LimitError` in this process once the block has used `seconds` of processor time."""
    signal.signal(signal.SIGPROF, _overrun)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _overrun(_number: int, _frame: object) -> NoReturn:
    raise LimitError


class _Collector:
    """Reads what a fork sends and prints until it ends or exceeds a limit."""

    def __init__(
        self, answers: int, output: int, child: int, limits: SandboxLimits, clock: Clock, take: Take
    ) -> None:
        self.printed = bytearray()
        self.overran = Overrun.NOTHING
        self._answers = answers
        self._output = output
        self._child = child
        self._limits = limits
        self._meter = Meter(limits)
        self._clock = clock
        self._hand_over = take
        self._began = clock.monotonic()
        self._away = 0.0
        self._pending = bytearray()

    def collect(self, handle: int, interrupt: int | None) -> None:
        """Read until then.

        Args:
            handle: descriptor that is readable once the fork has ended.
            interrupt: descriptor; reading stops as soon as it is readable.
        """
        poll = select.poll()
        if interrupt is not None:
            poll.register(interrupt, select.POLLIN)
        for descriptor in (self._answers, self._output, handle):
            os.set_blocking(descriptor, False)
            poll.register(descriptor, select.POLLIN)
        looked = 0.0
        while not self.overran:
            ready = {descriptor for descriptor, _ in poll.poll(_LOOK_SECONDS * 1000)}
            if interrupt in ready:
                self.overran = Overrun.INTERRUPTED
            elif handle in ready:
                self._drain()
                return
            else:
                for descriptor in ready:
                    if self._read(descriptor) is _Read.END:
                        poll.unregister(descriptor)
                if not self.overran and self._elapsed() - looked >= _LOOK_SECONDS:
                    looked = self._elapsed()
                    self.overran = self._meter.look(looked, _processor_seconds(self._child))

    def _elapsed(self) -> float:
        """Seconds since the start, without the time in which its answers were processed."""
        return self._clock.monotonic() - self._began - self._away

    def _drain(self) -> None:
        """Read the rest of the pipes: the writer has ended."""
        for descriptor in (self._answers, self._output):
            while not self.overran and self._read(descriptor) is _Read.SOMETHING:
                pass

    def _read(self, descriptor: int) -> _Read:
        """Read once: a writer that is faster than this reader must not prevent the checks of limits."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return _Read.NOTHING
        if not chunk:
            return _Read.END
        if descriptor == self._answers:
            self._take(chunk)
        elif len(self.printed) < _PRINTED:
            self.printed += chunk
        return _Read.SOMETHING

    def _take(self, chunk: bytes) -> None:
        self._pending += chunk
        while len(self._pending) >= LENGTH_BYTES and not self.overran:
            end = LENGTH_BYTES + int.from_bytes(self._pending[:LENGTH_BYTES], "big")
            if end > self._limits.answer_bytes:
                self.overran = Overrun.ANSWER
                return
            if len(self._pending) < end:
                return
            began = self._elapsed()
            self.overran = self._meter.answer(end, began)
            if not self.overran:
                self._hand_over(bytes(self._pending[LENGTH_BYTES:end]))
                self._away += self._elapsed() - began
                del self._pending[:end]


class _Read(enum.Enum):
    """The available bytes."""

    SOMETHING = enum.auto()
    NOTHING = enum.auto()
    END = enum.auto()


def _processor_seconds(process: int) -> float:
    """Processor seconds used by all threads of a process; 0 if it is gone."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


_confinement = functools.cache(Confinement)


def be_forked(
    work: Work, limits: SandboxLimits, send_to: int, print_to: int, confinement: Confinement
) -> NoReturn:
    """Run the fork. Never returns into the code of the parent process.

    Args:
        confinement: made by the parent process.
    """
    status = _EXIT_BROKEN
    # Earlier objects are never collected, so their pages stay shared, and no finalizer of one makes a call
    # for which the confinement ends this process.
    gc.freeze()
    try:
        os.dup2(print_to, 1)
        os.dup2(print_to, 2)
        _limit_resources(limits)
        confinement.apply()
        open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        highest = _MANY_FILES if open_files == resource.RLIM_INFINITY else open_files
        os.closerange(3, send_to)
        os.closerange(send_to + 1, highest)
        deny()
        work(lambda body: _write(send_to, body))
        status = 0
    except MemoryError:
        status = EXIT_NO_MEMORY
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


def _limit_resources(limits: SandboxLimits) -> None:
    with open("/proc/self/statm", "rb") as file:
        occupied = int(file.read().split()[0]) * resource.getpagesize()
    memory = occupied + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Applies even if no one checks any more; the size of the answers is not known yet.
    most = limits.cpu_seconds_in_all(limits.calls, min(limits.calls * limits.answer_bytes, _MOST_ANSWERED))
    seconds = math.ceil(most + GRACE_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _write(descriptor: int, body: bytes) -> None:
    view = memoryview(len(body).to_bytes(LENGTH_BYTES, "big") + body)
    while view:
        view = view[os.write(descriptor, view) :]
