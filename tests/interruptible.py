"""Commands that a test interrupts."""

from __future__ import annotations

import sys

_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lehr.cli.main import main
sys.exit(main())
"""


def interruptible(*arguments: str) -> list[str]:
    """`lehr` with these arguments, also below a shell that has background jobs ignore interrupts."""
    return [sys.executable, "-c", _PROGRAM, *arguments]
