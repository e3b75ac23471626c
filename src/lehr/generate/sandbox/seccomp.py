"""A filter that allows only the system calls that a generator needs.

A known call that is not on the list ends the process with SIGSYS: continuing would hide it. A call that is
newer than the list fails as on an older kernel, so that a newer C library falls back. Threads of native code
are allowed: libraries start them when they are loaded. Reading the clock needs no system call, and cannot be
denied.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
import termios
from collections.abc import Callable, Iterable

from lehr.generate.sandbox.syscall_table import ABSENT, ALLOWED, ARCHITECTURES, CHECKED, Architecture
from lehr.generate.sandbox.syscalls import prctl

TRAP, ERRNO, ALLOW = 0x00030000, 0x00050000, 0x7FFF0000
"""Verdicts; the low 16 bits of `ERRNO` hold the error's number."""

THREAD_FLAGS = (0x3D0F00, 0x7D0F00)
"""Flags that glibc and musl pass to `clone` for a thread. Others could create a process or a namespace."""

_PR_SET_SECCOMP = 22
_PR_SET_NAME, _PR_GET_NAME, _PR_CAPBSET_READ = 15, 16, 23
_PR_SET_VMA = 0x53564D41  # names memory of this process
_TCGETS, _TCGETS2 = termios.TCGETS, 0x802C542A  # asks whether something is a terminal
_FIOCLEX = termios.FIOCLEX
_MODE_FILTER = 2
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_X32 = 0x40000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in the data that the filter gets for a call
_LOAD, _IF_EQUAL, _IF_ABOVE, _IF_AT_LEAST, _IF_BIT, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06


class Filter:
    """The filter for this machine, to be applied in a fork.

    Raises:
        OSError: there is no filter for this architecture.
    """

    def __init__(self) -> None:
        architecture = ARCHITECTURES.get(platform.machine())
        if architecture is None:
            raise OSError(errno.ENOSYS, f"Lehr has no list of system calls for {platform.machine()}")
        self._architecture = architecture

    def apply(self) -> None:
        """Filter the calls of this process permanently. `no_new_privs` must be set.

        Raises:
            OSError: the kernel refuses.
        """
        code = program(self._architecture, os.getpid())
        instructions = ctypes.create_string_buffer(code, len(code))
        header = struct.pack("HL", len(code) // 8, ctypes.addressof(instructions))
        held = ctypes.create_string_buffer(header)
        prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_void_p(ctypes.addressof(held)))


def program(architecture: Architecture, process: int) -> bytes:
    """The filter for one process, as instructions of the kernel's BPF.

    Args:
        process: its id, the only one that it may send signals to.
    """
    # The architecture comes first: the same number is another call in the 32-bit modes of a processor.
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        *_unless(_IF_EQUAL, architecture.audit, TRAP),
        _step(_LOAD, _NUMBER),
        *_when(_IF_AT_LEAST, _X32, TRAP),
        *_when(_IF_ABOVE, architecture.newest, ERRNO | errno.ENOSYS),
    ]
    for number in architecture.numbers(ALLOWED).values():
        steps += _when(_IF_EQUAL, number, ALLOW)
    for number in architecture.numbers(ABSENT).values():
        steps += _when(_IF_EQUAL, number, ERRNO | errno.ENOSYS)
    for name, number in architecture.numbers(CHECKED).items():
        check = _CHECKS[name](process)
        steps += [_step(_IF_EQUAL, number, 0, len(check)), *check]
    return b"".join((*steps, _step(_RETURN, TRAP)))


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)


def _when(condition: int, operand: int, verdict: int) -> tuple[bytes, bytes]:
    return _step(condition, operand, 0, 1), _step(_RETURN, verdict)


def _unless(condition: int, operand: int, verdict: int) -> tuple[bytes, bytes]:
    return _step(condition, operand, 1, 0), _step(_RETURN, verdict)


# --- checks of arguments: each of these ends with a verdict ------------------------


def _low(argument: int) -> bytes:
    """Loads the low half of an argument: the part that the kernel uses for an `int`."""
    return _step(_LOAD, _ARGUMENTS + 8 * argument)


def _high(argument: int) -> bytes:
    return _step(_LOAD, _ARGUMENTS + 8 * argument + 4)


def _one_of(argument: int, values: Iterable[int]) -> list[bytes]:
    known = [step for value in values for step in _when(_IF_EQUAL, value, ALLOW)]
    return [_low(argument), *known, _step(_RETURN, TRAP)]


def _for_reading(flags: int) -> list[bytes]:
    """Libraries that cannot write a cache work without one."""
    return [_low(flags), *_when(_IF_BIT, _WRITES, ERRNO | errno.EACCES), _step(_RETURN, ALLOW)]


def _own_limits() -> list[bytes]:
    """Only reading, and only for this process: its id is 0, and there is no new limit."""
    zeros = (_low(0), _low(2), _high(2))
    return [step for load in zeros for step in (load, *_unless(_IF_EQUAL, 0, TRAP))] + [_step(_RETURN, ALLOW)]


_FCNTL = (fcntl.F_DUPFD, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_DUPFD_CLOEXEC)

_PRCTL = (_PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA, _PR_CAPBSET_READ)

_CHECKS: dict[str, Callable[[int], list[bytes]]] = {
    "clone": lambda process: _one_of(0, THREAD_FLAGS),
    "fcntl": lambda process: _one_of(1, _FCNTL),
    "ioctl": lambda process: _one_of(1, (_TCGETS, _TCGETS2, _FIOCLEX)),
    "open": lambda process: _for_reading(1),
    "openat": lambda process: _for_reading(2),
    "prctl": lambda process: _one_of(0, _PRCTL),
    "prlimit64": lambda process: _own_limits(),
    "tgkill": lambda process: _one_of(0, (process,)),
}
"""By call, the steps that judge its arguments, given the id of the process."""
