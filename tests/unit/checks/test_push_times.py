"""Push times of calendars and freezes: what cannot be read is closed for everybody."""

from __future__ import annotations

import math
from typing import Any

from lehr.checks.calendar import CALENDAR_TYPE
from lehr.checks.freeze import FREEZE_TYPE
from lehr.checks.push_times import push_times
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.types import Registry

REGISTRY = Registry((CALENDAR_TYPE, FREEZE_TYPE))
NOW, HOUR = 1_000_000.0, 3600.0
FILE = make_asset(AssetId("web"), "lehr.File", {"path": "/srv/web", "content": ""}, {})


def governing(**payloads: dict[str, Any]) -> dict[str, tuple[Asset, ...]]:
    types = {
        name: CALENDAR_TYPE.name if "timezone" in item else FREEZE_TYPE.name
        for name, item in payloads.items()
    }
    found: dict[str, tuple[Asset, ...]] = {}
    for name, payload in payloads.items():
        found[types[name]] = (
            *found.get(types[name], ()),
            make_asset(AssetId(name), types[name], payload, {}),
        )
    return found


def test_calendars_and_freezes_are_closed_when_they_hold_pushes() -> None:
    closed = [{"from": "1970-01-12T14:00:00", "to": "1970-01-12T15:00:00", "reason": "fair"}]
    found = push_times(
        REGISTRY,
        governing(
            fair={"select": {"ids": ["web"]}, "timezone": "UTC", "closed": closed},
            forever={"select": {"ids": ["db"]}, "reason": "moving"},
            short={"select": {"ids": ["db"]}, "reason": "moving", "until": "1970-01-12T14:46:40Z"},
            over={"select": {"ids": ["db"]}, "reason": "moved", "until": "1970-01-12T10:00:00Z"},
        ),
    )
    times = {item.id: item.closed(NOW, NOW + 24 * HOUR) for item in found}
    assert times == {
        "fair": [(NOW + 800, NOW + 800 + HOUR)],
        "forever": [(NOW, math.inf)],
        "short": [(NOW, NOW + HOUR)],
        "over": [],
    }
    assert [item.id for item in found if item.select.matches(FILE)] == ["fair"]


def test_one_that_cannot_be_read_selects_everything_and_is_not_known() -> None:
    [found] = push_times(REGISTRY, governing(odd={"timezone": "UTC"}))
    assert found.select.matches(FILE)
    assert found.closed(NOW, NOW + HOUR) is None


def test_without_any_there_are_none() -> None:
    assert push_times(REGISTRY, {}) == []
