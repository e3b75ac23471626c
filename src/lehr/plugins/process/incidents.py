"""Notes for people about replicas that crashed, and that supervisord has started again. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lehr.base.clock import iso
from lehr.plugins.process.observation import Observation, Program

WINDOW = 600.0
"""Seconds for which a restart is reported, and within which the next one belongs to the same incident."""

_MOST_REPLICAS = 3
_COUNTED = 5
_MANY = (50, 20, 10, 5)  # a crash loop changes its message at these counts, not with every crash

_KILLED = "terminated by "


def outputs(observation: Observation, now: float) -> dict[str, Any]:
    """How often replicas were started again since their last push, and which are in a crash loop.

    Args:
        now: wall-clock seconds.

    Returns:
        By name; empty if there are no replicas.
    """
    if not observation.programs:
        return {}
    loops = {program.index for program in observation.programs if len(_recent(program, now)) > _COUNTED}
    return {
        "restarts": sum(program.restarted for program in observation.programs),
        "crash_loops": sorted(loops),
    }


def notes(observation: Observation, now: float) -> tuple[str, ...]:
    """One line for each of a few recently restarted replicas, which only a new restart changes.

    Args:
        now: wall-clock seconds.
    """
    recent = [(program, run) for program in observation.programs if (run := _recent(program, now))]
    lines = [_line(program, run) for program, run in recent[:_MOST_REPLICAS]]
    if len(recent) > _MOST_REPLICAS:
        lines.append(f"{len(recent) - _MOST_REPLICAS} more replicas were restarted")
    return tuple(lines)


def _recent(program: Program, now: float) -> list[float]:
    """The last restarts, each within the window after the one before; empty if the last is long past."""
    restarts = program.restarts
    if not restarts or now - restarts[-1] >= WINDOW:
        return []
    found: list[float] = []
    for at in reversed(restarts):
        if found and found[-1] - at >= WINDOW:
            break
        found.append(at)
    return found[::-1]


def _line(program: Program, restarts: Sequence[float]) -> str:
    how, times = _ending(program.ended), len(restarts)
    if times > _COUNTED:
        more = next(count for count in _MANY if times > count or count == _MANY[-1])
        return (
            f"replica {program.index} is in a crash loop: it {how}, restarted by supervisord more than "
            f"{more} times"
        )
    again = f"replica {program.index} {how}, restarted by supervisord at {iso(restarts[-1])}"
    return again if times == 1 else f"{again} ({times} restarts since {iso(restarts[0])})"


def _ending(ended: str) -> str:
    if ended.startswith(_KILLED):
        return f"was killed by {ended.removeprefix(_KILLED)}"
    return f"ended with {ended}" if ended else "ended"
