"""A filter of system calls, under which no process starts another, opens a socket, or looks into others.

What is denied ends the process with SIGSYS: to go on as if nothing had happened would hide it. Threads of
native code are let through: libraries start them when they are loaded. The clock is read without a call, and
cannot be denied.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from lehr.generate.syscalls import MACHINE, prctl

_ARCHITECTURES = (0xC000003E, 0xC00000B7)  # x86-64, aarch64
_DENIED = {
    "accept": (43, 202),
    "accept4": (288, 242),
    "add_key": (248, 217),
    "bind": (49, 200),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "connect": (42, 203),
    "execve": (59, 221),
    "execveat": (322, 281),
    "finit_module": (313, 273),
    "fork": (57, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "listen": (50, 201),
    "mount": (165, 40),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vfork": (58, None),
}
_CLONE = (56, 220)
_CLONE3 = 435
_CLONE_THREAD = 0x10000
_X32 = 0x40000000

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_TRAP, _ERRNO, _ALLOW = 0x00030000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets of what the filter sees of a call

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


class Filter:
    """The filter for this machine, to be applied in a fork.

    Raises:
        OSError: nobody has written it for a machine like this one.
    """

    def __init__(self) -> None:
        program = _program()
        self._instructions = ctypes.create_string_buffer(program, len(program))
        address = ctypes.addressof(self._instructions)
        self._program = ctypes.create_string_buffer(struct.pack("HL", len(program) // 8, address))

    def apply(self) -> None:
        """Filter the calls of this process from now on, for good. It must have renounced new privileges.

        Raises:
            OSError: the kernel refuses.
        """
        prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_void_p(ctypes.addressof(self._program)))


def _program() -> bytes:
    if MACHINE is None:
        raise OSError(errno.ENOSYS, "the numbers of system calls are not known here")
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        *_unless(_IF_EQUAL, _ARCHITECTURES[MACHINE], _TRAP),
        _step(_LOAD, _NUMBER),
        *_when(_IF_AT_LEAST, _X32, _TRAP),
    ]
    for numbers in _DENIED.values():
        number = numbers[MACHINE]
        if number is not None:
            steps += _when(_IF_EQUAL, number, _TRAP)
    # Its flags lie in memory, which a filter cannot read; the C library then takes `clone`.
    steps += _when(_IF_EQUAL, _CLONE3, _ERRNO | errno.ENOSYS)
    steps += [_step(_IF_EQUAL, _CLONE[MACHINE], 1, 0), _step(_RETURN, _ALLOW)]
    steps += [_step(_LOAD, _FIRST_ARGUMENT), *_unless(_IF_BIT, _CLONE_THREAD, _TRAP), _step(_RETURN, _ALLOW)]
    return b"".join(steps)


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)


def _when(condition: int, operand: int, verdict: int) -> tuple[bytes, bytes]:
    return _step(condition, operand, 0, 1), _step(_RETURN, verdict)


def _unless(condition: int, operand: int, verdict: int) -> tuple[bytes, bytes]:
    return _step(condition, operand, 1, 0), _step(_RETURN, verdict)
