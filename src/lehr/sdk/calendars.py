"""Times at which pushes may not start, for rollouts and forecasts. Before each push, checks decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from lehr.model.asset import Asset, AssetId
from lehr.model.selector import Selector
from lehr.model.types import Registry

Interval = tuple[float, float]
"""From, to (exclusive), in seconds since the epoch."""


class PushTimes(Protocol):
    """A governing asset that lets pushes of the selected assets start at some times only."""

    @property
    def id(self) -> AssetId: ...

    @property
    def select(self) -> Selector: ...

    def closed(self, start: float, end: float) -> Sequence[Interval] | None:
        """The times between two moments at which no push may start; None if they are not known."""
        ...


Calendars = Callable[[Registry, Mapping[str, Sequence[Asset]]], Sequence[PushTimes]]
"""The push times that governing assets, by type, declare."""


def no_calendars(_registry: Registry, _governing: Mapping[str, Sequence[Asset]]) -> Sequence[PushTimes]:
    """No asset declares any."""
    return ()
