"""Intent that changes at random, and stays valid: what a person may publish, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Turndown
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.types import Registry, addon_names
from lehr.testing.sim.dice import Dice
from lehr.testing.world import PARTITION, thing

IDS = tuple(f"t{number}" for number in range(8))
GOVERNING: dict[str, tuple[str, dict[str, Any]]] = {
    "freeze": ("lehr.Freeze", {"reason": "launch", "until": None}),
    "observe": ("lehr.ObserveOnly", {"reason": "adoption"}),
    "rate": ("lehr.RateLimit", {"pushes": 3, "per": "20s"}),
    "budget": ("lehr.DeletionBudget", {"removals": 2, "per_seconds": 60.0}),
}


class Spec(msgspec.Struct):
    """A thing as a person writes it."""

    value: int
    depends_on: list[str] = []
    sends_to: list[str] = []
    reads: list[str] = []
    turndown: Turndown | None = None
    destroys: bool = False

    def __str__(self) -> str:
        parts = [str(self.value)]
        parts += [f"after {' '.join(self.depends_on)}"] if self.depends_on else []
        parts += [f"sends load to {' '.join(self.sends_to)}"] if self.sends_to else []
        parts += [f"reads {' '.join(self.reads)}"] if self.reads else []
        parts += ["destroys"] if self.destroys else []
        parts += ["turned down"] if self.turndown is not None else []
        return ", ".join(parts)

    def names(self) -> set[str]:
        return {*self.depends_on, *self.sends_to, *self.reads}


class Intent:
    """The lines in the source of truth."""

    def __init__(self, dice: Dice, registry: Registry, published: Callable[[str], Asset | None]) -> None:
        """Intent that the dice make up; `published` tells how an asset stands in the newest incarnation."""
        self._published = published
        self._dice = dice
        self._registry = registry
        self._by_capacity = dice.happens(0.4)
        self._value = 0
        self.let_go: set[str] = set()
        self.things: dict[str, Spec] = {}
        self.governing: dict[str, Asset] = {}
        for id in IDS[: dice.number(2, len(IDS))]:
            self._declare(id)
            if dice.happens(0.5):
                self._link(id)

    def assets(self) -> list[Asset]:
        return [*(_asset(id, spec) for id, spec in self.things.items()), *self.governing.values()]

    def files(self) -> dict[str, bytes]:
        """As they stand in the source: a workspace, and a file for each asset."""
        workspace = {"partition": PARTITION, "let_go": dict.fromkeys(sorted(self.let_go), "not ours")}
        workspace["shrink"] = workspace["blank"] = {"percent": 100, "floor": 1000}
        return {"lehr.yaml": encode(workspace)} | {
            f"assets/{asset.id}.json": encode(asset.document()) for asset in self.assets()
        }

    def kept(self) -> list[str]:
        """Things that may not just be gone."""
        return [id for id, spec in self.things.items() if spec.turndown is None]

    def change(self, *, let_go: bool = True) -> None:
        """Make one to three changes."""
        kinds = [self._edit, self._edit, self._relink, self._turn_down, self._delete, self._add, self.govern]
        kinds += [self._retire]
        for _ in range(self._dice.number(1, 3)):
            if (kind := self._dice.pick(kinds)) == self._delete:
                self._delete(let_go=let_go)
            else:
                kind()

    def renew(self, *ids: str) -> None:
        """Give the things `ids` other values."""
        for id in ids:
            self.things[id].value = self._next()

    def calm(self) -> None:
        """Take away what would hold assets for ever."""
        for id in ("freeze", "observe"):
            self.governing.pop(id, None)

    def _declare(self, id: str) -> None:
        self.things[id] = Spec(self._next(), destroys=self._dice.happens(0.1))
        self.let_go.discard(id)

    def _next(self) -> int:
        """Another value than the last; it may be more or less."""
        self._value = (self._value + self._dice.number(1, 98)) % 99
        return self._value

    def _edit(self) -> None:
        if self.things:
            self.things[self._some()].value = self._next()

    def _relink(self) -> None:
        if self.things:
            self._link(self._some())

    def _link(self, id: str) -> None:
        """References, only to those before it, for in a circle none could be taken out first; and to
        none that is turned down, which would be brought back for it, but nobody tells it of that.
        """
        others = [other for other, spec in self.things.items() if other < id and spec.turndown is None]
        spec = self.things[id]
        ahead = [other for other in others if self._dice.happens(0.3)]
        # Static order and order by capacity, mixed, could ask for what nobody can do.
        spec.depends_on, spec.sends_to = ([], ahead) if self._by_capacity else (ahead, [])
        spec.reads = [other for other in others if self._dice.happens(0.2)]

    def _turn_down(self) -> None:
        if not self.things:
            return
        spec = self.things[self._some()]
        if spec.turndown is None:
            stand, fence = (self._dice.pick((0.0, 10.0, 40.0)) for _ in range(2))
            spec.turndown = Turndown("old", stand, fence)
        elif all(self.things[id].turndown is None for id in spec.names()):
            spec.turndown = None

    def _retire(self) -> None:
        """Turn down a thing with all that it names; or take out its lines while it is fenced."""
        naming = [id for id, spec in self.things.items() if spec.names()]
        if not naming:
            return
        id = self._dice.pick(naming)
        spec = self.things[id]
        if spec.turndown is not None:
            if self._may_go(id) and len(self.things) > 1 and not self._named(id):
                del self.things[id]
            return
        spec.turndown = Turndown("retired", 0.0, 40.0)
        for other in sorted(spec.names()):
            self.things[other].turndown = self.things[other].turndown or Turndown("retired", 0.0, 0.0)

    def _named(self, id: str) -> bool:
        return any(id in spec.names() for spec in self.things.values())

    def _delete(self, *, let_go: bool = True) -> None:
        """Take lines out, with the references to them; what is not turned down is let go."""
        gone = [id for id, spec in self.things.items() if let_go or spec.turndown is not None]
        if not gone:
            return
        id = self._dice.pick(gone)
        if self.things[id].turndown is None and not self._dice.happens(0.3):
            return
        if len(self.things) == 1 or not self._may_go(id):
            return
        if self.things[id].turndown is None:
            self.let_go.add(id)
        del self.things[id]
        for spec in self.things.values():
            spec.depends_on = [other for other in spec.depends_on if other != id]
            spec.sends_to = [other for other in spec.sends_to if other != id]
            spec.reads = [other for other in spec.reads if other != id]

    def _may_go(self, id: str) -> bool:
        """Whether its lines may go: not before its turndown has been published."""
        published = self._published(id)
        turned_down = published is None or TURNDOWN in addon_names(published)
        return turned_down or self.things[id].turndown is None

    def _add(self) -> None:
        absent = [id for id in IDS if id not in self.things]
        if absent:
            self._declare(self._dice.pick(absent))

    def govern(self) -> None:
        """Declare a freeze, limit or the like, or take it out."""
        name = self._dice.pick(list(GOVERNING))
        if self.governing.pop(name, None) is not None:
            return
        type, payload = GOVERNING[name]
        some = [id for id in IDS if self._dice.happens(0.4)] or [IDS[0]]
        selecting = {} if name == "budget" else {"select": {"ids": some}}
        kind = self._registry.types[type].payload
        self.governing[name] = make_asset(
            AssetId(name), type, msgspec.convert({**payload, **selecting}, kind), {}
        )

    def _some(self) -> str:
        return self._dice.pick(list(self.things))


def _asset(id: str, spec: Spec) -> Asset:
    addons: dict[str, Any] = {}
    if spec.depends_on or spec.sends_to:
        addons[DEPENDS_ON] = DependsOn(list(spec.depends_on), capacity=list(spec.sends_to))
    if spec.turndown is not None:
        addons[TURNDOWN] = spec.turndown
    return thing(id, str(spec.value), addons, reads=list(spec.reads), destroys=spec.destroys)


def encode(document: object) -> bytes:
    """A document as a file that people could have written."""
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2)
