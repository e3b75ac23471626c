"""What a running program says, waited for with a limit."""

from __future__ import annotations

import re
import subprocess
import threading

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
