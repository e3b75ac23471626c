"""The seal around a virtual run: whatever would let the real world in raises instead.

In: nothing but the thread that runs. Out: `NotVirtualError` from every door below, until the run
has ended; then everything is as it was.

* Wall clock: `time.time`, `monotonic`, `perf_counter` and their kin, `time.sleep`, and `localtime`,
  `gmtime` and `ctime` where they read the clock.
* Randomness: the functions of `random`, a `random.Random` without a seed, `os.urandom`,
  `os.getrandom`, and so `secrets` and `uuid`.
* What lives outside the loop: threads, sockets, processes.

Only the thread of the run is sealed; others, and everything outside a run, pay nothing but one
look-up for each audit event of the interpreter. The standard library's logs and temporary files
still work.

Not caught, because Python offers no place to do it: `datetime.now` and `today` (methods of a C type, and an
imitation in its place is taken for another type wherever annotations are read during the run), functions of
`time`, `os` and `random` that were imported by name (`from time import time`), and requests of C code to the
system. A lint rule is the guard against the first two.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import structlog  # noqa: F401  its import draws random numbers, and the first line of a log must not do so in a run

from lehr.base.errors import LehrError

_THREADS = "go through lehr.base.blocking, with Inline under virtual time"
_CLOCK = "take a lehr.base.clock.Clock; under virtual time it is a VirtualClock"
_CHANCE = "draw from a lehr.base.chance.Chance that was given a seed"


class NotVirtualError(LehrError):
    """The code under test used something without virtual time."""


def refuse_outside(name: str) -> NoReturn:
    """Refuse what lives outside the loop.

    Raises:
        NotVirtualError: always.
    """
    raise NotVirtualError(
        f"{name} cannot run under virtual time",
        why="threads, sockets, processes and signals live outside the loop",
        fix=_THREADS,
    )


def _refuse_clock(name: str) -> NoReturn:
    raise NotVirtualError(f"{name} under virtual time", why="it is the machine's clock", fix=_CLOCK)


def _refuse_chance(name: str) -> NoReturn:
    raise NotVirtualError(
        f"{name} under virtual time", why="no seed decides it, so the run could not be repeated", fix=_CHANCE
    )


class _Door(NamedTuple):
    """An attribute of a module or class, and its replacement while a run is sealed."""

    owner: Any
    name: str
    open: Any
    shut: Any


_sealed: dict[int, int] = {}
"""How many runs each thread is in, by the thread's identifier."""

_lock = threading.Lock()

_EXCUSED = frozenset({"hypothesis", "logging", "structlog", "tempfile"})
"""Packages whose use of clock and chance does not affect the run."""


@contextlib.contextmanager
def sealed() -> Iterator[None]:
    """Seal this thread until the block ends, however it ends."""
    thread = threading.get_ident()
    with _lock:
        if not _hooked:
            sys.addaudithook(_audit)
            _hooked.append(True)
        if not _sealed:
            for door in _DOORS:
                setattr(door.owner, door.name, door.shut)
        _sealed[thread] = _sealed.get(thread, 0) + 1
    try:
        yield
    finally:
        with _lock:
            _sealed[thread] -= 1
            if not _sealed[thread]:
                del _sealed[thread]
            if not _sealed:
                for door in _DOORS:
                    setattr(door.owner, door.name, door.open)


# --- audit events of the interpreter -----------------------------------------------

_EVENTS = frozenset(
    {
        "_posixsubprocess.fork_exec",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.system",
        "socket.__new__",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "subprocess.Popen",
    }
)
_hooked: list[bool] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook cannot be taken out again: it must cost next to nothing outside a run."""
    if event in _EVENTS and threading.get_ident() in _sealed:
        refuse_outside(event)


# --- without audit events -----------------------------------------------------------


def _excused(frame: FrameType | None) -> bool:
    """Whether the caller at `frame` may continue: another thread's, or one that does no harm."""
    if threading.get_ident() not in _sealed:
        return True
    while frame is not None and frame.f_globals.get("__name__") == "random":
        frame = frame.f_back
    name = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] in _EXCUSED


def _shut(owner: Any, name: str, refuse: Callable[[str], NoReturn]) -> _Door:
    original = getattr(owner, name)

    def refusing(*args: Any, **kwargs: Any) -> Any:
        if not _excused(sys._getframe(1)):
            refuse(f"{owner.__name__}.{name}")
        return original(*args, **kwargs)

    return _Door(owner, name, original, refusing)


def _shut_without_time(name: str) -> _Door:
    """`time.localtime` and the like read the clock only if they are given no time."""
    original: Callable[..., Any] = getattr(time, name)

    def refusing(seconds: float | None = None, /) -> Any:
        if seconds is None and not _excused(sys._getframe(1)):
            _refuse_clock(f"time.{name}")
        return original(seconds)

    return _Door(time, name, original, refusing)


def _shut_seed() -> _Door:
    """Every `random.Random` is seeded when it is made, by the system unless given a seed."""
    original = random.Random.seed

    def refusing(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None and not _excused(sys._getframe(1)):
            _refuse_chance("random.Random without a seed")
        original(self, a, version)

    return _Door(random.Random, "seed", original, refusing)


_CLOCKS = ("clock_gettime", "monotonic", "perf_counter", "process_time", "thread_time", "time")
_DOORS = (
    *(_shut(time, f"{name}{unit}", _refuse_clock) for name in _CLOCKS for unit in ("", "_ns")),
    _shut(time, "sleep", _refuse_clock),
    *(_shut_without_time(name) for name in ("ctime", "gmtime", "localtime")),
    *(_shut(random, name, _refuse_chance) for name in random.__all__ if name.islower()),
    _shut_seed(),
    _shut(random, "_urandom", _refuse_chance),
    *(_shut(os, name, _refuse_chance) for name in ("getrandom", "urandom")),
    _shut(uuid, "uuid1", _refuse_chance),
    # Python 3.11 has no audit event for threads.
    _shut(threading.Thread, "start", refuse_outside),
    _shut(_thread, "start_new_thread", refuse_outside),
)
