"""The system calls that a generator may make, with their numbers on each architecture.

The shipped generators make 14 different calls; with threads, jsonschema-rs, msgspec, decimal, sqlite3 and
zoneinfo it is 25. The rest of the list are calls that C libraries make instead on other machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

ALLOWED = {
    "access": (21, None),
    "brk": (12, 214),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "close": (3, 57),
    "close_range": (436, 436),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "faccessat": (269, 48),
    "fstat": (5, 80),
    "futex": (202, 98),
    "getcpu": (309, 168),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    "getegid": (108, 177),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getgroups": (115, 158),
    "getitimer": (36, 102),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "getrandom": (318, 278),
    "getresgid": (120, 150),
    "getresuid": (118, 148),
    "getrlimit": (97, 163),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "getuid": (102, 174),
    "lseek": (8, 62),
    "lstat": (6, None),
    "madvise": (28, 233),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "poll": (7, None),
    "ppoll": (271, 73),
    "pread64": (17, 67),
    "pselect6": (270, 72),
    "read": (0, 63),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "readv": (19, 65),
    "restart_syscall": (219, 128),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "select": (23, None),
    "set_robust_list": (273, 99),
    "setitimer": (38, 103),
    "sigaltstack": (131, 132),
    "stat": (4, None),
    "statx": (332, 291),
    "sysinfo": (99, 179),
    "time": (201, None),
    "uname": (63, 160),
    "write": (1, 64),
    "writev": (20, 66),
}
"""Numbers on x86-64 and aarch64 of calls allowed with any arguments; None if the call does not exist."""

ABSENT = {
    "clone3": (435, 435),
    "epoll_create1": (291, 20),
    "faccessat2": (439, 439),
    "membarrier": (324, 283),
    "memfd_create": (319, 279),
    "mseal": (462, 462),
    "openat2": (437, 437),
}
"""Calls that libraries try first and replace with an older one when the kernel does not have them. The
arguments of some are in memory, where a filter cannot read them."""

CHECKED = {
    "clone": (56, 220),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "open": (2, None),
    "openat": (257, 56),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "tgkill": (234, 131),
}
"""Calls that are allowed only with some arguments."""


class Architecture(msgspec.Struct, frozen=True):
    """An architecture that the list supports.

    Attributes:
        machine: its name in `platform.machine()`.
        audit: the kernel's number for it (`AUDIT_ARCH_...`).
        column: its column in the tables.
        newest: the largest known number: that of `file_setattr`, of Linux 6.17.
        tried: whether the tests make these calls on such a machine, rather than only check the table.
    """

    machine: str
    audit: int
    column: int
    newest: int
    tried: bool

    def numbers(self, calls: Mapping[str, Sequence[int | None]]) -> dict[str, int]:
        """By name, the `calls` that exist on this architecture."""
        numbers = ((name, columns[self.column]) for name, columns in calls.items())
        return {name: number for name, number in numbers if number is not None}


ARCHITECTURES = {
    item.machine: item
    for item in (
        Architecture("x86_64", 0xC000003E, 0, 469, tried=True),
        Architecture("aarch64", 0xC00000B7, 1, 469, tried=False),
    )
}
"""Architectures by machine name."""
