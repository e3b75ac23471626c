"""Governing assets of a random history: freezes, calendars, limits and budgets, two of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lehr.base.clock import iso
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.types import Registry
from lehr.testing.sim import selectors
from lehr.testing.sim.dice import Dice
from lehr.testing.virtual import EPOCH

RATE_LIMIT = "lehr.RateLimit"

_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_CALENDAR_MINUTES = 180
"""A calendar opens and closes for so long after midnight, when a history begins; then it stays open."""

_LASTING = ("rate-1", "budget-1")
"""Settings that may remain to the end: they hold nothing for ever, nor for long."""


def _freeze(dice: Dice, now: float) -> dict[str, Any]:
    return {"reason": "launch", "until": iso(now + dice.seconds(2.0, 60.0)) if dice.happens(0.4) else None}


def _calendar(dice: Dice, now: float) -> dict[str, Any]:
    windows, minute = [], dice.number(0, 2)
    while minute < _CALENDAR_MINUTES:
        end = minute + dice.number(1, 3)
        windows.append({"days": _DAYS, "from": _time(minute), "to": _time(end)})
        minute = end + dice.number(1, 3)
    windows.append({"days": _DAYS, "from": _time(_CALENDAR_MINUTES + 10), "to": "24:00"})
    return {"timezone": "UTC", "windows": windows, "override": dice.happens(0.6)}


def _time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _rate(dice: Dice, now: float) -> dict[str, Any]:
    return {"pushes": 3, "per": "20s", "group_by": dice.pick(([], [], ["id"], ["label:team"]))}


def _slow_rate(dice: Dice, now: float) -> dict[str, Any]:
    groups = dice.pick(([], ["id"], ["label:team"], ["type", "label:team"]))
    return {"pushes": dice.number(1, 3), "per": dice.pick(("5s", "1m")), "group_by": groups}


_MADE: dict[str, tuple[str, Callable[[Dice, float], dict[str, Any]]]] = {
    "freeze-1": ("lehr.Freeze", _freeze),
    "freeze-2": ("lehr.Freeze", _freeze),
    "observe": ("lehr.ObserveOnly", lambda dice, now: {"reason": "adoption"}),
    "calendar-1": ("lehr.Calendar", _calendar),
    "calendar-2": ("lehr.Calendar", _calendar),
    "rate-1": (RATE_LIMIT, _rate),
    "rate-2": (RATE_LIMIT, _slow_rate),
    "budget-1": ("lehr.DeletionBudget", lambda dice, now: {"removals": 2, "per_seconds": 60.0}),
    "budget-2": (
        "lehr.DeletionBudget",
        lambda dice, now: {"removals": dice.number(1, 3), "per_seconds": dice.pick((10.0, 200.0))},
    ),
}

CALENDARS = tuple(name for name, (type, _made) in _MADE.items() if type == "lehr.Calendar")


class Governing:
    """Those that are declared now.

    Attributes:
        assets: by id.
    """

    def __init__(self, dice: Dice, registry: Registry, ids: tuple[str, ...]) -> None:
        """Governing assets over some of the things `ids`."""
        self.assets: dict[str, Asset] = {}
        self._dice = dice
        self._registry = registry
        self._ids = ids
        self.now: Callable[[], float] = lambda: EPOCH

    def change(self) -> None:
        """Declare one, or take it out."""
        name = self._dice.pick(list(_MADE))
        if self.assets.pop(name, None) is None:
            self.assets[name] = self._made(name)

    def allow_one_removal(self) -> None:
        """One may be removed, and for a long time no other."""
        self.assets["budget-2"] = self._asset("budget-2", {"removals": 1, "per_seconds": 200.0})

    def close_twice(self) -> None:
        """Two calendars select everything, and both may be overridden."""
        for name in CALENDARS:
            self.assets[name] = self._made(name, {"all": True}, override=True)

    def freeze(self, id: str) -> None:
        """Hold back one thing until `thaw`."""
        self.assets["freeze-1"] = self._made("freeze-1", {"ids": [id]}, until=None)

    def thaw(self) -> None:
        """Take that out again."""
        self.assets.pop("freeze-1", None)

    def limit_all(self) -> None:
        """One limit counts all pushes together."""
        self.assets["rate-1"] = self._made("rate-1", {"all": True}, group_by=[])

    def limit_halves(self) -> None:
        """Two limits, each of one half of the things, count by the same group."""
        self.assets["rate-1"] = self._made("rate-1", {"ids": ["t[0-3]"]}, group_by=["type"])
        fields = {"pushes": 3, "per": "2m", "group_by": ["type"]}
        self.assets["rate-2"] = self._made("rate-2", {"ids": ["t[4-7]"]}, **fields)

    def limit_briefly(self) -> None:
        """One limit counts all pushes together, for less time than a turn may take."""
        fields = {"pushes": self._dice.number(1, 3), "per": self._dice.pick(("1s", "2s")), "group_by": []}
        self.assets["rate-1"] = self._made("rate-1", {"all": True}, **fields)

    def limit_removals(self) -> None:
        """Two budgets limit removals, each for a time of its own."""
        for name in ("budget-1", "budget-2"):
            self.assets[name] = self._asset(name, _MADE[name][1](self._dice, self.now()))

    def limit_removals_unevenly(self) -> None:
        """Two budgets limit removals; the one with the higher rate allows fewer at a time."""
        self.assets["budget-1"] = self._asset("budget-1", {"removals": 1, "per_seconds": 30.0})
        self.assets["budget-2"] = self._asset("budget-2", {"removals": 3, "per_seconds": 240.0})

    def take_id(self, id: str) -> None:
        """Use the id of what was a thing for a limit that holds nothing."""
        payload = {"select": {"ids": [id]}, "pushes": 100, "per": "1s"}
        kind = self._registry.types[RATE_LIMIT].payload
        self.assets[id] = make_asset(AssetId(id), RATE_LIMIT, msgspec.convert(payload, kind), {})

    def hold_team(self, team: str) -> None:
        """Hold back assets with the label of a team, one way or another."""
        name = self._dice.pick(("freeze-1", "observe", "calendar-1"))
        self.assets[name] = self._made(name, {"labels": {"team": team}})

    def _made(self, name: str, select: dict[str, Any] | None = None, **fields: Any) -> Asset:
        type, payload_of = _MADE[name]
        payload = payload_of(self._dice, self.now()) | fields
        if type != "lehr.DeletionBudget":
            payload["select"] = select or selectors.some(self._dice, self._ids)
        return self._asset(name, payload)

    def _asset(self, name: str, payload: dict[str, Any]) -> Asset:
        type, _made = _MADE[name]
        kind = self._registry.types[type].payload
        return make_asset(AssetId(name), type, msgspec.convert(payload, kind), {})

    def calm(self) -> None:
        """Take away what would hold assets for ever, or for long."""
        for name in self.assets.keys() - set(_LASTING):
            del self.assets[name]
