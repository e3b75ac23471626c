"""Units of rollouts as intent has them, found out without the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from lehr.model.addons import LABELS, TURNDOWN
from lehr.model.asset import Asset
from lehr.testing.sim.selectors import selected
from lehr.testing.sim.witnessed_state import Published

_NOTICED_SECONDS = 30.0
"""After so long, everybody has noticed a publication."""

Counting = Callable[[str], int | None]
"""The incarnation of the release of an asset that counts; 0 if it is let go, None for no release."""


class Unit(msgspec.Struct):
    """A unit that a policy governs, with its members."""

    id: str
    members: dict[str, Asset]


class View:
    """The units of one policy in one incarnation."""

    def __init__(
        self, policy: Mapping[str, Any], assets: Mapping[str, Asset], counting: Counting, alike: Alike
    ) -> None:
        self.units: dict[str, Unit] = {}
        self._assets = assets
        self._counting = counting
        self._alike = alike
        for id, asset in assets.items():
            if asset.type.startswith("lehr.") or not selected(policy["select"], asset) or counting(id) == 0:
                continue
            labels = asset.document()["addons"].get(LABELS, {}).get("labels", {})
            unit = labels.get(policy.get("unit", ""), id)
            self.units.setdefault(unit, Unit(unit, {})).members[id] = asset

    def members(self, unit: str) -> Mapping[str, Asset]:
        """Members of a unit; none if it has none."""
        return self.units[unit].members if unit in self.units else {}

    def wanting(self, unit: str, target: Mapping[str, Asset]) -> list[str]:
        """Members whose content at the target of a rollout is not the one that they are released to."""
        return [id for id in self.members(unit) if self._wants(id, target)]

    def _wants(self, id: str, target: Mapping[str, Asset]) -> bool:
        released = self._counting(id)
        if id not in target:
            return False
        if released is None:
            return True
        before = self._alike.assets(released)
        return not self._alike(id, target, before) and not self._alike(id, self._assets, before)


class Alike:
    """Whether two incarnations have the same content of an asset, with that of the assets that it reads."""

    def __init__(self, assets: Callable[[int], Mapping[str, Asset]], content: Callable[[Any], Any]) -> None:
        self.assets = assets
        self._content = content

    def __call__(self, id: str, one: Mapping[str, Asset], other: Mapping[str, Asset]) -> bool:
        names = [id, *(one[id].document()["payload"].get("reads", ()) if id in one else ())]
        return all(self._content(one.get(name)) == self._content(other.get(name)) for name in names)

    def at(self, id: str, one: int, other: int) -> bool:
        """The same by the incarnations' sequences."""
        return self(id, self.assets(one), self.assets(other))


def leaves(asset: Asset | None) -> bool:
    """Whether an asset is turned down."""
    return asset is not None and TURNDOWN in asset.document()["addons"]


def recent(incarnations: Mapping[int, Published], now: float) -> Iterator[Mapping[str, Asset]]:
    """Incarnations that the program may take for the newest: it, those just before, and one more."""
    for sequence in sorted(incarnations, reverse=True):
        published = incarnations[sequence]
        yield published.assets
        if published.header.created_at < now - _NOTICED_SECONDS:
            return
