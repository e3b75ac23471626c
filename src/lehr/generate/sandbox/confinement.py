"""What the kernel keeps a generator from, as far as it can be had.

Each of these is best effort and stands alone; `lehr doctor` tells which of them hold on a machine. They stop
what Python does not see: native code. What is stopped ends as a diagnostic that names the generator.
"""

from __future__ import annotations

import enum
import faulthandler
import os
import platform
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from lehr.generate.sandbox.landlock import Ruleset, version
from lehr.generate.sandbox.seccomp import Filter
from lehr.generate.sandbox.syscall_table import ARCHITECTURES
from lehr.generate.sandbox.syscalls import prctl, unshare

_PR_SET_NO_NEW_PRIVS = 38
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
"""What modules may need that are part of Python and load libraries of the system."""

Made = TypeVar("Made")

FILTERED = -signal.SIGSYS
"""Status of a process that asked for a system call which is denied."""


class Mechanism(enum.StrEnum):
    """One thing that the kernel can do."""

    NO_NEW_PRIVILEGES = "no new privileges"
    NETWORK = "network namespace"
    LANDLOCK = "Landlock"
    SECCOMP = "seccomp"


Problems = dict[Mechanism, str]
"""Why what does not hold does not."""


class Confinement:
    """What can be made ready once, by the process that forks: to apply it takes microseconds.

    It holds a file descriptor, so it is of no use to a process that has closed those that it was given.
    """

    def __init__(self) -> None:
        self._problems: Problems = {}
        self._ruleset = self._made(Mechanism.LANDLOCK, lambda: Ruleset(_readable()))
        self._filter = self._made(Mechanism.SECCOMP, Filter)

    def apply(self, wanted: Collection[Mechanism] = tuple(Mechanism)) -> Problems:
        """Confine this process, for good, as far as the kernel allows: by what is wanted of it."""
        problems = dict(self._problems)
        steps: dict[Mechanism, Callable[[], object]] = {
            Mechanism.NO_NEW_PRIVILEGES: lambda: prctl(_PR_SET_NO_NEW_PRIVS, 1)
        }
        if self._ruleset is not None and Mechanism.LANDLOCK in wanted:
            steps[Mechanism.LANDLOCK] = self._ruleset.apply
        if self._filter is not None and Mechanism.SECCOMP in wanted:
            steps[Mechanism.SECCOMP] = self._filter.apply
            faulthandler.register(signal.SIGSYS, file=2, all_threads=False, chain=True)  # tells the line
        for mechanism, step in steps.items():
            try:
                step()
            except OSError as error:
                problems[mechanism] = error.strerror or str(error)
        return problems

    def _made(self, mechanism: Mechanism, make: Callable[[], Made]) -> Made | None:
        try:
            return make()
        except OSError as error:
            self._problems[mechanism] = error.strerror or str(error)
            return None


def leave_network() -> Problems:
    """Leave the network, with all processes that will be forked. Takes too long to do for each of them.

    Only for a process with a single thread.
    """
    try:
        try:
            unshare(_NEW_NETWORK)
        except PermissionError:  # who is not privileged is so in a user namespace of its own
            unshare(_NEW_USER | _NEW_NETWORK)
    except OSError as error:
        return {Mechanism.NETWORK: error.strerror or str(error)}
    return {}


def _readable() -> Iterator[str]:
    yield from dict.fromkeys(os.path.abspath(folder) for folder in sys.path if folder)
    yield from (sys.base_prefix + "/lib", *_LIBRARIES)


def landlock_version() -> int:
    """That of the kernel; 0 if it has none."""
    try:
        return version()
    except OSError:
        return 0


def held_back() -> Problems:
    """What does not hold on this machine, and why: found out by a process that tries it.

    Only for a process with a single thread.
    """
    answers, send_to = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(answers)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where the line would be told
            problems = leave_network() | Confinement().apply()
            os.write(send_to, b"".join(f"{name}\t{why}\n".encode() for name, why in problems.items()) + b".")
            os.sync()  # is on no list
        finally:
            os._exit(0)
    os.close(send_to)
    with os.fdopen(answers, "rb") as file:
        said = file.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not said.endswith("."):
        return dict.fromkeys(Mechanism, "the process that tried it has died")
    pairs = (line.split("\t") for line in said.splitlines()[:-1])
    problems = {Mechanism(name): why for name, why in pairs}
    if status != FILTERED:
        problems.setdefault(Mechanism.SECCOMP, "a call that is not on the list was let through")
    return problems


def untried() -> str:
    """The machine, where the list of system calls has only been compared with tables; empty elsewhere."""
    known = ARCHITECTURES.get(platform.machine())
    return "" if known is None or known.tried else known.machine
