"""System calls that Python's library has no function for."""

from __future__ import annotations

import ctypes
import os
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(number: int, *arguments: Any) -> int:
    """Make a system call.

    Raises:
        OSError: it refuses.
    """
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments))


def prctl(option: int, *arguments: Any) -> int:
    """Call `prctl`. Raises as `syscall`."""
    rest = [item if isinstance(item, ctypes.c_void_p) else ctypes.c_ulong(item) for item in arguments]
    rest += [ctypes.c_ulong(0)] * (4 - len(rest))
    return _checked(_libc.prctl(option, *rest))


def unshare(flags: int) -> None:
    """Stop sharing namespaces with other processes. Raises as `syscall`."""
    _checked(_libc.unshare(flags))


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
