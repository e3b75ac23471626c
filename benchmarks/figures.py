"""What all benches share: sizes, percentiles, and figures as lines of JSON.

A bench is a module of this folder, run as `python -m benchmarks.name [size]`. It measures, and
calls `report` once for each figure; a peer, or the floor, is measured in the same run or quoted
with its source.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Peer(NamedTuple):
    """What a figure is compared with, in the figure's unit.

    Attributes:
        at_least: it was not waited for to its end; it is this, or more.
    """

    name: str
    value: float
    at_least: bool = False


def size(default: int) -> int:
    """The size asked for on the command line, or `default`."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else default


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of `values` that is not exceeded by `percent` of them (nearest rank).

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("there is no percentile of no values")
    rank = max(1, math.ceil(percent / 100 * len(values)))
    return sorted(values)[rank - 1]


def peak_memory() -> float:
    """The most memory this process has had resident so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu_seconds(session: int | None = None) -> float:
    """Processor time that was used so far: by this process, and those it started that have ended.

    On a machine that others use too, it says more than the time that passed.

    Args:
        session: process id of one that leads a session: all in it count, too.
    """
    used = sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return used + _cpu_ticks(session) / os.sysconf("SC_CLK_TCK")


def _cpu_ticks(session: int | None) -> int:
    """Of all processes of a session, and of those they started that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return ticks


def machine() -> dict[str, str | int | float]:
    """What a figure was measured on, and how busy that was."""
    return {
        "load": round(os.getloadavg()[0], 1),
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def report(
    figure: str, value: float, unit: str, size: int, *, peer: Peer | None = None, **facts: Any
) -> None:
    """Print a figure as one line of JSON.

    Args:
        figure: its name (`create`, `p99`).
        value: what was measured, in `unit` (`s`, `ms`, `MiB`, `1/s`).
        size: how many of what the bench is about.
        peer: what to compare it with; the line then has `ratio`, our value over the peer's, or null where
            the peer measured zero. Of a peer that is `at_least` so much the line has `peer_at_least`, and
            the ratio is at most what it says.
        **facts: whatever else a reader must know (durability, repetitions).
    """
    line: dict[str, Any] = {"figure": figure, "value": _rounded(value), "unit": unit, "size": size}
    if peer is not None:
        ratio = _rounded(value / peer.value) if peer.value else None
        line |= {"peer": peer.name, "peer_value": _rounded(peer.value), "ratio": ratio}
        line |= {"peer_at_least": True} if peer.at_least else {}
    print(json.dumps(line | facts | {"machine": machine()}), flush=True)


def _rounded(value: float) -> float:
    """Four significant digits: more would only be noise."""
    return float(f"{value:.4g}")


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "CPU part"):
            return value.strip()
    return platform.machine()
