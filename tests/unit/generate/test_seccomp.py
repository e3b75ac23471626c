"""What the filter of system calls decides, on every architecture, by an interpreter of its program."""

from __future__ import annotations

import errno
import functools
import re
import signal
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from lehr.generate.sandbox.seccomp import ALLOW, ERRNO, THREAD_FLAGS, TRAP, program
from lehr.generate.sandbox.syscall_table import ABSENT, ALLOWED, ARCHITECTURES, CHECKED, Architecture

PROCESS = 4711
OTHERS = {"i386": 0x40000003, "arm": 0x40000028, "riscv64": 0xC00000F3}
NOT_THERE = ERRNO | errno.ENOSYS
HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}

each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=list(ARCHITECTURES))


@functools.cache
def instructions(architecture: Architecture) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("<HBBI", program(architecture, PROCESS)))


def verdict(
    architecture: Architecture, number: int, arguments: Sequence[int] = (), audit: int | None = None
) -> int:
    """What the kernel would do with a call, by the rules of classic BPF."""
    seen = architecture.audit if audit is None else audit
    data = struct.pack("<IIQ6Q", number, seen, 0, *arguments, *[0] * (6 - len(arguments)))
    code = instructions(architecture)
    at = accumulator = 0
    while True:
        operation, if_true, if_false, operand = code[at]
        at += 1
        match operation:
            case 0x20:  # ld [k]
                assert operand % 4 == 0
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x15:  # jeq
                at += if_true if accumulator == operand else if_false
            case 0x25:  # jgt
                at += if_true if accumulator > operand else if_false
            case 0x35:  # jge
                at += if_true if accumulator >= operand else if_false
            case 0x45:  # jset
                at += if_true if accumulator & operand else if_false
            case 0x06:  # ret
                return int(operand)
            case _:
                raise AssertionError(f"no such instruction: {operation:#x}")


@each_architecture
def test_every_known_number_is_on_the_list_or_ends_the_process(architecture: Architecture) -> None:
    allowed = set(architecture.numbers(ALLOWED).values())
    absent = set(architecture.numbers(ABSENT).values())
    checked = set(architecture.numbers(CHECKED).values())
    assert len(allowed) + len(absent) + len(checked) == len(allowed | absent | checked)
    for number in set(range(architecture.newest + 1)) - checked:
        expected = ALLOW if number in allowed else NOT_THERE if number in absent else TRAP
        assert verdict(architecture, number) == expected, number


@each_architecture
def test_a_newer_call_is_answered_as_by_an_older_kernel(architecture: Architecture) -> None:
    for number in (architecture.newest + 1, 1000, 0x3FFFFFFF):
        assert verdict(architecture, number) == NOT_THERE


@each_architecture
def test_calls_in_another_mode_of_the_processor_end_the_process(architecture: Architecture) -> None:
    others = {item.audit for item in ARCHITECTURES.values()} | set(OTHERS.values())
    for audit in others - {architecture.audit}:
        for number in range(architecture.newest + 2):
            assert verdict(architecture, number, audit=audit) == TRAP
    for number in range(0x40000000, 0x40000000 + 600):  # the x32 mode of x86-64
        assert verdict(architecture, number) == TRAP
    assert verdict(architecture, 0xFFFFFFFF) == TRAP


POINTER = 0x7F12_0000_0000  # whose low half is zero

ARGUMENTS = [
    *[("clone", (flags,), ALLOW) for flags in THREAD_FLAGS],
    ("clone", (THREAD_FLAGS[0] | 0x20000,), TRAP),  # with a mount namespace
    ("clone", (THREAD_FLAGS[0] & ~0x10000,), TRAP),  # no thread
    ("clone", (signal.SIGCHLD,), TRAP),
    ("clone", (0x4100 | signal.SIGCHLD,), TRAP),  # posix_spawn
    ("fcntl", (3, 1), ALLOW),  # F_GETFD
    ("fcntl", (3, 1030, 0), ALLOW),  # F_DUPFD_CLOEXEC
    ("fcntl", (3, 4, 0x2000), TRAP),  # F_SETFL, O_ASYNC
    ("fcntl", (3, 6, 0), TRAP),  # F_SETLK
    ("fcntl", (3, 8, 1), TRAP),  # F_SETOWN: signals to another process
    ("fcntl", (3, 1031, 1), TRAP),  # F_SETPIPE_SZ
    ("ioctl", (1, 0x5401), ALLOW),  # TCGETS
    ("ioctl", (1, 0x5412), TRAP),  # TIOCSTI: input of a terminal
    ("ioctl", (1, 0x5402), TRAP),  # TCSETS
    ("prctl", (15,), ALLOW),  # PR_SET_NAME
    ("prctl", (1, 9), TRAP),  # PR_SET_PDEATHSIG
    ("prctl", (22, 2), TRAP),  # PR_SET_SECCOMP
    ("prctl", (36, 1), TRAP),  # PR_SET_CHILD_SUBREAPER
    ("prlimit64", (0, 7, 0, POINTER), ALLOW),
    ("prlimit64", (0xFFFF_FFFF_0000_0000, 7, 0, POINTER), ALLOW),  # of which the kernel takes the low half
    ("prlimit64", (1, 7, 0, POINTER), TRAP),
    ("prlimit64", (0, 7, POINTER, 0), TRAP),
    ("prlimit64", (0, 7, 1, 0), TRAP),
    ("tgkill", (PROCESS, PROCESS, signal.SIGABRT), ALLOW),
    ("tgkill", (PROCESS + 1, PROCESS + 1, 0), TRAP),
    ("tgkill", (0, 0, 0), TRAP),
]


@each_architecture
@pytest.mark.parametrize(("call", "arguments", "expected"), ARGUMENTS)
def test_arguments_decide(
    architecture: Architecture, call: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert verdict(architecture, architecture.numbers(CHECKED)[call], arguments) == expected


@each_architecture
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (0, ALLOW),
        (0o2000000, ALLOW),  # O_CLOEXEC
        *[(flag, ERRNO | errno.EACCES) for flag in (1, 2, 0o100, 0o1000, 0o2000000 | 0o1001)],
    ],
)
def test_files_are_opened_for_reading_only(architecture: Architecture, flags: int, expected: int) -> None:
    numbers = architecture.numbers(CHECKED)
    assert verdict(architecture, numbers["openat"], (0xFFFFFF9C, POINTER, flags)) == expected
    if "open" in numbers:
        assert verdict(architecture, numbers["open"], (POINTER, flags)) == expected


@each_architecture
def test_numbers_are_those_of_the_kernels_headers(architecture: Architecture) -> None:
    header = Path(HEADERS[architecture.machine])
    if not header.exists():
        pytest.skip(f"the kernel's headers are not installed: {header}")
    text = header.read_text()
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    renamed = re.findall(r"#define __NR_(\w+) __NR3264_(\w+)", text)
    known |= {name: known[other] for name, other in renamed if other in known}
    listed = architecture.numbers(ALLOWED) | architecture.numbers(ABSENT) | architecture.numbers(CHECKED)
    unknown = {name: number for name, number in listed.items() if name not in known}
    assert all(number > 446 for number in unknown.values()), unknown  # newer than old headers
    assert listed == listed | {name: known[name] for name in listed if name in known}
