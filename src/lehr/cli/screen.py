"""The whole terminal, for pictures that replace each other."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterable, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

import click

from lehr.cli.live import Entries
from lehr.query.partition_view import Reading

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The alternate screen, without a cursor; long lines are cut by the terminal."""

_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"

_ROWS = 24
"""Of a terminal that does not report its size."""


def shows_pictures() -> bool:
    """Whether stdout is a terminal whose cursor can be moved."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def picture(lines: Sequence[str], rows: int) -> str:
    """Text that draws as many of `lines` as fit over the last picture, without an empty screen in between."""
    if len(lines) > rows:
        lines = [*lines[: rows - 1], f"and {len(lines) - rows + 1} more lines"]
    drawn = "\r\n".join(f"\x1b[K{line}" for line in lines)
    rest = "" if len(lines) >= rows else "\r\n\x1b[J" if lines else "\x1b[J"
    return f"\x1b[?2026h\x1b[H{drawn}{rest}\x1b[?2026l"


class Screen:
    """The terminal, which is as before when this context ends, however it ends.

    `q` and Ctrl-C end the command; Ctrl-Z suspends it.
    """

    def __init__(self) -> None:
        self._lines: Sequence[str] = ()
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._settings: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._woken, self._wake = os.pipe()

    def __enter__(self) -> Self:
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number, handler in (
            (signal.SIGWINCH, lambda *_: None),
            (signal.SIGTSTP, self._suspend),
            (signal.SIGTERM, _terminated),
        ):
            self._handlers[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._woken)
        os.close(self._wake)

    def draw(self, lines: Sequence[str]) -> None:
        """Show `lines` instead of those before."""
        self._lines = lines
        # Not as in the variable LINES, which does not change.
        rows = os.get_terminal_size(sys.stdout.fileno()).lines or _ROWS
        self._write(picture(lines, rows))

    def pause(self, seconds: float) -> None:
        """Wait that long, or until the terminal has another size; draw in that size.

        Raises:
            Exit: the user has pressed `q`.
        """
        watched = [self._woken] if self._keys is None else [self._woken, self._keys]
        ready, _, _ = select.select(watched, (), (), seconds)
        if self._woken in ready:
            os.read(self._woken, 512)
            self.draw(self._lines)
        if self._keys in ready and self._keys is not None:
            pressed = os.read(self._keys, 512)
            if b"q" in pressed.lower():
                raise click.exceptions.Exit(0)
            if not pressed:
                self._keys = None

    def _take(self) -> None:
        if self._keys is not None:
            self._settings = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
        self._write(_ENTER)

    def _give_back(self) -> None:
        self._write(_LEAVE)
        if self._keys is not None and self._settings is not None:
            termios.tcsetattr(self._keys, termios.TCSADRAIN, self._settings)

    def _suspend(self, number: int, _frame: FrameType | None) -> None:
        self._give_back()
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # continues here
        signal.signal(number, handler)
        self._take()

    @staticmethod
    def _write(text: str) -> None:
        # Not through the buffer of stdout: the handler of a signal may write while it is in use.
        left = text.encode()
        while left:
            left = left[os.write(sys.stdout.fileno(), left) :]


class Picture:
    """A `Live` that draws lines on a screen."""

    def __init__(self, screen: Screen, lines: Callable[[Reading, Entries], Iterable[str]]) -> None:
        """`lines` returns what to show now."""
        self._screen = screen
        self._find = lines
        self._lines: list[str] = []

    def show(self, reading: Reading, entries: Entries) -> None:
        self._lines = list(self._find(reading, entries))
        self._screen.draw(self._lines)

    def report(self, trouble: str) -> None:
        outdated = [f"{trouble}; trying again", ""] if trouble else []
        self._screen.draw([*outdated, *self._lines])

    def pause(self, seconds: float) -> None:
        self._screen.pause(seconds)


def _terminated(number: int, _frame: FrameType | None) -> None:
    raise click.exceptions.Exit(128 + number)
