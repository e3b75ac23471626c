"""Samples of counters, and what happened between two looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

CANARY = "canary"
CONTROL = "control"


class Sample(NamedTuple):
    """The counters of a replica at one time.

    Attributes:
        time: seconds since the epoch.
        group: `CANARY` or `CONTROL`.
        values: cumulative counters by name. A counter that was not measured is absent.
    """

    time: float
    group: str
    replica: str
    values: Mapping[str, float]


class ReplicaCounts(msgspec.Struct, frozen=True):
    """By how much the counters of a replica grew between two looks.

    Attributes:
        seconds: how much of that time its samples cover.
        warmup: whether it had just started. A look may have several parts of a replica.
        begin: time of the sample from which on they were counted; None if it is `seconds` before the look.
    """

    group: str
    replica: str
    seconds: float
    counts: Mapping[str, float]
    warmup: bool = False
    begin: float | None = None

    def since(self, at: float) -> float:
        """From when on it was counted, in a look at this time."""
        return at - self.seconds if self.begin is None else self.begin


class Look(msgspec.Struct, frozen=True):
    """Everything that was counted since the previous look. Raw counts: everything else is computed from them.

    Attributes:
        at: time of the look, in seconds since the epoch.
        replicas: replicas with a new sample. Others are unknown, not zero.
        restarts: counters that started again from zero.
    """

    at: float
    replicas: tuple[ReplicaCounts, ...]
    restarts: int = 0
