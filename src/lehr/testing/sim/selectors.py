"""Selectors of a random history: which there are, and what each selects, found out without the program."""

from __future__ import annotations

import fnmatch
import functools
from typing import Any

import msgspec

from lehr.model.addons import LABELS
from lehr.model.asset import Asset
from lehr.testing.sim.dice import Dice
from lehr.testing.world import THING

TEAMS = ("a", "b")
TIERS = ("", "web")


def other_team(team: str) -> str:
    """Not this one."""
    return TEAMS[team == TEAMS[0]]


def some(dice: Dice, ids: tuple[str, ...]) -> dict[str, Any]:
    """A selector as plain data: of ids, a pattern, a label, a type, or of everything."""
    few = [id for id in ids if dice.happens(0.4)] or [ids[0]]
    kinds: list[dict[str, Any]] = [
        {"ids": few},
        {"ids": few},
        {"ids": ["t[0-3]"]},
        {"labels": {"team": dice.pick(TEAMS)}},
        {"ids": ["t*"], "labels": {"team": dice.pick(TEAMS)}},
        {"labels": {"team": dice.pick(TEAMS), "tier": "web"}},
        {"types": [THING]},
        {"all": True},
    ]
    return dice.pick(kinds)


def written(dice: Dice, ids: tuple[str, ...]) -> str:
    """A selector as a person types it: mostly one id."""
    if dice.happens(0.7):
        return dice.pick(ids)
    team = f"label:team={dice.pick(TEAMS)}"
    few = ",".join(id for id in ids if dice.happens(0.4)) or ids[0]
    return dice.pick(("all", team, f"{team},label:tier=web", "t[0-3]", f"type={THING}", few))


@functools.lru_cache(1024)
def decoded(body: bytes) -> Any:
    """The body of an asset as plain data, which nothing may change: judges ask for few, again and again."""
    return msgspec.json.decode(body)


def selected(selector: Any, asset: Asset) -> bool:
    """Whether `selector`, plain or not, selects `asset`."""
    parts = selector if isinstance(selector, dict) else msgspec.to_builtins(selector)
    if parts.get("all"):
        return True
    ids, types, labels = parts.get("ids") or (), parts.get("types") or (), parts.get("labels") or {}
    if ids and not any(fnmatch.fnmatchcase(asset.id, pattern) for pattern in ids):
        return False
    if types and not any(fnmatch.fnmatchcase(asset.type, pattern) for pattern in types):
        return False
    if not labels:
        return True
    has = decoded(asset.body)["addons"].get(LABELS, {}).get("labels", {})
    return all(has.get(key) == value for key, value in labels.items())
