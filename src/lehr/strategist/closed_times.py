"""Calendars and freezes that are closed now: rollouts wait for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lehr.base.clock import iso
from lehr.enforce.governance import Governance
from lehr.model.asset import Asset
from lehr.model.control import ControlKind
from lehr.sdk.calendars import PushTimes

_MOMENT = 1.0


class Closed(NamedTuple):
    """Why an asset may not be pushed now.

    Attributes:
        until: wall-clock seconds; None if that is not known.
    """

    why: str
    until: float | None


class ClosedTimes:
    """The push times of one incarnation that are closed at one moment."""

    def __init__(self, times: Sequence[PushTimes], now: float) -> None:
        """Ask `times` at `now`, in wall-clock seconds."""
        self._now = now
        self._closed = [(item, until) for item in times if (until := _closed_until(item, now)) is not None]

    def __bool__(self) -> bool:
        return bool(self._closed)

    def holding(self, asset: Asset, governance: Governance) -> Closed | None:
        """The first that is closed for an asset, and that no override passes; None if there is none."""
        for item, until in self._closed:
            if item.select.matches(asset) and not is_overridden(item, asset, governance, self._now):
                end = f" until {iso(until)}" if math.isfinite(until) else ""
                return Closed(f"held by {item.id}{end}", until if math.isfinite(until) else None)
        return None


def is_overridden(item: PushTimes, asset: Asset, governance: Governance, now: float) -> bool:
    """Whether a person lets an asset be pushed although a calendar or freeze is closed."""
    return any(
        control.kind is ControlKind.OVERRIDE and control.check == item.id and control.selector.matches(asset)
        for control in governance.controls_over(asset.id, now)
    )


def _closed_until(item: PushTimes, now: float) -> float | None:
    """When it opens; infinite if that is not known, and None if it is open."""
    closed = item.closed(now, now + _MOMENT)
    if closed is None:
        return math.inf
    return next((end for start, end in closed if start <= now < end), None)
