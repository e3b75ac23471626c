"""How a program that runs for long is asked to end, and that it does."""

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
from lehr.cli import words

T = TypeVar("T")

_INTERRUPTED = 130
_TERMINATED = 143
_FORCE_SECONDS = 60.0
"""After which an end is forced: longer than pushes under way get, and closing everything after them."""

_LINGER_SECONDS = 3.0


class EndedError(Exception):
    """The end was asked for before the work was done."""


class Ending:
    """Set by the first signal that asks for the end, or by a time limit. A second signal exits immediately.

    Once it is set, the process ends whatever hangs in it: after a minute by force, and with code 1.

    Attributes:
        code: exit code.
        timed_out: True if it was the time limit.
    """

    def __init__(self, told: str) -> None:
        """`told` is printed at the first signal."""
        self.code = 0
        self.timed_out = False
        self._told = told
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._forced: LastResort | None = None
        self._signalled = False
        self._before: dict[int, Any] = {}

    def is_set(self) -> bool:
        """Whether the end was asked for."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait until the end is asked for."""
        await self._event.wait()

    def after(self, seconds: float) -> None:
        """Ask for the end in `seconds`."""

        def end() -> None:
            if not self.is_set():
                self.timed_out, self.code = True, 1
                self.begin()

        self._loop.call_later(seconds, end)
        # If the loop is blocked, nothing calls that.
        self._forced = LastResort(seconds + _FORCE_SECONDS, 1, _tell_force)

    def begin(self) -> None:
        """From now on the process has to end."""
        if self._forced is not None:
            self._forced.disarm()
        self._forced = LastResort(_FORCE_SECONDS, 1, _tell_force)
        self._event.set()

    async def unless(self, work: Coroutine[Any, Any, T]) -> T:
        """Result of `work`.

        Raises:
            EndedError: the end was asked for first; `work` was cancelled.
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
        self._loop.call_soon_threadsafe(self.begin)
        self._loop.call_soon_threadsafe(tell, self._told)

    def take_signals(self, hung_up: Callable[[], None]) -> None:
        """From now on, signals ask for the end; see `run_until_ended`."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self.on_signal)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            return
        if _has_terminal():
            self._before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self.on_signal)
        else:
            self._loop.add_signal_handler(signal.SIGHUP, hung_up)

    def restore(self) -> None:
        """Leave signals as they were; the process may go on."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._forced is not None:
            self._forced.disarm()


def run_until_ended(
    main: Callable[[Ending], Coroutine[Any, Any, int]],
    told: str = "ending; production goes on as it is",
    hung_up: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Run `main`, which is given what to wait for, and end with the exit code that it returns.

    SIGHUP means that a terminal is gone, where the program was started from one: then it ends as on SIGTERM.
    Elsewhere it means that files are to be read again: `hung_up` is called. Under nohup it stays ignored.

    Args:
        told: is printed at the first signal.

    Raises:
        Exit: with the exit code.
    """
    held: list[Ending] = []

    async def body() -> int:
        ended = Ending(told)
        held.append(ended)
        ended.take_signals(hung_up)
        return await main(ended)

    try:
        code = asyncio.run(body())
    except SystemExit as error:  # of a task that a plugin has begun, which takes the event loop along
        tell(f"a plugin has ended the program: {type(error).__name__}: {error}")
        code = 1
    finally:
        for ended in held:
            ended.restore()
    leave(code)


def tell(text: str) -> None:
    """Print it on stderr if possible: a terminal that is gone, or a full disk, ends nothing."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(text, err=True)


def leave(code: int) -> NoReturn:
    """End the process with `code`. Calls in threads that hang are given a moment, and not waited for.

    Raises:
        Exit: nothing hangs.
    """
    names = under_way(_LINGER_SECONDS)
    if not names:
        raise click.exceptions.Exit(code)
    tell(f"ended without waiting for what hangs: {', '.join(names)}")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _tell_force() -> None:
    hangs = ", ".join(under_way()) or "the event loop, or a task of it"
    tell(f"ended by force {words.span(_FORCE_SECONDS)} after the end was asked for; what hangs: {hangs}")


def _has_terminal() -> bool:
    """Whether a terminal controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
