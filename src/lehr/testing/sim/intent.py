"""Intent that changes at random, and stays valid: only what a person may publish."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec

from lehr.model.addons import DEPENDS_ON, LABELS, TURNDOWN, DependsOn, Labels, Turndown
from lehr.model.asset import Asset
from lehr.model.types import Registry, addon_names
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.governing import Governing
from lehr.testing.sim.selecting import TEAMS, TIERS
from lehr.testing.world import PARTITION, thing

IDS = tuple(f"t{number}" for number in range(8))

_PENDING = 3
"""Revisions that may have been written and not be published yet."""

UNGUARDED = {"percent": 100, "floor": 1000}
GUARDED = {"percent": 30, "floor": 1}
"""How much one change may take away."""


class Spec(msgspec.Struct):
    """A thing as a person writes it."""

    value: int
    depends_on: list[str] = []
    sends_to: list[str] = []
    reads: list[str] = []
    turndown: Turndown | None = None
    destroys: bool = False
    team: str = ""
    tier: str = ""

    def __str__(self) -> str:
        parts = [str(self.value)]
        parts += [f"after {' '.join(self.depends_on)}"] if self.depends_on else []
        parts += [f"sends load to {' '.join(self.sends_to)}"] if self.sends_to else []
        parts += [f"reads {' '.join(self.reads)}"] if self.reads else []
        parts += [f"of team {self.team}"] if self.team else []
        parts += [f"of tier {self.tier}"] if self.tier else []
        parts += ["destroys"] if self.destroys else []
        parts += ["turned down"] if self.turndown is not None else []
        return ", ".join(parts)

    def names(self) -> set[str]:
        return {*self.depends_on, *self.sends_to, *self.reads}


class _Past(msgspec.Struct, frozen=True):
    """How everything was declared once."""

    things: dict[str, Spec]
    governing: dict[str, Asset]
    let_go: set[str]
    moved: set[str]


class Intent:
    """The lines in the source of truth.

    Attributes:
        guard: how much one change may take away.
        acknowledged: the incarnation after which that does not count; None for none.
    """

    def __init__(self, dice: Dice, registry: Registry, published: Callable[[str], Asset | None]) -> None:
        """Intent made up by the dice; `published` returns an asset as the newest incarnation has it."""
        self._published = published
        self._dice = dice
        self._by_capacity = dice.happens(0.4)
        self._value = 0
        self._past: list[_Past] = []
        self._moved: set[str] = set()
        self.guard = UNGUARDED
        self.acknowledged: int | None = None
        self.let_go: set[str] = set()
        self.things: dict[str, Spec] = {}
        self.governing = Governing(dice, registry, IDS)
        for id in IDS[: dice.number(2, len(IDS))]:
            self._declare(id)
            if dice.happens(0.5):
                self._link(id)
        for _ in range(dice.number(0, 3)):
            self.govern()

    def assets(self) -> list[Asset]:
        return [*(_asset(id, spec) for id, spec in self.things.items()), *self.governing.assets.values()]

    def path(self, id: str) -> str:
        """The file that declares an asset."""
        return f"assets/moved/{id}.json" if id in self._moved else f"assets/{id}.json"

    def files(self) -> dict[str, bytes]:
        """The files of the source: a workspace, and a file for each asset."""
        workspace: dict[str, Any] = {"partition": PARTITION}
        workspace["let_go"] = dict.fromkeys(sorted(self.let_go), "not ours")
        workspace |= {"shrink": self.guard, "blank": UNGUARDED}
        if self.acknowledged is not None:
            meant = {"code": "VAL021", "subject": "test*", "reason": "it is meant"}
            workspace["acknowledge"] = [meant | {"after": f"{PARTITION}@{self.acknowledged}"}]
        return {"lehr.yaml": encode(workspace)} | {
            self.path(asset.id): encode(asset.document()) for asset in self.assets()
        }

    def kept(self) -> list[str]:
        """Things that may not just disappear."""
        return [id for id, spec in self.things.items() if spec.turndown is None]

    def change(self, *, let_go: bool = True) -> None:
        """Make one to three changes."""
        kinds = [self._edit, self._edit, self._relink, self._turn_down, self._delete, self._add]
        kinds += [self.govern, self.govern, self._turn_down, self._retire, self._rename, self._revert]
        if self.guard is not UNGUARDED:
            kinds += [self._turn_down_many] * 3
        for _ in range(self._dice.number(1, 3)):
            if (kind := self._dice.pick(kinds)) == self._delete:
                self._delete(let_go=let_go)
            else:
                kind()

    def renew(self, *ids: str) -> None:
        """Give the things `ids` other values; sometimes the same one for all, so that they differ alike."""
        same = self._next() if self._dice.happens(0.2) else None
        for id in ids:
            self.things[id].value = self._next() if same is None else same

    def remember(self) -> None:
        """The present declarations can be returned to."""
        past = _Past(self.things, self.governing.assets, self.let_go, self._moved)
        self._past.append(copy.deepcopy(past))

    def take_back(self) -> None:
        """Things have the values that they had before the last edit."""
        for id, spec in self._past[-2].things.items() if len(self._past) > 1 else ():
            if id in self.things:
                self.things[id].value = spec.value

    def retire(self) -> str | None:
        """Turn down a thing that nothing names; which one, or None for none."""
        free = [
            id
            for id, spec in self.things.items()
            if not self._named(id) and not self._comes_back(id) and spec.turndown is None
        ]
        if len(self.things) < 2 or not free:
            return None
        id = self._dice.pick(free)
        self.things[id].turndown = Turndown(
            "for good", self._dice.pick((0.0, 10.0)), self._dice.pick((0.0, 40.0, 120.0))
        )
        return id

    def remove(self, id: str) -> bool:
        """Take the lines of a thing out, if that may be."""
        spec = self.things.get(id)
        if spec is None or spec.turndown is None or self._named(id) or not self._may_go(id):
            return False
        if len(self.things) > 1:
            del self.things[id]
        return id not in self.things

    def come_back(self) -> str | None:
        """Declare a removed thing again, with the references still possible; returns its id."""
        gone = {id: past.things[id] for past in self._past for id in past.things if id not in self.things}
        if not gone:
            return None
        id = self._dice.pick(sorted(gone))
        spec = copy.deepcopy(gone[id])
        there = {other for other, spec in self.things.items() if other < id and spec.turndown is None}
        spec.depends_on = [other for other in spec.depends_on if other in there]
        spec.sends_to = [other for other in spec.sends_to if other in there]
        spec.reads = [other for other in spec.reads if other in there]
        spec.turndown = spec.turndown if self._dice.happens(0.5) else None
        self.things[id] = spec
        self.let_go.discard(id)
        return id

    def lean_on(self, id: str) -> str | None:
        """Let a thing that stays read one before it, which then is turned down; which one."""
        others = [other for other, spec in self.things.items() if other < id and spec.turndown is None]
        if not others or self.things[id].turndown is not None:
            return None
        other = self._dice.pick(others)
        self.things[id].reads = [other]
        return other

    def turn_down(self, id: str) -> None:
        """Ask for a turndown immediately, whatever names the thing."""
        if not self._comes_back(id):
            self.things[id].turndown = Turndown("at once", 0.0, 0.0)

    def was_turned_down(self, id: str) -> bool:
        """Whether a thing was ever declared with a turndown, published or not."""
        return any(id in past.things and past.things[id].turndown is not None for past in self._past)

    def calm(self) -> None:
        """Take away what would hold assets for ever, or for long."""
        self.governing.calm()
        self.guard, self.acknowledged = UNGUARDED, None

    def _revert(self) -> None:
        """Everything is declared as it once was; later things are let go."""
        if not self._past:
            return
        past = copy.deepcopy(self._dice.pick(self._past))
        since = [id for id in self.things if id not in past.things]
        if not past.things or not all(self._may_go(id) for id in since):
            return
        gone = {id for id in since if self.things[id].turndown is None}
        self.let_go = (past.let_go | self.let_go | gone) - set(past.things)
        self.things, self.governing.assets, self._moved = past.things, past.governing, past.moved

    def _rename(self) -> None:
        """The file of an asset moves to another folder."""
        self._moved ^= {self._dice.pick([asset.id for asset in self.assets()])}

    def _declare(self, id: str) -> None:
        team, tier = self._dice.pick(("", *TEAMS)), self._dice.pick(TIERS)
        self.things[id] = Spec(self._next(), destroys=self._dice.happens(0.15), team=team, tier=tier)
        self.let_go.discard(id)

    def _next(self) -> int:
        """Another value than the last; it may be more or less."""
        self._value = (self._value + self._dice.number(1, 98)) % 99
        return self._value

    def _edit(self) -> None:
        if not self.things:
            return
        spec = self.things[self._some()]
        spec.value = self._next()
        if self._dice.happens(0.2):
            spec.team, spec.tier = self._dice.pick(("", *TEAMS)), self._dice.pick(TIERS)

    def _relink(self) -> None:
        if self.things:
            self._link(self._some())

    def _link(self, id: str) -> None:
        """References, only to earlier things, and to none in turndown.

        In a circle none could be taken out first. A thing in turndown would be brought back for the
        reference, but is not notified of it.
        """
        others = [other for other, spec in self.things.items() if other < id and spec.turndown is None]
        spec = self.things[id]
        ahead = [other for other in others if self._dice.happens(0.3)]
        # Static order and order by capacity, mixed, could require the impossible.
        spec.depends_on, spec.sends_to = ([], ahead) if self._by_capacity else (ahead, [])
        spec.reads = [other for other in others if self._dice.happens(0.2)]

    def _turn_down(self) -> None:
        if not self.things:
            return
        id = self._some()
        spec = self.things[id]
        if spec.turndown is None and self._comes_back(id):
            return
        if spec.turndown is None:
            stand, fence = (self._dice.pick((0.0, 10.0, 40.0)) for _ in range(2))
            spec.turndown = Turndown("old", stand, fence)
        elif all(self.things[id].turndown is None for id in spec.names()):
            spec.turndown = None

    def _turn_down_many(self) -> None:
        """More than one change may take away, where a guard limits that."""
        for id in list(self.things):
            if self._dice.happens(0.6) and not self._comes_back(id):
                self.things[id].turndown = self.things[id].turndown or Turndown("all of them", 10.0, 10.0)

    def _retire(self) -> None:
        """Turn down a thing with all its references; or take out its lines while it is fenced."""
        naming = [id for id, spec in self.things.items() if spec.names()]
        if not naming:
            return
        id = self._dice.pick(naming)
        spec = self.things[id]
        if spec.turndown is not None:
            if self._may_go(id) and len(self.things) > 1 and not self._named(id):
                del self.things[id]
            return
        if any(self._comes_back(other) for other in (id, *spec.names())):
            return
        spec.turndown = Turndown("retired", 0.0, 40.0)
        for other in sorted(spec.names()):
            self.things[other].turndown = self.things[other].turndown or Turndown("retired", 0.0, 0.0)

    def _comes_back(self, id: str) -> bool:
        """Whether it should be brought back, unpublished: it may be gone, and be named again."""
        published = self._published(id)
        return published is not None and TURNDOWN in addon_names(published)

    def _named(self, id: str) -> bool:
        return any(id in spec.names() for spec in self.things.values())

    def _delete(self, *, let_go: bool = True) -> None:
        """Take lines out, with the references to them; things without a turndown are let go."""
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
        # The last write may still be published before the next one.
        pending = [past.things[id] for past in self._past[-_PENDING:] if id in past.things]
        turned_down = turned_down and all(spec.turndown is not None for spec in pending)
        return turned_down or self.things[id].turndown is None

    def _add(self) -> None:
        absent = [id for id in IDS if id not in self.things]
        if absent:
            self._declare(self._dice.pick(absent))

    def govern(self) -> None:
        """Declare a freeze, limit or the like, or take it out."""
        self.governing.change()

    def _some(self) -> str:
        return self._dice.pick(list(self.things))


def _asset(id: str, spec: Spec) -> Asset:
    addons: dict[str, Any] = {}
    if spec.depends_on or spec.sends_to:
        addons[DEPENDS_ON] = DependsOn(list(spec.depends_on), capacity=list(spec.sends_to))
    if spec.turndown is not None:
        addons[TURNDOWN] = spec.turndown
    if labels := {key: value for key, value in (("team", spec.team), ("tier", spec.tier)) if value}:
        addons[LABELS] = Labels(labels)
    return thing(id, str(spec.value), addons, reads=list(spec.reads), destroys=spec.destroys)


def encode(document: object) -> bytes:
    """A document as a file that people could have written."""
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=2)
