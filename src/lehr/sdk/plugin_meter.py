"""Figures of plugins that run in other processes, for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from lehr.base.durations import Durations

_BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0, 300.0, 1800.0)


class PluginMeter:
    """Counts the calls of a plugin in another process, and how often that process starts and ends.

    Args:
        name: of the plugin. Never the id of an asset.

    Attributes:
        calls: by method and outcome.
        seconds: by method.
        starts: how often it was started, or connected to.
        ends: how often its process or its connection has ended, although it was not meant to.
        up: whether it could be called the last time; None before the first, and while it is not needed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, Durations] = {}
        self.starts = 0
        self.ends = 0
        self.up: bool | None = None

    def called(self, method: str, outcome: str, seconds: float) -> None:
        """A call has ended.

        Args:
            method, outcome: of a fixed set each.
        """
        self.calls[method, outcome] += 1
        if method not in self.seconds:
            self.seconds[method] = Durations(_BOUNDS)
        self.seconds[method].observe(seconds)

    def started(self) -> None:
        """It can be called."""
        self.starts += 1
        self.up = True

    def ended(self) -> None:
        """It has ended, or the connection to it, although it was not meant to."""
        self.ends += 1
        self.up = False


@runtime_checkable
class Metered(Protocol):
    """A plugin that has such figures."""

    def meters(self) -> Sequence[PluginMeter]:
        """Of each plugin in another process that it has called."""
        ...
