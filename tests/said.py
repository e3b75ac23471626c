"""What a running program says, waited for with a limit."""

from __future__ import annotations

import contextlib
import queue
import re
import subprocess
import threading
from typing import IO

_SECONDS = 30.0


def said(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Match of the first line on stderr that `pattern` is found in. What follows is read and dropped.

    Raises:
        AssertionError: it does not come in time, or the program ends without it. It is killed.
    """
    assert process.stderr is not None
    lines: list[str] = []
    found: list[re.Match[str]] = []
    come = threading.Event()
    stderr = process.stderr

    def read() -> None:
        for line in stderr:
            if not come.is_set():
                lines.append(line)
                if match := re.search(pattern, line):
                    found.append(match)
                    come.set()
        come.set()

    # Read to the end: a program whose pipe is full stands still.
    threading.Thread(target=read, daemon=True).start()
    if not come.wait(_SECONDS) or not found:
        process.kill()
        raise AssertionError(f"no line with {pattern!r}: {''.join(lines)}")
    return found[0]


def address(process: subprocess.Popen[str]) -> str:
    """URL at which `lehr serve` or `lehr run` answers."""
    return said(process, r"serving at (http://\S+)")[1]


class Output:
    """What a program writes to stdout, or to another stream, line by line."""

    def __init__(self, stream: IO[str] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError):  # it may be closed
            for line in self._stream:
                self._lines.put(line)
        self._lines.put("")

    def until(self, pattern: str) -> list[str]:
        """The next lines, up to the first that `pattern` is found in.

        Raises:
            AssertionError: it does not come in time, or the program ends without it.
        """
        lines: list[str] = []
        while not lines or not re.search(pattern, lines[-1]):
            try:
                line = self._lines.get(timeout=_SECONDS)
            except queue.Empty:
                line = ""
            assert line, f"no line with {pattern!r}: {''.join(lines)}"
            lines.append(line.rstrip("\n"))
        return lines

    def rest(self) -> list[str]:
        """The lines that remain when the program has ended."""
        return [line.rstrip("\n") for line in iter(lambda: self._lines.get(timeout=_SECONDS), "")]
