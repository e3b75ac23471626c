"""Notes about replicas that crashed and run again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.base.clock import iso
from lehr.plugins.process.observation import Observation, Program

WINDOW = 600.0
"""Seconds for which a restart is reported, and within which the next one belongs to the same incident."""

_MOST_REPLICAS = 3
_COUNTED = 5
_MANY = (50, 20, 10, 5)  # a crash loop changes its message at these counts, not with every crash

_KILLED = "terminated by "


def notes(observation: Observation, now: float) -> tuple[str, ...]:
    """One line for each of a few recently restarted replicas, which only a new restart changes.

    Args:
        now: wall-clock seconds.
    """
    told = [
        (program, run)
        for program in observation.programs
        if (run := _incident(program.restarts)) and now - run[-1] < WINDOW
    ]
    lines = [_line(program, run) for program, run in told[:_MOST_REPLICAS]]
    if len(told) > _MOST_REPLICAS:
        lines.append(f"{len(told) - _MOST_REPLICAS} more replicas were restarted")
    return tuple(lines)


def _incident(restarts: Sequence[float]) -> list[float]:
    """The last restarts, each within the window after the one before."""
    found: list[float] = []
    for at in reversed(restarts):
        if found and found[-1] - at >= WINDOW:
            break
        found.append(at)
    return found[::-1]


def _line(program: Program, restarts: Sequence[float]) -> str:
    how, times = _how(program.ended), len(restarts)
    if times > _COUNTED:
        more = next(count for count in _MANY if times > count or count == _MANY[-1])
        return f"replica {program.index} keeps crashing: it {how}, restarted by supervisord over {more} times"
    again = f"replica {program.index} {how}, restarted by supervisord at {iso(restarts[-1])}"
    return again if times == 1 else f"{again} ({times} restarts since {iso(restarts[0])})"


def _how(ended: str) -> str:
    if ended.startswith(_KILLED):
        return f"was killed by {ended.removeprefix(_KILLED)}"
    return f"ended with {ended}" if ended else "ended"
