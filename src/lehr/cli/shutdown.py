"""Shutdown of long-running commands: by signals, time limits and, if necessary, by force."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click

from lehr.base.blocking import LastResort, under_way
from lehr.cli import formatting
from lehr.cli.run_log import report

T = TypeVar("T")

_INTERRUPTED = 130
_TERMINATED = 143
_FORCE_SECONDS = 60.0
"""Seconds until a forced exit: longer than running pushes and the shutdown after them may take."""

_LINGER_SECONDS = 3.0


class EndedError(Exception):
    """A shutdown was requested before the work was done."""


class Ending:
    """Set by the first termination signal or by a time limit. A second signal exits immediately.

    Once it is set, the process ends even if something hangs: after a minute by force, with code 1.

    Attributes:
        code: exit code.
        timed_out: True if it was the time limit.
    """

    def __init__(self, message: str) -> None:
        """`message` is printed at the first signal."""
        self.code = 0
        self.timed_out = False
        self._message = message
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._forced: LastResort | None = None
        self._signalled = False
        self._before: dict[int, Any] = {}

    def is_set(self) -> bool:
        """Whether a shutdown was requested."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until a shutdown is requested."""
        await self._event.wait()

    def after(self, seconds: float) -> None:
        """Request a shutdown in `seconds`."""

        def end() -> None:
            if not self.is_set():
                self.timed_out, self.code = True, 1
                self.begin()

        self._loop.call_later(seconds, end)
        # A blocked loop would not call it.
        self._forced = LastResort(seconds + _FORCE_SECONDS, 1, _report_force)

    def begin(self) -> None:
        """From now on, the process must end."""
        if self._forced is not None:
            self._forced.disarm()
        self._forced = LastResort(_FORCE_SECONDS, 1, _report_force)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._event.set()

    async def unless(self, work: Coroutine[Any, Any, T]) -> T:
        """Result of `work`.

        Raises:
            EndedError: a shutdown was requested first; `work` was cancelled.
        """
        task = asyncio.ensure_future(work)
        waiting = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise EndedError
        finally:
            for item in (task, waiting):
                item.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """As `signal.signal` calls it: in the main thread, also while a plugin blocks the event loop."""
        if self._signalled:
            os._exit(_INTERRUPTED if number == signal.SIGINT else _TERMINATED)
        self._signalled = True
        self.code = _INTERRUPTED if number == signal.SIGINT else 0
        self.timed_out = False
        signal.setitimer(signal.ITIMER_REAL, _FORCE_SECONDS)  # until the loop, which may be blocked, begins
        self._loop.call_soon_threadsafe(self.begin)
        self._loop.call_soon_threadsafe(report, self._message)

    def take_signals(self, hangup: Callable[[], None]) -> None:
        """From now on, signals request a shutdown; see `run_until_ended`."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self.on_signal)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _end_by_force)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            return
        if _has_terminal():
            self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self.on_signal)
        else:
            self._loop.add_signal_handler(signal.SIGHUP, hangup)

    def restore(self) -> None:
        """Restore the signal handlers; the process may continue."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._forced is not None:
            self._forced.disarm()


class Hangup:
    """SIGHUP: check the source now. Key files are read at each use anyway.

    One that arrives before anything waits for it is not lost.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next SIGHUP."""
        await self._event.wait()
        self._event.clear()


def run_until_ended(
    main: Callable[[Ending], Coroutine[Any, Any, int]],
    message: str = "shutting down; production keeps running",
    hangup: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Run `main` with an `Ending`, and exit with the code that it returns.

    If the program was started from a terminal, SIGHUP means that the terminal is gone: the program ends as on
    SIGTERM. Otherwise it is a request to reload: `hangup` is called. Under nohup it stays ignored.

    Args:
        message: is printed at the first signal.

    Raises:
        Exit: with the exit code.
    """
    held: list[Ending] = []

    async def body() -> int:
        ended = Ending(message)
        held.append(ended)
        ended.take_signals(hangup)
        return await main(ended)

    try:
        code = asyncio.run(body())
    except SystemExit as error:  # of a task started by a plugin, which ends the event loop
        report(f"a plugin ended the program: {type(error).__name__}: {error}")
        code = 1
    finally:
        for ended in held:
            ended.restore()
    leave(code)


def leave(code: int) -> NoReturn:
    """End the process with `code`. Hanging calls in threads get a moment, but are not waited for.

    Raises:
        Exit: nothing hangs.
    """
    names = under_way(_LINGER_SECONDS)
    if not names:
        raise click.exceptions.Exit(code)
    report(f"exited without waiting for hanging threads: {', '.join(names)}")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _report_force() -> None:
    hangs = ", ".join(under_way()) or "the event loop or one of its tasks"
    report(
        f"forced exit {formatting.span(_FORCE_SECONDS)} after the shutdown request; still hanging: {hangs}"
    )


def _end_by_force(number: int, frame: FrameType | None) -> NoReturn:
    try:
        _report_force()
    finally:
        os._exit(1)


def _has_terminal() -> bool:
    """Whether a terminal controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
