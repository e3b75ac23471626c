"""Kernel restrictions on generators, as far as available.

Each is best effort and independent of the others; `lehr doctor` reports which are active on a machine. They
stop what Python cannot see: native code. A violation becomes a diagnostic that names the generator.
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

from lehr.generate.sandbox.landlock import Ruleset
from lehr.generate.sandbox.seccomp import Filter
from lehr.generate.sandbox.syscall_table import ARCHITECTURES
from lehr.generate.sandbox.syscalls import prctl, unshare

_PR_SET_NO_NEW_PRIVS = 38
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
"""Paths that Python's own modules may need to load system libraries."""

Made = TypeVar("Made")

FILTERED = -signal.SIGSYS
"""Exit status of a process that made a denied system call."""


class Mechanism(enum.StrEnum):
    """A restriction that the kernel offers."""

    NO_NEW_PRIVILEGES = "no new privileges"
    NETWORK = "network namespace"
    LANDLOCK = "Landlock"
    SECCOMP = "seccomp"


Problems = dict[Mechanism, str]
"""Why each inactive mechanism is inactive."""


class Confinement:
    """Restrictions prepared once, by the forking process: applying them takes microseconds.

    It holds a file descriptor, so it is useless in a process that has closed inherited descriptors.
    """

    def __init__(self) -> None:
        self._problems: Problems = {}
        self._ruleset = self._made(Mechanism.LANDLOCK, lambda: Ruleset(_readable()))
        self._filter = self._made(Mechanism.SECCOMP, Filter)

    def apply(self, wanted: Collection[Mechanism] = tuple(Mechanism)) -> Problems:
        """Permanently apply the `wanted` mechanisms to this process, as far as the kernel allows."""
        problems = dict(self._problems)
        steps: dict[Mechanism, Callable[[], object]] = {
            Mechanism.NO_NEW_PRIVILEGES: lambda: prctl(_PR_SET_NO_NEW_PRIVS, 1)
        }
        if self._ruleset is not None and Mechanism.LANDLOCK in wanted:
            steps[Mechanism.LANDLOCK] = self._ruleset.apply
        if self._filter is not None and Mechanism.SECCOMP in wanted:
            steps[Mechanism.SECCOMP] = self._filter.apply
            faulthandler.register(signal.SIGSYS, file=2, all_threads=False, chain=True)  # names the line
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
    """Leave the network, with all future forks. Doing it in each fork takes too long.

    Only for single-threaded processes.
    """
    try:
        try:
            unshare(_NEW_NETWORK)
        except PermissionError:  # an unprivileged process has privileges in a user namespace of its own
            unshare(_NEW_USER | _NEW_NETWORK)
    except OSError as error:
        return {Mechanism.NETWORK: error.strerror or str(error)}
    return {}


def _readable() -> Iterator[str]:
    yield from dict.fromkeys(os.path.abspath(folder) for folder in sys.path if folder)
    yield from (sys.base_prefix + "/lib", *_LIBRARIES)


def inactive_mechanisms() -> Problems:
    """The inactive mechanisms on this machine, with reasons, found by trying them in a process.

    Only for single-threaded processes.
    """
    answers, send_to = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(answers)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where the line would be named
            problems = leave_network() | Confinement().apply()
            os.write(send_to, b"".join(f"{name}\t{why}\n".encode() for name, why in problems.items()) + b".")
            os.sync()  # is not on any list
        finally:
            os._exit(0)
    os.close(send_to)
    with os.fdopen(answers, "rb") as file:
        profile = file.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not profile.endswith("."):
        return dict.fromkeys(Mechanism, "the process that tried it has died")
    pairs = (line.split("\t") for line in profile.splitlines()[:-1])
    problems = {Mechanism(name): why for name, why in pairs}
    if status != FILTERED:
        problems.setdefault(Mechanism.SECCOMP, "a call that is not on the list was let through")
    return problems


def untried() -> str:
    """This machine, if its list of system calls has only been checked against tables; else empty."""
    known = ARCHITECTURES.get(platform.machine())
    return "" if known is None or known.tried else known.machine
