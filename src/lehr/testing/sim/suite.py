"""One random history as a value, and many of them over all processors."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from lehr.base.digest import Digest
from lehr.testing.sim.history import History

S = TypeVar("S")
T = TypeVar("T")

_CHUNK = 4
_ROUND = 64
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of one's own is made in it


class Played(msgspec.Struct, frozen=True):
    """Result of a history.

    Attributes:
        violations: of invariants, one line each; none if all is well.
        events: things that happened; seconds: of virtual time.
        digest: of everything that happened: equal whenever the seed is played again.
        reached: how often each path was taken (`lehr.testing.sim.reached`).
    """

    seed: int
    violations: tuple[str, ...]
    events: int
    seconds: float
    digest: Digest
    reached: dict[str, int]


def play(seed: int) -> Played:
    """Play the history of `seed` to its end, and judge it. Whatever goes wrong is in the answer."""
    history = history_of(seed)
    events = history.trace.events
    return Played(
        seed,
        tuple(dict.fromkeys(history.violations)),
        len(events),
        events[-1].at if events else 0.0,
        history.trace.digest(),
        dict(sorted(history.witness.reached.items())),
    )


def history_of(seed: int) -> History:
    """The history of `seed`, played."""
    with scratch() as folder, silence():
        history = History(seed, folder)
        try:
            history.play()
        except Exception as error:
            history.witness.violations.append(f"I8: the run broke: {type(error).__name__}: {error}")
        return history


def spread(
    function: Callable[[S], T], items: Sequence[S], jobs: int, over: Callable[[], bool] = lambda: False
) -> Iterator[T]:
    """Call `function` for each item in `jobs` processes, in whatever order they end, until it is `over`."""
    size = jobs * _ROUND if jobs > 1 else 1
    rounds = (items[start : start + size] for start in range(0, len(items), size))
    # Not forked: inherited threads and locks are not reliable.
    pool = multiprocessing.get_context("spawn").Pool(jobs) if jobs > 1 else None
    with pool or contextlib.nullcontext():
        for some in rounds:
            if over():
                return
            yield from map(function, some) if pool is None else pool.imap_unordered(function, some, _CHUNK)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder where commits cost no disk, unless TMPDIR names another place: no machine crashes in here."""
    in_memory = _MEMORY.is_dir() and "TMPDIR" not in os.environ
    with tempfile.TemporaryDirectory(prefix="lehr-sim-", dir=_MEMORY if in_memory else None) as name:
        yield Path(name)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Plugins fail by the thousand in a simulation: logging that is useless and costs time."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


def failed(runs: Sequence[Played]) -> list[Played]:
    """Those in which an invariant was broken, by seed."""
    return sorted((run for run in runs if run.violations), key=lambda run: run.seed)
