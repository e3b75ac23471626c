"""Calendars and freezes as times at which pushes may not start, for rollouts and forecasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lehr.base.errors import LehrError
from lehr.checks.calendar import CALENDAR_TYPE, Calendar
from lehr.checks.closed_spans import closed_spans
from lehr.checks.freeze import FREEZE_TYPE, Freeze
from lehr.model.asset import Asset, AssetId
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.sdk.calendars import Interval, PushTimes

_EVERYTHING = Selector(all=True)


class _Declared(msgspec.Struct, frozen=True):
    """`lehr.sdk.calendars.PushTimes` of one asset."""

    id: AssetId
    select: Selector
    times: Callable[[float, float], Sequence[Interval] | None]

    def closed(self, start: float, end: float) -> Sequence[Interval] | None:
        return self.times(start, end)


def push_times(registry: Registry, governing: Mapping[str, Sequence[Asset]]) -> Sequence[PushTimes]:
    """The push times of calendars and freezes, by type and id.

    One that cannot be read selects every asset, and its times are not known.
    """
    calendars = (_calendar(registry, asset) for asset in governing.get(CALENDAR_TYPE.name, ()))
    freezes = (_freeze(registry, asset) for asset in governing.get(FREEZE_TYPE.name, ()))
    return [*calendars, *freezes]


def _calendar(registry: Registry, asset: Asset) -> _Declared:
    try:
        calendar = registry.payload(asset, Calendar)
    except (LehrError, msgspec.MsgspecError):
        return _unreadable(asset)
    return _Declared(asset.id, calendar.select, lambda start, end: closed_spans(calendar, start, end))


def _freeze(registry: Registry, asset: Asset) -> _Declared:
    try:
        freeze = registry.payload(asset, Freeze)
    except (LehrError, msgspec.MsgspecError):
        return _unreadable(asset)
    ends = math.inf if freeze.until is None else freeze.until.timestamp()
    return _Declared(asset.id, freeze.select, lambda start, _end: [(start, ends)] if start < ends else [])


def _unreadable(asset: Asset) -> _Declared:
    return _Declared(asset.id, _EVERYTHING, lambda _start, _end: None)
